"""Which file is it, and is it still the same? By its inode, size and time, or by what it holds."""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple


class Identity(NamedTuple):
    """What tells a file from another one, and from itself before a change."""

    size: int
    mtime_ns: int
    inode: int
    device: int


def identify(file: Path | int) -> Identity:
    """Return the identity of a path, or of the file that is open as a descriptor."""
    stat = os.fstat(file) if isinstance(file, int) else file.stat()
    return Identity(stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_dev)


def check_unchanged(path: Path, noted: Identity, file: int | None = None) -> None:
    """Raise RuntimeError where `path`, or the file open as it, is not what was noted of it."""
    try:
        found = identify(path if file is None else file)
    except FileNotFoundError:
        raise RuntimeError(f"{path} was removed while in use: make the reader again") from None
    if found == noted:
        return
    if (found.inode, found.device) != (noted.inode, noted.device):
        change = "was replaced by another file"
    elif found.size != noted.size:
        verb = "shrank" if found.size < noted.size else "grew"
        change = f"{verb} from {noted.size:,} to {found.size:,} bytes"
    else:
        change = "was written to"
    raise RuntimeError(f"{path} {change} while in use: make the reader again, and start over")


def fingerprint(path: Path) -> str:
    """Return a digest of a file's size and of 16 samples of it: a copy of the file has the same."""
    size = path.stat().st_size
    digest = hashlib.sha256(f"{size}".encode())
    with path.open("rb") as file:
        for sample in range(16):
            file.seek(size * sample // 16)
            digest.update(file.read(4096))
    return digest.hexdigest()
