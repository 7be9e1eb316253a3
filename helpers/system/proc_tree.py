"""A process tree on Linux: who lives in it, and what it has read from the disk."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from helpers.system.processes import places
from helpers.system.procfs import Process, ProcessMemory, lists_children, reports_pss

Pids = Callable[[], Iterable[int]]


class ProcTree:
    """A process and its descendants.

    A process stays in the tree when its parent dies: it was seen before, and its descriptors
    tell whether it still lives. One that was never seen before that belongs to the tree all the
    same where it comes to an `adopter`, all of whose children do.
    """

    def __init__(self, pid: int, pids: Pids | None, proc: str, adopter: int = 0) -> None:
        self._proc = proc
        self._pids = pids
        self._scans = not lists_children(proc)
        self._shares_out = reports_pss(proc)
        self._known: dict[int, Process] = {}
        self._reads = DiskReads()
        self._open(pid)
        self._adopter = Process(adopter, proc) if adopter else None

    def cheap(self) -> tuple[ProcessMemory, ...]:
        """Return every living process as its own counters tell."""
        if self._pids is not None:
            return self._listed(self._pids)
        found = places(Path(self._proc)) if self._scans else {}
        readings = []

        def unknown(parent: Process) -> list[int]:
            own = [pid for pid, (above, _) in found.items() if above == parent.pid]
            own = own if self._scans else parent.children()
            return [child for child in own if child not in self._known and self._open(child)]

        queue = list(self._known) + (unknown(self._adopter) if self._adopter else [])
        for pid in queue:  # grows as children are found
            if reading := self._cheap(pid):
                readings.append(reading)
                queue += unknown(self._known[pid])
        return tuple(readings)

    def exact(self, cheap: tuple[ProcessMemory, ...]) -> tuple[tuple[ProcessMemory, ...], bool]:
        """Return the processes with shared pages shared out, and whether all of them were."""
        if not self._shares_out:
            return cheap, False
        readings, all_exact = [], True
        for reading in cheap:
            try:
                readings.append(self._known[reading.pid].exact())
            except PermissionError:  # another user's: its own count must do
                readings.append(reading)
                all_exact = False
            except OSError:  # it has ended, and holds nothing any more
                continue
        return tuple(readings), all_exact

    def read_bytes(self) -> int | None:
        """Return the bytes that the tree has read from the disk, also by processes now gone."""
        return self._reads.total(self._known)

    def close(self) -> None:
        """Give back the open descriptors."""
        for process in self._known.values():
            process.close()
        self._known.clear()
        if self._adopter:
            self._adopter.close()

    def _listed(self, pids: Pids) -> tuple[ProcessMemory, ...]:
        # A zombie is on no cgroup's list, yet stays known: its parent has not taken over its reads.
        try:
            listed = set(pids())
        except OSError:  # the cgroup went with its last process
            listed = set()
        known = [pid for pid in sorted(listed) if pid in self._known or self._open(pid)]
        return tuple(reading for pid in known if (reading := self._cheap(pid)) is not None)

    def _cheap(self, pid: int) -> ProcessMemory | None:
        try:
            return self._known[pid].cheap()
        except OSError:  # it has ended
            self._known.pop(pid).close()
            return None

    def _open(self, pid: int) -> bool:
        try:
            self._known[pid] = Process(pid, self._proc)
        except OSError:  # it ended while we looked
            return False
        return True


class DiskReads:
    """What a tree has read from the disk, each byte counted once, also after a process ended.

    The kernel adds a child's count to its parent's when the parent waits for it. So what is lost
    with a process is compared with what its nearest living ancestor gained, and the rest is kept.
    """

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._parents: dict[int, int] = {}
        self._kept = 0
        self._told = False

    def total(self, known: dict[int, Process]) -> int | None:
        """Return the bytes so far; drops processes from `known` that have just ended."""
        values = self._read_all(known)
        lost: defaultdict[int | None, int] = defaultdict(int)
        for pid in self._last.keys() - values.keys():
            lost[self._heir(pid, values)] += self._last[pid]
        for heir, size in lost.items():
            gained = 0 if heir is None else values[heir] - self._last.get(heir, 0)
            self._kept += max(size - gained, 0)
        self._last = values
        self._told = self._told or bool(values)
        return self._kept + sum(values.values()) if self._told else None

    def _read_all(self, known: dict[int, Process]) -> dict[int, int]:
        """Read parents before children, again from the start when one has just ended.

        So no value holds a child's count that is also counted as the child's own.
        """
        while True:
            values = {}
            for pid, process in known.items():
                self._parents[pid] = process.ppid
                try:
                    value = process.read_bytes()
                except OSError:
                    break
                if value is not None:
                    values[pid] = value
            else:
                return values
            known.pop(pid).close()

    def _heir(self, pid: int, living: dict[int, int]) -> int | None:
        for _ in range(len(self._parents)):
            pid = self._parents.get(pid, 0)
            if pid in living:
                return pid
        return None
