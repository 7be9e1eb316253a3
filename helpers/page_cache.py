"""The page cache of one file: how much of it is in RAM, and how to drop it without privileges.

A benchmark that reads a file twice measures RAM the second time. `evict` makes a cold start.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from helpers.system.files import errors_named, regular_file
from helpers.system.page_cache_calls import (
    drop_by_fadvise,
    drop_by_msync,
    drop_by_opening,
    resident_by_cachestat,
    resident_by_mincore,
)
from helpers.units import format_bytes

NEARLY_NONE = 0.01  # of a file: what is left of a cold one
NEARLY_ALL = 0.9  # of a file: what was read of it came out of RAM the second time
_TRIES = 5  # pages that are just being written or read stay the first time


@dataclass(frozen=True)
class Eviction:
    """What dropping one file from the page cache did. Bytes; None where the system cannot tell."""

    path: Path
    file_bytes: int
    resident_before: int | None
    resident_after: int | None
    possible: bool = True  # False where the system has no call for it, or refused
    resident_at_end: int | None = None  # of the experiment for which it was dropped

    @property
    def why_not_cold(self) -> str:
        """Return why the file may be warm, or "" where (nearly) nothing of it stayed."""
        if not self.possible:
            return f"this system cannot drop {self.path.name} from its page cache"
        stayed = self.resident_after or 0
        if stayed <= NEARLY_NONE * self.file_bytes:
            return ""
        of = format_bytes(self.file_bytes)
        return f"{format_bytes(stayed)} of {of} of {self.path.name} stayed in the page cache"

    @property
    def why_in_ram(self) -> str:
        """Return that the page cache held the file in the end, or "" where it could not."""
        held = self.resident_at_end or 0
        if held < NEARLY_ALL * self.file_bytes or not held:
            return ""
        name, of = self.path.name, format_bytes(self.file_bytes)
        return f"{format_bytes(held)} of {of} of {name} ended in the page cache: there was room"

    def at_end(self) -> "Eviction":
        """Return the same with what is cached now; None where the file is gone or none can tell."""
        try:
            return replace(self, resident_at_end=resident_bytes(self.path))
        except OSError:
            return self

    def __repr__(self) -> str:
        if not self.possible:
            return f"{self.why_not_cold}: what follows may be warm"
        if self.resident_before is None or self.resident_after is None:
            return f"{self.path.name}: dropped; the system does not tell how much was cached"
        before, after = format_bytes(self.resident_before), format_bytes(self.resident_after)
        why = ": a process still maps it (close it or end that process), or it lies in RAM"
        return f"{self.path.name}: {before} cached, {after} stayed{why * bool(self.resident_after)}"


def evict(path: str | Path) -> Eviction:
    """Drop a file's pages from the page cache, as a reboot would, and say what stayed.

    Pages that a living process maps stay, and so does a file on a RAM disk. The calls of macOS and
    Windows are not tested there. Raises OSError, naming the path, the cause and the next step,
    where it is missing, not a file, or not readable.
    """
    path = regular_file(path)
    size, before = path.stat().st_size, resident_bytes(path)
    after: int | None = before
    for _ in range(_TRIES):
        if not _drop(path):
            return Eviction(path, size, before, after, possible=False)
        after = resident_bytes(path)
        if not after:
            break
    return Eviction(path, size, before, after)


def resident_bytes(path: str | Path, *, at_most_bytes: int | None = None) -> int | None:
    """Return how many bytes of a file, or of its beginning, are in the page cache.

    None where the system does not tell: on Windows, and mostly for a file that is neither ours nor
    ours to write, of which mincore says that all of it is there. Raises OSError as `evict` does.
    """
    path = regular_file(path)
    with errors_named(path, "looked at in the page cache"), path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if at_most_bytes is not None:
            size = min(size, at_most_bytes)
        found = resident_by_mincore(file.fileno(), size) if _may_ask(path) else None
        if found is None:
            found = resident_by_cachestat(file.fileno(), size)
    return None if found is None else min(found, size)  # the last page is counted whole


def _drop(path: Path) -> bool:
    with errors_named(path, "dropped from the page cache"):
        return drop_by_fadvise(path) or drop_by_msync(path) or drop_by_opening(path)


def _may_ask(path: Path) -> bool:
    owner = getattr(os, "geteuid", lambda: None)()  # not on Windows
    return os.access(path, os.W_OK) or path.stat().st_uid == owner
