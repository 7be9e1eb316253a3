"""Wrong answers to the exercises of lesson 03: words exchanged, and the hint that fits."""

OWN = "if self.process != os.getpid():"
START = "file = process = None"
INIT = START + "\n\n    def __init__(self, path):\n        super().__init__(path)\n        "
LIGHT = "self.__dict__ | left_out"
READS = "return self.rows[index], int(self.labels[index])"
OPENS = "self.file, self.process = self.open(), os.getpid()"
FINDS = 'self.rows, self.labels = self.file["rows"], self.file["labels"]'
KEEPS = {"self.file, self.process =": "RowsAndLabels.file, RowsAndLabels.process ="}
AGAIN = "\n\n    def __setstate__(self, state):\n        self.__init__(state['path'])"
CACHED = """@__import__("functools").lru_cache
    def found(self):
        file = self.open()
        return file["rows"], file["labels"]

    def __getstate__"""
ANSWERS: dict[str, list[tuple[dict[str, str], str]]] = {
    "03_reopen_per_item 1": [
        ({}, ""),
        (  # labels are small: they may be kept in memory
            {
                START: INIT + 'self.known = h5py.File(path)["labels"][:]',
                "self.labels[index]": "self.known[index]",
            },
            "",
        ),
        ({OWN: "if True:"}, "50 items opened the file 50 times"),
        ({"return self.rows[index]": 'return self.file["rows"][index]'}, "looked up"),
        (
            {START: INIT + "self.early = h5py.File(path)"},
            "before its first access it cannot be pickled",
        ),
        ({LIGHT: "self.__dict__"}, "after an access it cannot be pickled"),
        (
            {'= self.file["rows"], self.file': '= self.file["rows"][:], self.file'},
            "it keeps all rows in memory",
        ),
        (
            KEEPS
            | {"self.rows, self.labels = self": "RowsAndLabels.rows, RowsAndLabels.labels = self"}
            | {"self.file[": "RowsAndLabels.file[", LIGHT: "self.__dict__"},
            "not before, and not in a global",
        ),
        (
            {START: INIT + f"{OPENS}\n        {FINDS}", LIGHT: LIGHT + AGAIN},
            "open it in `__getitem__`, not before",
        ),
        ({OWN: "if self.file is None:"}, "a forked worker opened nothing"),
        (
            {OWN: "if True:", OPENS: "pass", FINDS: "self.rows, self.labels = self.found()"}
            | {"def __getstate__": CACHED},
            "a forked worker opened nothing",
        ),
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
