"""How many bytes a call makes this process ask of the system, and how long it takes.

Counted is every read, whether the disk or the page cache answers it; touching a memory map is none.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil


@dataclass(frozen=True)
class ReadCount:
    """What one call returned, asked the system for, and took. None: this system does not tell."""

    value: Any
    read_bytes: int | None
    seconds: float

    @property
    def amplification(self) -> float:
        """Return bytes read for each byte that the call said it used; nan where unknown."""
        return float("nan") if self.read_bytes is None else self.read_bytes / self.value


def count_reads(function: Callable[..., Any], *args: Any) -> ReadCount:
    """Call `function(*args)` here and return what it returned, read (bytes) and took (seconds).

    For `amplification` the function returns the bytes that it used. Linux counts what files gave
    (`rchar`), Windows every read of this process; macOS tells nothing.
    """
    before, start = _bytes_read(), time.perf_counter()
    value = function(*args)
    seconds, after = time.perf_counter() - start, _bytes_read()
    read = None if before is None or after is None else after - before
    return ReadCount(value, read, seconds)


def _bytes_read() -> int | None:
    try:
        counters: Any = psutil.Process().io_counters()
    except (AttributeError, psutil.Error):  # macOS; a container that hides it
        return None
    return int(getattr(counters, "read_chars", counters.read_bytes))
