"""What a good dataset reads and keeps, as a property: it returns a hint, or None."""

import gc
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helpers.hints import Mistake
from helpers.read_counts import count_reads
from helpers.units import format_bytes

_IMPORT_BYTES = 12 * 2**20  # h5py takes as much, when a step imports it
_HANDED_OUT_BYTES = 8 * 2**20
_OWN_MEMORY = r"RssAnon:\s+(\d+) kB"


def reads_little(dataset_class: Any, data: Any) -> str | None:
    """Find out whether the dataset reads what it is asked for, and keeps none of it.

    What counts is what the process reads and the memory it takes, wherever the dataset hides it.
    Of data below 24 MiB, and where the system is not Linux, this cannot tell.
    """
    if data.nbytes < 2 * _IMPORT_BYTES:
        return None
    allowed = max(data.nbytes // 4, _IMPORT_BYTES)
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
    if min(taken[2:]) > allowed:
        return "every access reads the whole file: open a map once, and copy one row out of it"
    for (name, _, advice), size in zip(steps, taken, strict=True):
        if size > allowed:
            size = min(size, data.nbytes)
            share = f"{format_bytes(size)} of a file of {format_bytes(data.nbytes)}"
            return f"{name} reads {share}: {advice}"
    return _hint_at_kept_rows(made[0], data)


def row_of(dataset: Any, index: int) -> NDArray[Any]:
    """Return the row of an item, as an array that shares its memory."""
    item = dataset[index]
    if isinstance(item, tuple | list):
        item = max(item, key=lambda part: np.asarray(part).size, default=None)
    if item is None or item is ...:
        raise Mistake("fill in `__getitem__`: it returns no row")
    return np.asarray(item)


def _hint_at_kept_rows(dataset: Any, data: Any) -> str | None:
    """Read some rows in order, and look at what stays in memory of its own."""
    before = _status(_OWN_MEMORY)
    row = row_of(dataset, 0).nbytes
    count = min(data.rows, _HANDED_OUT_BYTES // max(row, 1))
    for index in range(count):
        dataset[index]
    gc.collect()
    kept = (_status(_OWN_MEMORY) - before) * 1024
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
    memory = _status(r"VmRSS:\s+(\d+)")
    reads = count_reads(step).read_bytes or 0
    return max(reads, (_status(r"VmHWM:\s+(\d+)") - memory) * 1024)


def _status(pattern: str) -> int:
    """Return a number that the system tells of this process, or 0 where it does not."""
    try:
        found = re.search(pattern, Path("/proc/self/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0
