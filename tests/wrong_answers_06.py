"""Wrong answers to the exercises of lesson 06, as test_exercises.py takes them."""

ENCODED = "np.array([path.encode() for path, _ in samples])"
DECODED = "self.paths[index].decode()"
LABELS = "np.array([label for _, label in samples])"
LAST_STEP = "held[-1] - held[-2] > 5"
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
        ({ENCODED: "np.array([path for path, _ in samples], 'S')"}, "UnicodeEncodeError"),
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
        ({LAST_STEP: "held[-1] > 2 * held[0]"}, "(bloat, done after one epoch): you say True"),
        ({LAST_STEP: "held[-1] - held[1] > 45"}, "(bloat and a leak): you say False"),
        ({LAST_STEP: "..."}, "return True or False"),
        ({"return held": "held"}, "return True or False"),
    ],
    "06_refcount_bloat 3": [
        ({}, ""),
        ({"4 * 7 * 2": "2"}, "that is one list"),
        ({"4 * 7 * 2": "4 * 2"}, "that is before the first batch"),
        ({"4 * 7 * 2": "7 * 2"}, "that is one GPU"),
        ({"4 * 7 * 2": "4 * 6 * 2"}, "the main processes hold theirs, too"),
        ({"4 * 7 * 2": "(4 * 6 + 1) * 2"}, "each main process has built its own"),
        ({"4 * 7 * 2": '"many"'}, "give a number"),
    ],
}
