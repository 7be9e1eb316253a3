"""Reading the bytes of a file at any place, by any thread, through the page cache or past it.

For a file that RAM cannot hold, the page cache is only work: its pages push each other out before
they are wanted again. Past it the disk itself writes into our memory. It does so page by page, and
where these lie scattered that can take longer than the reading; so they are part of a huge page.
"""

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helpers.reading.files import FileIdentity, check_unchanged, identify

Bytes = NDArray[np.uint8]
ReadAt = Callable[[int, Bytes], None]  # fills an array from a place in the file

_PAGE = 4096  # past the page cache, a read begins and ends with one, in the file and in memory
_HUGE_PAGE = 1 << 21
MOST_ROOMS = 64


def can_read_past_cache(path: Path) -> bool:
    """Return whether the file system can, by trying: on Linux most of those on disks do."""
    try:
        with open_file(path, identify(path), make_rooms(1)[0]) as read_at:
            read_at(0, np.empty(1, np.uint8))
    except (AttributeError, OSError):
        return False
    return True


def make_rooms(count: int) -> list[Bytes]:
    """Return memory for threads to read past the page cache into: in all, one huge page."""
    if not hasattr(os, "O_DIRECT"):
        return [np.empty(0, np.uint8)] * count  # nobody can
    memory = mmap.mmap(-1, 2 * _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(memory, np.uint8)
    first = -whole.ctypes.data % _HUGE_PAGE
    size = _HUGE_PAGE // count // _PAGE * _PAGE
    return [whole[first + number * size :][:size] for number in range(count)]


@contextmanager
def open_file(path: Path, noted: FileIdentity, room: Bytes | None) -> Iterator[ReadAt]:
    """Open a file for one thread, past the page cache if it has room for that.

    Raises RuntimeError where the file is not the one that was noted.
    """

    def opener(path: str, flags: int) -> int:
        return os.open(path, flags if room is None else flags | os.O_DIRECT)

    with open(path, "rb", buffering=0, opener=opener) as file:
        check_unchanged(path, noted, file.fileno())
        yield partial(_read_bytes, file) if room is None else partial(_read_pages, file, room)


def _read_bytes(file: FileIO, offset: int, into: Bytes) -> None:
    file.seek(offset)
    while len(into):  # one call may read less than was asked for
        count = file.readinto(into.data)
        _check_end(count, into)
        into = into[count:]


def _read_pages(file: FileIO, room: Bytes, offset: int, into: Bytes) -> None:
    while len(into):
        skipped = offset % _PAGE
        file.seek(offset - skipped)
        pages = -(-(skipped + len(into)) // _PAGE)
        count = file.readinto(room[: pages * _PAGE].data) - skipped
        _check_end(count, into)
        part = room[skipped : skipped + count][: len(into)]
        into[: len(part)] = part
        into, offset = into[len(part) :], offset + len(part)


def _check_end(count: int, into: Bytes) -> None:
    if count <= 0:
        raise OSError(f"the file ended {len(into):,} bytes too early")
