"""Plausible wrong answers to the exercises of lesson 05, each with the hint that fits."""

ANSWERS: dict[str, list[tuple[dict[str, str], str]]] = {
    "05_fork_and_hdf5 1": [
        ({}, ""),
        ({'"archive": None, ': ""}, "cannot be sent to a worker"),
        ({', "process": None}': "}"}, "it arrives, but cannot read there (AttributeError"),
        ({"return {**": "{**"}, "it arrives, but cannot read there (AttributeError"),
        (
            {
                "return np.frombuffer(": "return torch.tensor(np.frombuffer(",
                "index]), np.float32)": "index]), np.float32))",
            },
            "",
        ),
        ({"self.process != os.getpid()": "self.archive is None"}, "compare os.getpid()"),
        ({"self.process != os.getpid()": "True"}, "opens the archive for every row"),
        (
            {"with opener(path) as archive:": "archive = opener(path)\n        if True:"},
            "is still open after `__init__`",
        ),
        ({"self.names[index])": "self.names[index - 1])"}, "is not row 5 of the archive"),
        ({"return len(self.names)": "return len(self.names) - 1"}, "gives 9, and the archive has"),
        (
            {"with opener(path)": "with zipfile.ZipFile(path)"},
            "open the archive with `opener(path)`",
        ),
    ],
    "05_fork_and_hdf5 2": [
        ({}, ""),
        ({"1 + 3 * 4": "3 * 4"}, "the constructor looks, too"),
        ({"1 + 3 * 4": "1 + 4"}, "workers end with the epoch"),
        ({"1 + 3 * 4": "4"}, "who looks first?"),
        ({"1 + 3 * 4": "3"}, "each worker opens its own"),
        ({"1 + 3 * 4": "3 * (1 + 4)"}, "once, not in each epoch"),
    ],
}
