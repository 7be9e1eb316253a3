"""A lock between processes that the system frees when its holder dies, however it dies."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def try_to_lock(descriptor: int) -> bool:
    """Take the lock of an open file until it is closed; return whether it could be had."""
    taken = OSError if sys.platform == "win32" else BlockingIOError
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except taken:
        return False
    return True


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold the lock file at `path` within the block, or yield False if someone else holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        # Its last holder may have removed the file between our opening and our locking it.
        held = try_to_lock(descriptor) and _is_still(path, descriptor)
        try:
            yield held
        finally:
            if held:
                with suppress(OSError):  # Windows removes no open file: the next holder will
                    path.unlink()
    finally:
        os.close(descriptor)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def wait_for_lock(path: Path) -> Iterator[None]:
    """Hold the lock file at `path` within the block; say so once if that means waiting."""
    told = False
    while True:
        with try_lock(path) as held:
            if held:
                yield
                return
        if not told:
            sys.stderr.write(f"another process makes this data in {path.parent}: waiting for it\n")
            told = True
        time.sleep(0.05)  # asked again: a blocking lock could not be interrupted everywhere
