"""What a good dataset reads, holds open, sends to workers and hands out, as properties.

Like those of `dataset_properties`, which has them all: each returns a hint, or None.
"""

import gc
import mmap
import os
import pickle
import re
import warnings
from collections.abc import Callable
from io import IOBase
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from helpers.hints import Mistake
from helpers.units import format_bytes

_SMALL = 10 * 1024
_TELLING_BYTES = 32 * 2**20  # a quarter of less does not stand out from what an import takes
_HANDED_OUT_BYTES = 8 * 2**20
_OWN_MEMORY = r"RssAnon:\s+(\d+) kB"


def reads_little(dataset_class: Any, data: Any) -> str | None:
    """Find out whether the dataset reads what it is asked for, and keeps none of it.

    What counts is what the process reads and the memory it takes, wherever the dataset hides it.
    Of data below 32 MiB, and where the system is not Linux, this cannot tell.
    """
    if data.nbytes < _TELLING_BYTES:
        return None
    made: list[Any] = []
    steps: tuple[tuple[str, Callable[[], Any], str], ...] = (
        (
            "the constructor",
            lambda: made.append(dataset_class(data.rows_path)),
            "it opens the file to look, with `mmap_mode`, and keeps the path",
        ),
        ("`len`", lambda: type(made[0]).__len__(made[0]), "note the length in the constructor"),
        ("the first access", lambda: made[0][0], "open a map there, and copy one row out of it"),
        ("an access", lambda: made[0][data.rows // 2], "copy one row out of the map"),
    )
    taken = [_taken_by(step) for _, step, _ in steps]
    if min(taken[2:]) > data.nbytes // 4:
        return "every access reads the whole file: open a map once, and copy one row out of it"
    for (name, _, advice), size in zip(steps, taken, strict=True):
        if size > data.nbytes // 4:
            size = min(size, data.nbytes)
            share = f"{format_bytes(size)} of a file of {format_bytes(data.nbytes)}"
            return f"{name} reads {share}: {advice}"
    return _hint_at_kept_rows(made[0], data)


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


def row_of(dataset: Any, index: int) -> NDArray[Any]:
    """Return the row of an item, as an array that shares its memory."""
    item = dataset[index]
    if isinstance(item, tuple | list):
        item = max(item, key=lambda part: np.asarray(part).size, default=None)
    if item is None or item is ...:
        raise Mistake("fill in `__getitem__`: it returns no row")
    return np.asarray(item)


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


def _hint_at_kept_rows(dataset: Any, data: Any) -> str | None:
    """Read some rows in order, and look at what stays in memory of its own."""
    before = _told("status", _OWN_MEMORY)
    row = row_of(dataset, 0).nbytes
    count = min(data.rows, _HANDED_OUT_BYTES // max(row, 1))
    for index in range(count):
        dataset[index]
    gc.collect()
    kept = (_told("status", _OWN_MEMORY) - before) * 1024
    if 2 * kept > _HANDED_OUT_BYTES:
        return f"after {count:,} rows it holds {format_bytes(kept)} more: return rows, keep none"
    return None


def _taken_by(step: Callable[[], Any]) -> int:
    """Return the bytes that a step reads, or takes of memory at its most: the larger of both.

    A read counts wherever it goes; memory counts pages of a map, and what is free again.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    except OSError:  # not Linux, or a sandbox
        step()
        return 0
    read, memory = _told("io", r"rchar: (\d+)"), _told("status", r"VmRSS:\s+(\d+)")
    step()
    peak = _told("status", r"VmHWM:\s+(\d+)")
    return max(_told("io", r"rchar: (\d+)") - read, (peak - memory) * 1024)


def _told(file: str, pattern: str) -> int:
    """Return a number from a file about this process, or 0 where there is none."""
    try:
        found = re.search(pattern, Path("/proc/self", file).read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


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
