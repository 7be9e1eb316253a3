"""Wrong answers to the exercises of lesson 03: words exchanged, and the hint that fits."""

OWN = "if self.process != os.getpid():"
LOOKS = 'self.length = len(file["rows"])'
LIGHT = '{"path": self.path, "length": self.length}'
READS = "return self.rows[index], int(self.labels[index])"
KEEPS = {"self.file, self.process =": "RowsAndLabels.file, RowsAndLabels.process ="}
AGAIN = "\n\n    def __setstate__(self, state):\n        self.__init__(state['path'])"
CACHED = "@__import__('functools').lru_cache\n    def open(self):"
ANSWERS: dict[str, list[tuple[dict[str, str], str]]] = {
    "03_reopen_per_item 1": [
        ({}, ""),
        (  # labels are small: they may be kept in memory
            {
                LOOKS: f'{LOOKS}\n            self.known = file["labels"][:]',
                "self.labels[index]": "self.known[index]",
                LIGHT: f'{LIGHT} | {{"known": self.known}}',
            },
            "",
        ),
        ({OWN: "if True:"}, "50 items opened the file 50 times"),
        ({"return self.rows[index]": 'return self.file["rows"][index]'}, "looked up"),
        (
            {"self.path = path": "self.path, self.early = path, h5py.File(path)"}
            | {LIGHT: f'{LIGHT} | {{"early": self.early}}'},
            "before its first access it cannot be pickled",
        ),
        ({LIGHT: "self.__dict__"}, "after an access it cannot be pickled"),
        (
            {'= self.file["rows"], self.file': '= self.file["rows"][:], self.file'},
            "it keeps all rows in memory",
        ),
        (
            KEEPS | {"self.rows, self.labels = ": "RowsAndLabels.rows, RowsAndLabels.labels = "},
            "not before, and not in a global",
        ),
        (
            {"self.path = path": "self.path = path\n        self.open()", LIGHT: LIGHT + AGAIN},
            "open it in `__getitem__`, not before",
        ),
        ({OWN: "if self.file is None:"}, "a forked worker opened nothing"),
        ({"def open(self):": CACHED, OWN: "if True:"}, "a forked worker opened nothing"),
        ({READS: "return self.rows[index]"}, "should be a row and a label"),
        ({READS: f"self.file.close()\n        {READS}"}, "the file was closed while its datasets"),
        ({"int(self.labels[index])": "int(self.labels[index - 1])"}, "the label of row"),
        ({"return self.rows[index]": "return self.rows[index - 1]"}, "is not that of the file"),
    ],
    "03_reopen_per_item 2": [
        ({}, ""),
        ({"> gap)": "> len(rows))"}, "two far rows [990, 3]: 988 rows read, where 2 would do"),
        ({"> gap)": "> 1)"}, "calls, where 1 would do"),
        ({"> gap)": ">= gap)"}, "rows one gap apart [100, 200, 0]: 3 calls"),
        ({"for index in indices]": "for index in wanted]"}, "are not those, in this order"),
        ({"index - part[0]]": "index - part[0] - 1]"}, "are not those, in this order"),
        ({"part[-1] + 1]": "part[-1]]"}, "IndexError"),
        ({"np.unique(indices)": "np.array(indices)"}, "IndexError"),
        ({"gap=256": ""}, "gap"),
    ],
    "03_reopen_per_item 3": [
        ({}, ""),
        ({"4 * 10": "4"}, "a new epoch has new workers"),
        ({"4 * 10": "10"}, "each worker opens for itself"),
        ({"4 * 10": "1"}, "handles are not shared by workers"),
        ({"4 * 10": "4 + 10"}, "how many workers are there in all?"),
        ({"4 * 10": "5 * 10"}, "the main process reads no rows"),
        ({"4 * 10": "4 * 10 + 1"}, "the look of the constructor is not counted"),
        ({"4 * 10": "4 * (10 + 1)"}, "the main process reads no rows"),
        ({"4 * 10": "4 + 1"}, "a new epoch has new workers"),
    ],
}
