"""The page cache of one file: how much of it is in RAM, and how to drop it without privileges.

A benchmark that reads a file twice measures RAM the second time. `evict` makes a cold start.
"""

import ctypes
import errno
import mmap
import os
from dataclasses import dataclass
from pathlib import Path

from helpers.system.files import errors_named, regular_file
from helpers.units import format_bytes

_WINDOW = 1 << 28  # one map of a file larger than RAM would be refused under strict overcommit
_NOTHING_TO_WRITE = (errno.EINVAL, errno.EROFS)  # what fsync says on a read-only image
_TRIES = 5  # pages that are just being written or read stay the first time


@dataclass(frozen=True)
class Eviction:
    """What dropping one file from the page cache did. Bytes; None where the system cannot tell."""

    path: Path
    file_bytes: int
    resident_before: int | None
    resident_after: int | None
    possible: bool = True  # False where the system has no call for it

    def __repr__(self) -> str:
        if not self.possible:
            return (
                f"{self.path.name}: this system cannot drop a file from its page cache, "
                "so what follows may be warm"
            )
        if self.resident_before is None or self.resident_after is None:
            return f"{self.path.name}: dropped; the system does not tell how much was cached"
        line = (
            f"{self.path.name}: {format_bytes(self.resident_before)} cached, "
            f"{format_bytes(self.resident_after)} stayed"
        )
        if self.resident_after:
            line += ": a process still maps it (close it or end that process), or it lies in RAM"
        return line


def evict(path: str | Path) -> Eviction:
    """Drop a file's pages from the page cache, as a reboot would, and say what stayed.

    Pages that a living process maps stay, and so does a file on a RAM disk. Raises OSError, naming
    the path, the cause and the next step, where it is missing, not a file, or not readable.
    """
    path = regular_file(path)
    size, before = path.stat().st_size, resident_bytes(path)
    if not hasattr(os, "posix_fadvise"):  # macOS, Windows
        return Eviction(path, size, before, before, possible=False)
    after: int | None = before
    for _ in range(_TRIES):
        _drop(path)
        after = resident_bytes(path)
        if not after:
            break
    return Eviction(path, size, before, after)


def resident_bytes(path: str | Path, *, at_most_bytes: int | None = None) -> int | None:
    """Return how many bytes of a file, or of its beginning, are in the page cache.

    None where the system does not tell: on Windows, and for a file that is neither ours nor ours
    to write, of which the kernel says that all of it is there. Raises OSError as `evict` does.
    """
    path = regular_file(path)
    mincore = _mincore()
    if mincore is None or not _may_ask(path):
        return None
    with errors_named(path, "looked at in the page cache"), path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if at_most_bytes is not None:
            size = min(size, at_most_bytes)
        found = 0
        for start in range(0, size, _WINDOW):
            found += _resident(mincore, file.fileno(), start, min(_WINDOW, size - start))
    return min(found, size)  # the last page is counted whole


def _drop(path: Path) -> None:
    with errors_named(path, "dropped from the page cache"), path.open("rb") as file:
        try:
            os.fsync(file.fileno())  # a page that waits to be written cannot be dropped
        except OSError as error:
            if error.errno not in _NOTHING_TO_WRITE:
                raise
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _mincore() -> "ctypes._NamedFuncPointer | None":
    if os.name != "posix":
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "mincore", None)
    if function is not None:
        function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    return function


def _may_ask(path: Path) -> bool:
    return os.access(path, os.W_OK) or path.stat().st_uid == os.geteuid()


def _resident(mincore: "ctypes._NamedFuncPointer", file: int, start: int, length: int) -> int:
    """Return the resident bytes of a part, in whole pages, without touching a page of it."""
    pages = -(-length // mmap.PAGESIZE)
    answer = ctypes.create_string_buffer(pages)
    # Writable only so that ctypes gives its address: a private map, and nothing writes to it.
    with mmap.mmap(file, length, access=mmap.ACCESS_COPY, offset=start) as window:
        first = ctypes.c_char.from_buffer(window)
        failed = mincore(ctypes.addressof(first), length, answer)
        del first  # else the map could not be closed
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    # Only the lowest bit of each answer means anything.
    lowest = int.from_bytes(b"\1" * pages, "little")
    return (int.from_bytes(answer.raw, "little") & lowest).bit_count() * mmap.PAGESIZE
