"""Which file is it, and is it still the same? By its size and times, or by what it holds.

A file that is written to gets a new time before the new bytes can be read. Not so where a program
writes through a memory map: the time changes with the first write to a page after the system has
saved it, in some file systems (tmpfs) never. Nor can we see a change that leaves size and time as
they were, and the samples that `fingerprint` takes.
"""

import hashlib
import os
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from helpers.system.files import errors_named, named, open_regular

_TICK_NS = 20_000_000  # at most, of the clock of file times: twice what Linux has


class Identity(NamedTuple):
    """What tells a file from another one, and from itself before a change."""

    size: int
    mtime_ns: int
    ctime_ns: int  # changes also where a writer sets the time back; and with a link or a mode
    inode: int  # a network's file system may give it anew
    device: int


@dataclass(frozen=True, slots=True)
class NotedFile:
    """A file as it was when a reader was made."""

    path: Path
    identity: Identity
    fingerprint: str

    def check_unchanged(self, file: int | None = None) -> None:
        """Raise RuntimeError where the path, or the file open as it, is not what was noted."""
        path, noted = self.path, self.identity
        try:
            found = identify(path if file is None else file)
            if found == noted or (
                found[:2] == noted[:2] and _fingerprint_of(path, found) == self.fingerprint
            ):
                return
        except FileNotFoundError:
            raise RuntimeError(f"{path} was removed while in use: make the reader again") from None
        except OSError as error:
            raise named(path, error) from error
        if found.inode != noted.inode:
            change = "was replaced by another file"
        elif found.size != noted.size:
            verb = "shrank" if found.size < noted.size else "grew"
            change = f"{verb} from {noted.size:,} to {found.size:,} bytes"
        else:
            change = "was written to"
        raise RuntimeError(f"{path} {change} while in use: make the reader again, and start over")


def note(path: Path) -> NotedFile:
    """Note a file that is to be read from now on. Raises OSError or ValueError where it is none."""
    with open_regular(path) as file:
        identity = identify(file.fileno())
        # A write in the same tick as the last one would leave the time as it is.
        if 0 <= time.time_ns() - max(identity.mtime_ns, identity.ctime_ns) < _TICK_NS:
            time.sleep(_TICK_NS / 1e9)
            identity = identify(file.fileno())
    return NotedFile(path, identity, fingerprint(path))


def identify(file: Path | int) -> Identity:
    """Return the identity of a path, or of the file that is open as a descriptor."""
    stat = os.stat(file)  # noqa: PTH116  # also of a descriptor, and before each batch
    return Identity(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev)


def fingerprint(path: Path) -> str:
    """Return a digest of a file's size and of 16 samples of it: a copy of the file has the same."""
    with open_regular(path) as file, errors_named(path):
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.sha256(f"{size}".encode())
        for sample in range(16):
            file.seek(size * sample // 16)
            digest.update(file.read(4096))
    return digest.hexdigest()


@lru_cache(64)
def _fingerprint_of(path: Path, _identity: Identity) -> str:
    return fingerprint(path)
