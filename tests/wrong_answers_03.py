"""Wrong answers to the exercises of lesson 03: words exchanged, and the hint that fits."""

KEPT = "        if self.rows is None:\n            file ="
LIGHT = '"length": self.length'
OPENS_AT_ONCE = "self.path, self.file = path, h5py.File(path)"
ANSWERS: dict[str, list[tuple[dict[str, str], str]]] = {
    "03_reopen_per_item 1": [
        ({}, ""),
        ({KEPT: "        if True:\n            file ="}, "50 items opened the file 50 times"),
        ({"return self.rows[index]": 'return self.rows.file["rows"][index]'}, "looked up"),
        (
            {"self.path = path": OPENS_AT_ONCE, LIGHT: LIGHT + ', "file": self.file'},
            "before its first",
        ),
        ({LIGHT: LIGHT + ', "rows": self.rows'}, "after an access it cannot be pickled"),
        ({'file["rows"], file': 'file["rows"][:], file'}, "it keeps all rows in memory"),
        (
            {"self.rows, self.labels = ": "RowsAndLabels.rows, RowsAndLabels.labels = "},
            "fork copies",
        ),
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
    ],
}
