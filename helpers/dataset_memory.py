"""What a good dataset holds open, sends to workers and hands out, as properties.

Like those of `dataset_properties`, which has them all: each returns a hint, or None.
"""

import gc
import mmap
import os
import pickle
import warnings
from io import IOBase
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from helpers.dataset_reads import row_of
from helpers.units import format_bytes

_SMALL = 10 * 1024


def opens_lazily(dataset_class: Any, data: Any) -> str | None:
    """Find out whether the dataset holds neither rows nor anything open after `__init__`."""
    gc.collect()
    before = _open_files()
    dataset = dataset_class(data.rows_path)
    for name, value in getattr(dataset, "__dict__", {}).items():
        if is_open(value):
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
    gc.collect()
    for path, _ in _open_files() - before:
        name = Path(path).name
        return f"{name} is open after `__init__`: close it there, and open at the first access"
    return None


def pickles_small(dataset_class: Any, data: Any) -> str | None:
    """Find out whether the dataset pickles to less than 10 KiB, also after it was used."""
    dataset = dataset_class(data.rows_path)
    hint = _hint_at_weight(dataset, "after `__init__`", "keep the path, not the rows")
    if hint:
        return hint
    try:
        row = row_of(dataset, 0)  # pickling must have left the one at home as it was
        advice = "leave what is open out of `__getstate__`"
        hint = _hint_at_weight(dataset, "after the first access", advice)
        if hint:
            return hint
        travelled = pickle.loads(pickle.dumps(dataset))
        if len(travelled) != data.rows:
            return "its length is wrong after pickling: leave out only what is open"
        if not np.array_equal(row_of(travelled, 0), row):
            return "its first row is wrong after pickling: a copy must open the file for itself"
    except (AttributeError, KeyError, TypeError) as error:
        return f"{error}, after pickling: change a copy of `__dict__`, and only what is open"
    return None


def _hint_at_weight(dataset: Any, moment: str, advice: str) -> str | None:
    try:
        size = len(pickle.dumps(dataset))
    except Exception as error:  # noqa: BLE001 - whatever is in the dataset may refuse
        return f"it cannot be pickled {moment} ({error}): {advice}"
    return f"it pickles to {format_bytes(size)} {moment}: {advice}" if size > _SMALL else None


def rows_are_copies(dataset_class: Any, data: Any) -> str | None:
    """Find out whether a row may be written to, and nothing else changes."""
    dataset = dataset_class(data.rows_path)
    advice = "return a copy, with `np.array(...)`"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of the very mistake that is looked for here
        first, second = row_of(dataset, 0), row_of(dataset, 0)
    if np.shares_memory(first, second):
        return f"two looks at one row share their memory, so a write changes both: {advice}"
    if is_open(first):
        return f"the row is a view of the open file: {advice}"
    original = first.copy()
    if not first.flags.writeable or not _changes(first):
        return f"the row is read-only: {advice}"
    changed = not np.array_equal(row_of(dataset, 0), original)
    first[...] = original  # if that was the file, it is whole again
    return f"a write to the row goes into the file: {advice}" if changed else None


def is_open(value: Any) -> bool:
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


def _open_files() -> set[tuple[str, int]]:
    """Return path and number of every open file of this process; a map keeps its file open, too."""
    import psutil  # takes time to import, and only this asks it

    try:
        return {(file.path, file.fd) for file in psutil.Process().open_files()}
    except psutil.Error:
        return set()


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
