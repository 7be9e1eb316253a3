"""Plausible wrong answers to the exercises of lesson 04, as words exchanged in the solutions."""

_WHOLE = "16 * (3 * 100) * (3 * 100) * 3"
_SLAB = "slab = rows[first : first + chunk_rows]"

ANSWERS: dict[str, list[tuple[dict[str, str], str]]] = {
    "04_chunk_shape 1": [
        ({}, ""),
        ({f"{_WHOLE} / (224 * 224 * 3)": "16"}, "chunks at the edge of an image are read whole"),
        ({f"{_WHOLE} / (224 * 224 * 3)": "3 * 3"}, "what is in them?"),
        ({f"{_WHOLE} / (224 * 224 * 3)": "16 * 9"}, "in images: how large is one?"),
        ({"16 * (": "("}, "a chunk has 16 images"),
        ({"(3 * 100) * (3 * 100)": "(2 * 100) * (2 * 100)"}, "224 needs three chunks of 100"),
        ({"/ (224 * 224 * 3)": ""}, "divide by what you asked: one image"),
        ({_WHOLE: "16 * 100 * 100 * 3"}, "how many chunks does one image touch?"),
        ({_WHOLE: "224 * 224 * 3", "/ (224 * 224 * 3)": f"/ ({_WHOLE})"}, "turn it round"),
    ],
    "04_chunk_shape 2": [
        ({}, ""),
        ({"int(np.prod(shape[1:]))": "np.prod(shape[1:])"}, ""),  # numpy's whole numbers, too
        ({"int(np.prod(shape[1:]))": "math.prod(shape[1:])"}, ""),
        ({"max(fitting, 1)": "fitting"}, "0 rows: at least one"),
        ({"min(most_bytes // row_bytes, shape[0])": "most_bytes // row_bytes"}, "at most the 7 of"),
        ({"* itemsize": ""}, "rows are too many"),
        ({"most_bytes // row_bytes": "most_bytes / row_bytes"}, "not whole: divide with //"),
        ({"(max(fitting, 1), *shape[1:])": "max(fitting, 1)"}, "return a tuple of 2 numbers"),
        ({"(max(fitting, 1), *shape[1:])": "[max(fitting, 1), *shape[1:]]"}, "return a tuple"),
        ({"*shape[1:])": "*(1 for _ in shape[1:]))"}, "cuts a row: keep every axis"),
        ({"max(fitting, 1)": "max(fitting // 2, 1)"}, "rows are too few"),
    ],
    "04_chunk_shape 3": [
        ({}, ""),
        ({"in np.unique(indices // chunk_rows)": "in indices // chunk_rows"}, "each only once"),
        ({_SLAB: "slab = rows[:][first : first + chunk_rows]"}, "and no index lies in it"),
        ({_SLAB: "slab = rows[first : first + chunk_rows + 1]"}, "and no index lies in it"),
        ({"= np.asarray(indices)": "= np.sort(indices)"}, "their order is not"),
        ({" - first]": "]"}, "count from the chunk's first row"),
        ({"indices[places] - first": "indices[places] % 7"}, "some rows are wrong"),
        ({_SLAB: "slab = rows[list(range(first, first + chunk_rows))]"}, "read slices"),
        ({"return batch": "return batch[:1]"}, "the batch has the shape (1, 3)"),
    ],
}
