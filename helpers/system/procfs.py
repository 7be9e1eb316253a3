"""What Linux tells about one process, read cheaply from /proc.

A kept descriptor of `status` is read again in place: cheaper than opening it, and it belongs to
that one process for good, so a process number that is used again is never mistaken for it.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

_PPID = re.compile(rb"\nPPid:\s+(\d+)")
_STATUS = re.compile(
    rb"\nVmRSS:\s+(\d+) kB\nRssAnon:\s+(\d+) kB\nRssFile:\s+(\d+) kB\nRssShmem:\s+(\d+) kB"
)
_ROLLUP = re.compile(
    rb"\nRss:\s+(\d+) kB.*\nPss_Anon:\s+(\d+) kB\nPss_File:\s+(\d+) kB\nPss_Shmem:\s+(\d+) kB",
    re.DOTALL,
)
_READ = re.compile(rb"\nread_bytes: (\d+)")
_ENOUGH = 1 << 16  # more than any of these files holds


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """One process in one reading. An exact reading shares pages out, a cheap one does not."""

    pid: int
    ppid: int
    anonymous_bytes: int
    file_bytes: int
    shared_bytes: int
    rss_bytes: int


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, _ENOUGH)
    finally:
        os.close(descriptor)


def _look(pid: int, ppid: int, kibibytes: re.Match[bytes]) -> ProcessMemory:
    rss, anonymous, file, shared = (int(group) * 1024 for group in kibibytes.groups())
    return ProcessMemory(pid, ppid, anonymous, file, shared, rss)


class Process:
    """One process. Making it, and looking at it, raise OSError when there is no such process."""

    def __init__(self, pid: int, proc: str) -> None:
        self.pid = pid
        self.ppid = 0  # as last seen: it changes when the parent dies
        self._folder = f"{proc}/{pid}"
        self._status = os.open(f"{self._folder}/status", os.O_RDONLY)
        try:
            self._io: int | None = os.open(f"{self._folder}/io", os.O_RDONLY)
        except OSError:  # another user's, or a Linux built without it
            self._io = None

    def cheap(self) -> ProcessMemory | None:
        """Return the process's own count of its pages, or None for a zombie, which has none."""
        text = os.pread(self._status, _ENOUGH, 0)
        ppid, kinds = _PPID.search(text), _STATUS.search(text)
        self.ppid = int(ppid[1]) if ppid else 0
        return _look(self.pid, self.ppid, kinds) if kinds else None

    def exact(self) -> ProcessMemory:
        """Return the process's share of every page it maps (PSS).

        Opened anew each time: this file belongs to the memory map, and exec replaces that.
        """
        kinds = _ROLLUP.search(_read(f"{self._folder}/smaps_rollup"))
        if kinds is None:  # a zombie maps nothing
            raise ProcessLookupError(f"process {self.pid} has ended")
        return _look(self.pid, self.ppid, kinds)

    def read_bytes(self) -> int | None:
        """Return what it, its threads and the children it has waited for read from the disk."""
        found = _READ.search(os.pread(self._io, _ENOUGH, 0)) if self._io is not None else None
        return int(found[1]) if found else None

    def children(self) -> list[int]:
        """Return the children of all its threads."""
        found = []
        try:
            with os.scandir(f"{self._folder}/task") as tasks:
                for task in tasks:
                    found += _read(f"{task.path}/children").split()
        except OSError:  # a thread or the process ended while we looked
            pass
        return [int(pid) for pid in found]

    def close(self) -> None:
        """Give the descriptors back."""
        os.close(self._status)
        if self._io is not None:
            os.close(self._io)


def lists_children(proc: str) -> bool:
    """Return whether this Linux lists a thread's children."""
    return Path(proc, "thread-self", "children").exists()


def reports_pss(proc: str) -> bool:
    """Return whether this Linux shares pages out by kind (Linux 5.4 and later)."""
    return _tells(f"{proc}/self/smaps_rollup", _ROLLUP)


def reports_kinds(proc: str) -> bool:
    """Return whether there is a /proc that tells anonymous, file-backed and shared pages apart."""
    return _tells(f"{proc}/self/status", _STATUS)


def _tells(path: str, pattern: re.Pattern[bytes]) -> bool:
    try:
        return pattern.search(_read(path)) is not None
    except OSError:
        return False
