"""The bytes of a file, read at any place by any thread: through the page cache or past it.

For a file that RAM cannot hold, the page cache is only work: its pages push each other out before
they are wanted again. With O_DIRECT the disk itself writes into our memory, past the cache. That is
slow where the pages of this memory lie scattered, so each thread has a bounce buffer in huge pages
to read into, and copies from there.
"""

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO

import numpy as np
from numpy.typing import NDArray

from helpers.loaders.columns import Column
from helpers.system.files import named

Bytes = NDArray[np.uint8]
ReadAt = Callable[[int, Bytes], None]  # fills an array from a place in the file

_PAGE = 4096  # past the page cache, a read begins and ends with one, in the file and in memory
_HUGE_PAGE = 1 << 21
_BOUNCE_BYTES = 1 << 20  # of each thread; so large a read had the disk that we tried at its best


def make_bounce_buffers(count: int) -> list[Bytes]:
    """Return memory for so many threads to read past the page cache into."""
    if not hasattr(os, "O_DIRECT"):
        return [np.empty(0, np.uint8)] * count  # nobody can
    size, flags = count * _BOUNCE_BYTES + _HUGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1, size, flags=flags)
    with suppress(OSError, AttributeError):  # a system without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(memory, np.uint8)
    first = -whole.ctypes.data % _HUGE_PAGE
    return [whole[first + number * _BOUNCE_BYTES :][:_BOUNCE_BYTES] for number in range(count)]


@contextmanager
def open_at(column: Column, bounce: Bytes | None) -> Iterator[ReadAt]:
    """Open a column's file for one thread, past the page cache if it has a bounce buffer for that.

    Raises RuntimeError where the file is not the one that was noted.
    """
    with open_raw(column, past_cache=bounce is not None) as file:
        column.check_unchanged(file.fileno())
        yield partial(_read_bytes, file) if bounce is None else partial(_read_pages, file, bounce)


def open_raw(column: Column, *, past_cache: bool) -> FileIO:
    """Open a column's file, past the page cache or not. Raises RuntimeError if it was removed."""
    extra = os.O_DIRECT if past_cache else 0

    def opener(path: str, flags: int) -> int:
        return os.open(path, flags | extra)

    try:
        return open(column.path, "rb", buffering=0, opener=opener)
    except FileNotFoundError:
        column.check_unchanged()  # says that it was removed
        raise
    except OSError as error:
        raise named(column.path, error) from error


def can_bypass(column: Column) -> bool:
    """Return whether the file system can, by trying: on Linux most of those on disks do."""
    try:
        with open_raw(column, past_cache=True) as file:
            _read_pages(file, make_bounce_buffers(1)[0], 0, np.empty(1, np.uint8))
    except (AttributeError, OSError):  # no such flag, no such reading
        return False
    return True


def _read_bytes(file: FileIO, offset: int, into: Bytes) -> None:
    file.seek(offset)
    while len(into):  # one call may read less than was asked for
        count = file.readinto(into.data)
        _check_end(count, into)
        into = into[count:]


def _read_pages(file: FileIO, bounce: Bytes, offset: int, into: Bytes) -> None:
    while len(into):
        skipped = offset % _PAGE
        file.seek(offset - skipped)
        pages = -(-(skipped + len(into)) // _PAGE)
        count = file.readinto(bounce[: pages * _PAGE].data) - skipped
        _check_end(count, into)
        part = bounce[skipped : skipped + count][: len(into)]
        into[: len(part)] = part
        into, offset = into[len(part) :], offset + len(part)


def _check_end(count: int, into: Bytes) -> None:
    if count <= 0:
        raise OSError(f"the file ended {len(into):,} bytes too early")
