"""What the disk gives: the speed of one sequential read, its read-ahead, its free space."""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from helpers.page_cache import NEARLY_NONE, evict, resident_bytes
from helpers.system.files import absolute_path, errors_named
from helpers.units import format_bytes

_NEARLY_ALL = 0.99  # of what was read
_BLOCK_BYTES = 4 * 2**20  # asked for at a time


@dataclass(frozen=True)
class ReadSpeed:
    """One sequential read. `cached_bytes` of it were in the page cache before; None: not known."""

    read_bytes: int
    seconds: float
    cached_bytes: int | None

    @property
    def bytes_per_second(self) -> float:
        """Return the speed of the read."""
        return self.read_bytes / max(self.seconds, 1e-9)

    @property
    def cold(self) -> bool:
        """Return whether nearly all of it had to come from the disk."""
        return self.cached_bytes is not None and self.cached_bytes <= NEARLY_NONE * self.read_bytes

    def __repr__(self) -> str:
        if self.cached_bytes is None:
            how = "cold or warm, this system does not tell"
        elif self.cold or self.cached_bytes >= _NEARLY_ALL * self.read_bytes:
            how = "cold" if self.cold else "warm"
        else:
            how = f"{self.cached_bytes / self.read_bytes:.0%} cached"
        seconds = f"{self.seconds:.0f}" if self.seconds >= 10 else f"{self.seconds:.2g}"
        size, speed = format_bytes(self.read_bytes), format_bytes(self.bytes_per_second)
        return f"{how}: {size} in {seconds} s, {speed}/s"


def sequential_read(
    path: str | Path,
    *,
    cold: bool = True,
    at_most_bytes: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> ReadSpeed:
    """Read a file from its start to its end, or its first bytes, and measure the speed.

    A cold read drops the file from the page cache first. Either way the record says what was
    there when the read began. Raises ValueError for an empty file or a size that is not positive,
    and OSError, naming the path, for a file that cannot be read.
    """
    if at_most_bytes is not None and at_most_bytes < 1:
        raise ValueError(f"at_most_bytes is {at_most_bytes}: pass a positive number of bytes")
    if cold:
        evict(path)
    cached = resident_bytes(path, at_most_bytes=at_most_bytes)
    start = clock()
    read = _read(Path(path), at_most_bytes)
    seconds = clock() - start
    if not read:
        raise ValueError(f"{path} is empty: there is no speed to measure, make the data again")
    return ReadSpeed(read, seconds, cached)


def read_ahead_bytes(path: str | Path, *, system: str = "/sys") -> int | None:
    """Return how far the kernel reads ahead on the device that holds a path.

    None where nobody tells: not on Linux, or no device of its own, as with a container's overlay.
    """
    if os.name != "posix":
        return None
    with errors_named(path, "looked at"):
        device = Path(path).stat().st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    block = Path(system, "dev/block", name).resolve()
    for file in (
        Path(system, "class/bdi", name, "read_ahead_kb"),
        block / "queue/read_ahead_kb",
        block.parent / "queue/read_ahead_kb",  # a partition's queue is its disk's
    ):
        if file.exists():
            return int(file.read_text()) * 1024
    return None


def free_bytes(folder: str | Path) -> int:
    """Return the free disk space for a folder, which need not exist yet."""
    path = absolute_path(folder)
    with errors_named(path, "asked for its free space"):
        while not path.exists():
            path = path.parent
        return shutil.disk_usage(path).free


def _read(path: Path, at_most_bytes: int | None) -> int:
    read, block = 0, memoryview(bytearray(_BLOCK_BYTES))
    with errors_named(path, "read"), path.open("rb", buffering=0) as file:
        left = os.fstat(file.fileno()).st_size if at_most_bytes is None else at_most_bytes
        while left > 0 and (got := file.readinto(block[: min(left, _BLOCK_BYTES)])):
            read += got
            left -= got
    return read
