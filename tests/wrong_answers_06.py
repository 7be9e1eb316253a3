"""Wrong answers to the exercises of lesson 06, as test_exercises.py takes them."""

ENCODED = "np.array([path.encode() for path, _ in samples])"
U_IN_A_DICT = "str(self.paths[0][index])"
DECODED = "self.paths[index].decode()"
LABELS = "np.array([label for _, label in samples])"
LAST_STEP = "held[-1] - held[2] > 10"
ANSWERS: dict[str, list[tuple[dict[str, str], str]]] = {
    "06_refcount_bloat 1": [
        ({}, ""),
        (
            {ENCODED: "[path for path, _ in samples]", DECODED: "self.paths[index]"},
            "objects for each sample",
        ),
        (
            {ENCODED: "tuple(path.encode() for path, _ in samples)"},
            "objects for each sample, and each has a reference count",
        ),
        (
            {ENCODED: "np.array([path for path, _ in samples], object)", ".decode()": ""},
            "objects for each sample",
        ),
        ({ENCODED: "dict(enumerate(path.encode() for path, _ in samples))"}, "objects for each"),
        (
            {ENCODED: "np.array([path for path, _ in samples])", ".decode()": ""},
            "four bytes for each letter",
        ),
        ({".decode()": ""}, "the path comes as bytes_: decode it"),
        ({"path.encode()": "path"}, "no attribute 'decode'"),
        ({"for path, _ in samples])": 'for path, _ in samples], "S40")'}, "and should be"),
        ({ENCODED: "np.array([path for path, _ in samples], 'S')"}, "`S` takes ASCII only"),
        (
            {ENCODED: "{0: np.array([path for path, _ in samples])}", DECODED: U_IN_A_DICT},
            "four bytes for each letter",
        ),
        (
            {
                ENCODED: "' '.join(path for path, _ in samples).encode()",
                DECODED: "self.paths.split()[index].decode()",
            },
            "bytes to make: find it without making the others",
        ),
        ({"int(self.labels[index])": "str(self.labels[index])"}, "the label comes as str"),
        ({LABELS: LABELS.replace("])", "], np.uint8)")}, "OverflowError"),
        ({", int(self.labels[index])": ""}, "is a str: return (path, label)"),
        ({"len(self.labels)": "len(self.labels) - 1"}, "its length is 19,999"),
    ],
    "06_refcount_bloat 2": [
        ({}, ""),
        ({LAST_STEP: "held[-1] > held[0]"}, "(nothing grows): you say True"),
        ({LAST_STEP: "held[-1] > held[-2]"}, "(nothing grows): you say True"),
        ({LAST_STEP: "held[-1] - held[0] > 5"}, "(bloat, done after one epoch): you say True"),
        ({LAST_STEP: "held[2] - held[1] > 5"}, "(bloat, done after two epochs): you say True"),
        ({LAST_STEP: "held == sorted(held)"}, "(bloat, wobbling upwards): you say True"),
        (
            {LAST_STEP: "bool(np.diff(held)[1:].min() > 0)"},
            "(bloat, wobbling upwards): you say True",
        ),
        ({LAST_STEP: "bool(np.diff(held).min() > 5)"}, "(a dip in a leak): you say False"),
        ({LAST_STEP: "np.diff(held) > 5"}, "return one True or False"),
        ({LAST_STEP: "held[-1] > 2 * held[0]"}, "(bloat, done after one epoch): you say True"),
        ({LAST_STEP: "held[-1] - held[1] > 45"}, "(bloat and a leak): you say False"),
        ({LAST_STEP: "..."}, "return one True or False"),
        ({"return held": "held"}, "return one True or False"),
    ],
    "06_refcount_bloat 3": [
        ({}, ""),
        ({"4 * 7 * 2": "2"}, "that is one list"),
        ({"4 * 7 * 2": "4 * 2"}, "that is before the first batch"),
        ({"4 * 7 * 2": "7 * 2"}, "that is one GPU"),
        ({"4 * 7 * 2": "4 * 6 * 2"}, "the main processes hold theirs, too"),
        ({"4 * 7 * 2": "(4 * 6 + 1) * 2"}, "each main process has built its own"),
        ({"4 * 7 * 2": "4 * 7"}, "that is the number of lists"),
        ({"4 * 7 * 2": "6 * 2"}, "that is one GPU's workers only"),
        ({"4 * 7 * 2": '"many"'}, "give a number"),
    ],
}
