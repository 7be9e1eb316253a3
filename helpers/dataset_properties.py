"""What a good map-style dataset does, as functions that return a hint, or None if all is well.

Each takes the class and generated data (`data_gen.ensure` makes it), and makes a dataset of its own
with `dataset_class(data.rows_path)`. An item is a row, or a tuple that has the row in it.
"""

import mmap
import os
import pickle
import warnings
from collections.abc import Callable
from io import IOBase
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from helpers.units import format_bytes

DatasetProperty = Callable[[Any, Any], str | None]

_SMALL = 10 * 1024
_LOOKED_AT = 64  # rows; one that is wrong for a reason is wrong in all of them


def has_length(dataset_class: Any, data: Any) -> str | None:
    """Find out whether `len(dataset)` is the number of rows."""
    dataset = dataset_class(data.rows_path)
    length = type(dataset).__len__(dataset)  # len() would hide a stub behind a TypeError
    if length is None or length is ...:
        raise NotImplementedError("`__len__`: it returns the number of rows")
    if length == data.rows:
        return None
    if length == np.prod(data.row_shape):
        return f"`len` gives {length:,}, the values of one row: it should be the {data.rows:,} rows"
    return f"`len` gives {length:,}, and the data has {data.rows:,} rows"


def rows_are_right(dataset_class: Any, data: Any) -> str | None:
    """Find out whether `dataset[i]` is row i, whole, with its type."""
    dataset = dataset_class(data.rows_path)
    inner = np.random.default_rng(0).integers(data.rows, size=_LOOKED_AT)
    indices = np.unique([0, data.rows - 1, *inner])
    first = _row(dataset, 0)
    if first.shape != data.row_shape:
        return f"a row has the shape {first.shape}: it should be {data.row_shape}"
    right = data.expected_rows([0])
    if first.dtype != right.dtype:
        return f"a row is {first.dtype}: it should be {right.dtype}, as in the file"
    rows = np.stack([_row(dataset, int(i)) for i in indices])
    wrong = data.count_wrong(rows, indices)
    if not wrong:
        return None
    for shift, what in ((1, "the next row"), (-1, "the row before")):
        if not data.count_wrong(rows, (indices + shift) % data.rows):
            return f"`dataset[i]` gives {what}: mind the first index, 0"
    if (rows == rows[0]).all():
        return "every index gives the same row: use the index"
    return f"{wrong} of {len(indices)} rows that were looked at hold other values than the file"


def checks_its_indices(dataset_class: Any, data: Any) -> str | None:
    """Find out whether negative indices count from the end, and others raise IndexError.

    The error's message is to name the length.
    """
    dataset = dataset_class(data.rows_path)
    last = _row(dataset, -1)
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


def opens_lazily(dataset_class: Any, data: Any) -> str | None:
    """Find out whether the dataset holds neither rows nor anything open after `__init__`."""
    dataset = dataset_class(data.rows_path)
    for name, value in getattr(dataset, "__dict__", {}).items():
        if _is_open(value):
            return (
                f"`self.{name}` is open after `__init__`: keep the path, and open at the first "
                "access"
            )
        size = getattr(value, "nbytes", 0)
        if isinstance(size, int) and size > _SMALL:
            return (
                f"`self.{name}` holds {format_bytes(size)} after `__init__`: the constructor keeps "
                "the path, the accessor reads"
            )
    return None


def pickles_small(dataset_class: Any, data: Any) -> str | None:
    """Find out whether the dataset pickles to less than 10 KiB, also after it was used."""
    dataset = dataset_class(data.rows_path)
    for moment, advice in (
        ("after `__init__`", "keep the path, not the rows"),
        ("after the first access", "leave what is open out of `__getstate__`"),
    ):
        try:
            size = len(pickle.dumps(dataset))
        except Exception as error:  # noqa: BLE001 - whatever is in the dataset may refuse
            return f"it cannot be pickled {moment} ({error}): {advice}"
        if size > _SMALL:
            return f"it pickles to {format_bytes(size)} {moment}: {advice}"
        dataset[0]
    travelled = pickle.loads(pickle.dumps(dataset))
    if len(travelled) != data.rows:
        return "its length is wrong after pickling: leave out only what is open"
    if data.count_wrong(_row(travelled, 0)[None], [0]):
        return "its first row is wrong after pickling: a copy must open the file for itself"
    return None


def rows_are_copies(dataset_class: Any, data: Any) -> str | None:
    """Find out whether a row may be written to, and nothing else changes."""
    dataset = dataset_class(data.rows_path)
    advice = "return a copy, with `np.array(...)`"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of the very mistake that is looked for here
        first, second = _row(dataset, 0), _row(dataset, 0)
    if np.shares_memory(first, second):
        return f"two looks at one row share their memory, so a write changes both: {advice}"
    if _is_open(first):
        return f"the row is a view of the open file: {advice}"
    original = first.copy()
    if not first.flags.writeable or not _changes(first):
        return f"the row is read-only: {advice}"
    wrong = data.count_wrong(_row(dataset, 0)[None], [0])
    first[...] = original  # if that was the file, it is whole again
    return f"a write to the row goes into the file: {advice}" if wrong else None


ALL_PROPERTIES: tuple[DatasetProperty, ...] = (
    has_length,
    rows_are_right,
    opens_lazily,
    pickles_small,
    rows_are_copies,
    checks_its_indices,
)


def _row(dataset: Any, index: int) -> NDArray[Any]:
    """Return the row of an item, as an array that shares its memory."""
    item = dataset[index]
    if isinstance(item, tuple | list):
        item = max(item, key=lambda part: np.asarray(part).size, default=None)
    if item is None or item is ...:
        raise NotImplementedError("`__getitem__`: it returns no row")
    return np.asarray(item)


def _is_open(value: Any) -> bool:
    """Return whether a value is an open file or map, or an array that lies in one."""
    while isinstance(value, np.ndarray):
        if getattr(value, "_mmap", None) is not None:  # a copy of a map is a memmap, too, without
            return True
        value = value.base
    if type(value).__module__.split(".")[0] == "h5py":
        return bool(value)  # a closed file is false
    if isinstance(value, IOBase):
        return not value.closed
    return isinstance(value, mmap.mmap)


def _changes(row: NDArray[Any]) -> bool:
    """Change the first value of a row; return whether that was possible.

    A plain write to a tensor in a read-only map ends the process. So the system writes, from a
    pipe, and refuses where we would crash.
    """
    target = row[(slice(0, 1),) * row.ndim]
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as source, open(writing, "wb", buffering=0) as sink:  # noqa: PTH123
        sink.write(bytes(255 - byte for byte in target.tobytes()))
        try:
            return source.readinto(memoryview(cast(Any, target))) == target.nbytes
        except OSError:
            return False
