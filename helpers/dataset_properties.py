"""What a good map-style dataset does, as functions that return a hint, or None if all is well.

Each takes the class and generated data (`data_gen.ensure` makes it), and makes a dataset of its own
with `dataset_class(data.rows_path)`. An item is a row, or a tuple that has the row in it. What a
dataset reads and keeps is in `dataset_reads`, what it holds and hands out in `dataset_memory`. A
check lets them look in a child, with `first_mistake`.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helpers.dataset_memory import opens_lazily as opens_lazily
from helpers.dataset_memory import pickles_small as pickles_small
from helpers.dataset_memory import rows_are_copies as rows_are_copies
from helpers.dataset_reads import reads_little, row_of
from helpers.hints import Mistake
from helpers.ragged_data import make_part
from helpers.running.shared_state import STATE_VARIABLE

DatasetProperty = Callable[[Any, Any], str | None]

_LOOKED_AT = 64  # rows; one that is wrong for a reason is wrong in all of them
_LOOKED_AT_BYTES = 4 * 2**20


def first_mistake(
    dataset_class: Any, data: Any, properties: Sequence[DatasetProperty]
) -> str | None:
    """Return the first hint of any property, or None.

    In a child of `run` they look at a part of the data that nobody has seen, in files that go with
    the child. What the dataset reads is looked at first: later it may have kept everything.
    """
    for method in ("__len__", "__getitem__") if isinstance(dataset_class, type) else ():
        written = getattr(dataset_class, method, None)
        if getattr(written, "__module__", "torch").split(".")[0] == "torch":
            return f"it has no `{method}`: write one"
    if STATE_VARIABLE in os.environ:
        data = make_part(data, Path(os.environ[STATE_VARIABLE]).with_name("part"))
    hints = (find(dataset_class, data) for find in (reads_little, *properties))
    return next((hint for hint in hints if hint), None)


def has_length(dataset_class: Any, data: Any) -> str | None:
    """Find out whether `len(dataset)` is the number of rows."""
    dataset = dataset_class(data.rows_path)
    length = type(dataset).__len__(dataset)  # len() would hide a stub behind a TypeError
    if length is None or length is ...:
        return "fill in `__len__`: it returns the number of rows"
    if isinstance(length, bool) or not hasattr(length, "__index__"):
        return f"`len` gives {length!r}, a {type(length).__name__}: give a whole number"
    if length == data.rows:
        return None
    if length == np.prod(data.row_shape):
        return f"`len` gives {length:,}, the values of one row: it should be the {data.rows:,} rows"
    return f"`len` gives {length:,}, and the data has {data.rows:,} rows"


def rows_are_right(dataset_class: Any, data: Any) -> str | None:
    """Find out whether `dataset[i]` is row i, whole, with its type, whatever was asked before."""
    dataset = dataset_class(data.rows_path)
    first, right = row_of(dataset, 0), data.expected_rows([0])
    if first.shape != data.row_shape:
        return f"a row has the shape {first.shape}: it should be {data.row_shape}"
    if first.dtype != right.dtype:
        return f"a row is {first.dtype}: it should be {right.dtype}, as in the file"
    indices = _scattered(data)
    rows = np.stack([row_of(dataset, int(i)) for i in indices])
    again = np.stack([row_of(dataset, int(i)) for i in indices[::-1]])[::-1]
    if not np.array_equal(rows, again):
        return "an item depends on what was asked before it: let it follow from the index alone"
    wrong = data.count_wrong(rows, indices)
    if not wrong:
        return None
    for shift, what in ((1, "the next row"), (-1, "the row before")):
        if not data.count_wrong(rows, (indices + shift) % data.rows):
            return f"`dataset[i]` gives {what}: mind the first index, 0"
    if (rows == rows[0]).all():
        return "every index gives the same row: use the index"
    return f"{wrong} of {len(indices)} rows that were looked at hold other values than the file"


def labels_are_right(dataset_class: Any, data: Any) -> str | None:
    """Find out whether `dataset[i]` is a pair of a row and its label, one whole number."""
    dataset = dataset_class(data.rows_path)
    indices, found = _scattered(data), []
    for index in map(int, indices):
        row, label = map(np.asarray, pair_of(dataset, index, "(row, label)"))
        if label.size != 1 and row.size == 1:
            return "an item is (row, label), in this order: turn it round"
        if label.size != 1 or label.dtype.kind not in "iu":
            return f"a label is {label.dtype} of the shape {label.shape}: give one whole number"
        found.append(label.item())
    labels = np.array(found)
    if np.array_equal(labels, data.expected_labels(indices)):
        return None
    if (labels == labels[0]).all():
        return f"every row gets the label {labels[0]}: use the index"
    for shift, what in ((1, "next row"), (-1, "row before")):
        if np.array_equal(labels, data.expected_labels((indices + shift) % data.rows)):
            return f"the label is that of the {what}: use the same index for both"
    return "the labels are not those of the rows: use the same index for both"


def checks_its_indices(dataset_class: Any, data: Any) -> str | None:
    """Find out whether negative indices count from the end, and others raise IndexError.

    The error's message is to name the length.
    """
    dataset = dataset_class(data.rows_path)
    last = row_of(dataset, -1)
    if data.count_wrong(last[None], [data.rows - 1]):
        return "`dataset[-1]` is not the last row: add the length to a negative index"
    for index in (data.rows, -data.rows - 1):
        try:
            dataset[index]
        except IndexError as error:
            if str(data.rows) not in str(error).replace(",", "").replace("_", ""):
                return f"`dataset[{index}]` raises IndexError({str(error)!r}): say the length, too"
        else:
            return f"`dataset[{index}]` gives a row: raise IndexError outside of the length"
    return None


ALL_PROPERTIES: tuple[DatasetProperty, ...] = (
    has_length,
    rows_are_right,
    opens_lazily,
    pickles_small,
    rows_are_copies,
    checks_its_indices,
)


def pair_of(dataset: Any, index: int, what: str) -> tuple[Any, Any]:
    """Return the two parts of an item; `what`, as "(row, label)", says which. Raises Mistake."""
    item = dataset[index]
    if item is None or item is ...:
        raise Mistake(f"fill in `__getitem__`: it returns {what}")
    if not isinstance(item, tuple | list) or len(item) != 2:
        given = f"{len(item)} things" if isinstance(item, tuple) else f"a {type(item).__name__}"
        raise Mistake(f"`dataset[{index}]` is {given}: return {what}")
    return item[0], item[1]


def _scattered(data: Any) -> NDArray[np.int64]:
    """Return indices in no order, the last ones among them: after the last whole batch or block."""
    row_bytes = data.expected_rows([0]).nbytes
    count = min(_LOOKED_AT, max(1, _LOOKED_AT_BYTES // row_bytes))
    inner = np.random.default_rng(0).integers(data.rows, size=count)
    return np.array([data.rows - 1, 0, *inner, max(data.rows - 2, 0)])
