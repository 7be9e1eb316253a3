"""What the systems have to ask for a file's cached pages, and to drop them: one function a call.

Each says None or False where its system has no such call, or refuses. Those of macOS and Windows
follow the systems' documentation; they have been tested with made-up systems only, not there.
"""

import ctypes
import errno
import mmap
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_WINDOW = 1 << 28  # one map of a file larger than RAM would be refused under strict overcommit
_NOTHING_TO_WRITE = (errno.EINVAL, errno.EROFS)  # what fsync says on a read-only image
_CANNOT_MAP = (errno.ENODEV, errno.EACCES)  # what mmap says on some file systems
_CACHESTAT = 451  # the system call's number on x86, ARM, RISC-V and POWER; elsewhere it is refused
_MS_INVALIDATE = 0x2  # of macOS
_GENERIC_READ, _SHARE_ALL, _OPEN_EXISTING, _NO_BUFFERING = 0x80000000, 0x7, 3, 0x20000000


def resident_by_mincore(file: int, size: int) -> int | None:
    """Return the bytes, in whole pages, of a file's first `size` that are cached: Linux, macOS."""
    if os.name != "posix" or (mincore := _function("mincore")) is None:
        return None
    mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    found = 0
    try:
        for address, length in _windows(file, size):
            pages = -(-length // mmap.PAGESIZE)
            answer = ctypes.create_string_buffer(pages)
            if mincore(address, length, answer):
                return None
            # Only the lowest bit of each answer means anything.
            lowest = int.from_bytes(b"\1" * pages, "little")
            found += (int.from_bytes(answer.raw, "little") & lowest).bit_count()
    except OSError as error:
        if error.errno not in _CANNOT_MAP:
            raise
        return None
    return found * mmap.PAGESIZE


def resident_by_cachestat(file: int, size: int) -> int | None:
    """Return the same where it need not be mapped, nor, in some kernels, ours: Linux from 6.5."""
    if platform.system() != "Linux" or (syscall := _function("syscall")) is None:
        return None
    asked, answer = (ctypes.c_uint64 * 2)(0, size), (ctypes.c_uint64 * 5)()
    syscall.restype = ctypes.c_long
    failed = syscall(ctypes.c_long(_CACHESTAT), ctypes.c_int(file), asked, answer, ctypes.c_uint(0))
    return None if failed else int(answer[0]) * mmap.PAGESIZE


def drop_by_fadvise(path: Path) -> bool:
    """Drop on Linux. Raises OSError where the file's waiting pages cannot be written."""
    if not hasattr(os, "posix_fadvise"):
        return False
    with path.open("rb") as file:
        try:
            os.fsync(file.fileno())  # a page that waits to be written cannot be dropped
        except OSError as error:
            if error.errno not in _NOTHING_TO_WRITE:
                raise
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return True


def drop_by_msync(path: Path) -> bool:
    """Drop on macOS: a map of the file is told that its pages are out of date. Not tested there."""
    if platform.system() != "Darwin" or (msync := _function("msync")) is None:
        return False
    msync.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    try:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            windows = _windows(file.fileno(), os.fstat(file.fileno()).st_size)
            return not any(msync(address, size, _MS_INVALIDATE) for address, size in windows)
    except OSError:
        return False


def drop_by_opening(path: Path) -> bool:
    """Drop on Windows: whoever opens a file without buffers has it purged. Not tested there."""
    library: Callable[..., Any] | None = getattr(ctypes, "WinDLL", None)
    if library is None:
        return False
    kernel = library("kernel32")
    kernel.CreateFileW.restype = ctypes.c_void_p  # half of a handle would be lost in an int
    word, pointer = ctypes.c_uint32, ctypes.c_void_p
    kernel.CreateFileW.argtypes = (ctypes.c_wchar_p, word, word, pointer, word, word, pointer)
    kernel.CloseHandle.argtypes = (pointer,)
    handle = kernel.CreateFileW(
        str(path), _GENERIC_READ, _SHARE_ALL, None, _OPEN_EXISTING, _NO_BUFFERING, None
    )
    if handle in (None, ctypes.c_void_p(-1).value):  # somebody has it open in another way
        return False
    kernel.CloseHandle(handle)
    return True


def _function(name: str) -> Any:
    return getattr(ctypes.CDLL(None, use_errno=True), name, None)


def _windows(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield address and length of one map after the other over a file, without touching a page."""
    for start in range(0, size, _WINDOW):
        length = min(_WINDOW, size - start)
        # Writable only so that ctypes gives its address: a private map, and nothing writes to it.
        with mmap.mmap(file, length, access=mmap.ACCESS_COPY, offset=start) as window:
            first = ctypes.c_char.from_buffer(window)
            try:
                yield ctypes.addressof(first), length
            finally:
                del first  # else the map could not be closed
