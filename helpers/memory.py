"""One reading of a process tree's memory, from outside: cheap and often, exact and rarely.

A cheap reading counts a page that three processes share three times. An exact reading shares it out
(PSS). `MemoryMeter.read` corrects cheap readings by the last exact one.
"""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, Self, cast

from helpers.system.proc_tree import ProcTree
from helpers.system.procfs import ProcessMemory, reports_kinds, reports_pss
from helpers.system.psutil_tree import PsutilTree, psutil_measure

MemoryBackend = Literal["auto", "proc", "psutil"]
_EXACT_SHARE = 0.01  # of a core, for exact readings
_WHILE_MOVING = 4  # times that share, while pages stop being shared: nothing else shows it
_SHORTEST_INTERVAL = 0.25
_SHARED_STEP_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """The memory of a whole tree at one moment.

    `exact` is True when every process's figures share out the pages it shares; `cpu_seconds` is
    what the reading cost.
    """

    processes: tuple[ProcessMemory, ...]
    exact: bool
    read_bytes: int | None  # from the disk by all processes so far; None where nobody tells
    cpu_seconds: float = 0.0

    @property
    def anonymous_bytes(self) -> int:
        """Return memory that only the process itself filled: no reclaim can free it."""
        return sum(process.anonymous_bytes for process in self.processes)

    @property
    def file_bytes(self) -> int:
        """Return mapped pages of files: page cache, which the kernel may take back."""
        return sum(process.file_bytes for process in self.processes)

    @property
    def shared_bytes(self) -> int:
        """Return shared memory: shared tensors, /dev/shm."""
        return sum(process.shared_bytes for process in self.processes)

    @property
    def rss_bytes(self) -> int:
        """Return the sum of every RSS: a shared page counts once for each process."""
        return sum(process.rss_bytes for process in self.processes)


class MemoryMeter:
    """Read the memory of a process and its descendants again and again, for one experiment.

    `pids` replaces the search for descendants, for instance by the list that a cgroup keeps;
    `adopter` is the process that inherits orphans: what is below it belongs to the tree.
    """

    def __init__(
        self,
        pid: int,
        *,
        pids: Callable[[], Iterable[int]] | None = None,
        adopter: int = 0,
        backend: MemoryBackend = "auto",
        proc: str = "/proc",
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        use_proc = backend == "proc" or (backend == "auto" and reports_kinds(proc))
        self._tree = ProcTree(pid, pids, proc, adopter) if use_proc else PsutilTree(pid, pids)
        # psutil's cheap figure is RSS, in which mapped files look held.
        self._cheap_tells_kinds = use_proc
        self._clock, self._cpu_clock = clock, cpu_clock
        self._next_exact = float("-inf")
        # By pid: counted, shared out.
        self._last: dict[int, tuple[ProcessMemory, ProcessMemory]] = {}

    def cheap(self) -> MemoryReading:
        """Return the processes' own counters: shared pages count once for each process."""
        start = self._cpu_clock()
        return self._finish(self._tree.cheap(), False, start)

    def exact(self) -> MemoryReading:
        """Return figures in which every shared page is shared out, as far as the system tells."""
        start = self._cpu_clock()
        return self._exact(self._tree.cheap(), start)

    def read(self) -> MemoryReading:
        """Return a cheap reading corrected by the last exact one, or an exact one where due.

        An exact reading is due when processes came or went, and now and then, so rarely that it
        costs about 1 % of a core.
        """
        start = self._cpu_clock()
        cheap = self._tree.cheap()
        changed = {process.pid for process in cheap} != self._last.keys() or self._shared_grew(
            cheap
        )
        if changed or not self._cheap_tells_kinds or self._clock() >= self._next_exact:
            return self._exact(cheap, start)
        return self._finish(self._corrected(cheap), False, start)

    def close(self) -> None:
        """Give back the open descriptors."""
        self._tree.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exact(self, cheap: tuple[ProcessMemory, ...], start: float) -> MemoryReading:
        processes, exact = self._tree.exact(cheap)
        shared_out = {process.pid: process for process in processes}
        came = self._last and shared_out.keys() - self._last.keys()  # and share, for a while
        moving = came or self._unseen(cheap, shared_out) > _SHARED_STEP_BYTES
        self._last = {
            counted.pid: (counted, shared_out[counted.pid])
            for counted in cheap
            if counted.pid in shared_out
        }
        reading = self._finish(processes, exact, start)
        share = _EXACT_SHARE * (_WHILE_MOVING if moving else 1)
        interval = max(reading.cpu_seconds / share, _SHORTEST_INTERVAL)
        # One process shares hardly more than its libraries: its overcount hardly moves.
        self._next_exact = self._clock() + (interval if len(processes) > 1 else 10 * interval)
        return reading

    def _unseen(
        self, cheap: tuple[ProcessMemory, ...], shared_out: dict[int, ProcessMemory]
    ) -> int:
        """Return what anonymous memory gained or lost since the last exact reading, unseen.

        A shared page that a process writes to becomes its own: its own counters stand still.
        """
        pids = self._last.keys() & shared_out.keys()
        counted = sum(each.anonymous_bytes for each in cheap if each.pid in pids)
        now = sum(shared_out[pid].anonymous_bytes for pid in pids) - counted
        then = sum(
            known.anonymous_bytes - was.anonymous_bytes
            for was, known in (self._last[pid] for pid in pids)
        )
        return abs(now - then)

    def _corrected(self, cheap: tuple[ProcessMemory, ...]) -> tuple[ProcessMemory, ...]:
        """Return the last exact figures plus what has been added since.

        Anonymous memory is a process's own. File-backed and shared pages that processes begin to
        touch are most likely those that another one has touched already: they count only as far
        as the process that holds the most of them holds more than any did.
        """
        file, shared = (self._growth_of_the_most(cheap, kind) for kind in ("file", "shared"))
        corrected = []
        for number, process in enumerate(cheap):
            counted, known = self._last[process.pid]
            added = process.anonymous_bytes - counted.anonymous_bytes
            corrected.append(
                replace(
                    known,
                    anonymous_bytes=max(known.anonymous_bytes + added, 0),
                    file_bytes=max(known.file_bytes + (0 if number else file), 0),
                    shared_bytes=max(known.shared_bytes + (0 if number else shared), 0),
                    rss_bytes=process.rss_bytes,
                )
            )
        return tuple(corrected)

    def _shared_grew(self, cheap: tuple[ProcessMemory, ...]) -> bool:
        """Return whether shared pages came since the last exact reading: whose, only that tells."""
        now = sum(process.shared_bytes for process in cheap)
        then = sum(counted.shared_bytes for counted, _ in self._last.values())
        return len(cheap) > 1 and abs(now - then) > max(_SHARED_STEP_BYTES, then // 10)

    def _growth_of_the_most(self, cheap: tuple[ProcessMemory, ...], kind: str) -> int:
        name = f"{kind}_bytes"
        # A tree that has ended is empty: then nothing has grown.
        before: int = max((getattr(counted, name) for counted, _ in self._last.values()), default=0)
        now: int = max((getattr(process, name) for process in cheap), default=0)
        return now - before

    def _finish(
        self, processes: tuple[ProcessMemory, ...], exact: bool, start: float
    ) -> MemoryReading:
        read_bytes = self._tree.read_bytes()
        return MemoryReading(processes, exact, read_bytes, self._cpu_clock() - start)


def anonymous_bytes(pid: int | None = None) -> int:
    """Return the anonymous memory of a process and all below it, a shared page once: now, exactly.

    `pid` is None for this process. Where no PSS is told, a page counts once for each process.
    """
    return _exact_reading(pid).anonymous_bytes


def budgeted_bytes(pid: int | None = None) -> int:
    """Return the anonymous and shared memory of a process and all below it: now, exactly.

    That counts against a budget. `pid` and what a page counts are as in `anonymous_bytes`.
    """
    reading = _exact_reading(pid)
    return reading.anonymous_bytes + reading.shared_bytes


def _exact_reading(pid: int | None) -> MemoryReading:
    with MemoryMeter(pid or os.getpid(), backend=chosen_backend()) as meter:
        return meter.exact()


def measure_name(backend: MemoryBackend = "auto", proc: str = "/proc") -> str:
    """Return what the figures are on this system: "PSS", or "RSS" where nothing better is told.

    Where there is no /proc: "footprint" on macOS, "private bytes" on Windows, "USS" elsewhere.
    """
    if backend == "proc" or (backend == "auto" and reports_kinds(proc)):
        return "PSS" if reports_pss(proc) else "RSS"
    return psutil_measure()


def chosen_backend() -> MemoryBackend:
    """Return what LARGER_THAN_RAM_BACKEND asks for; "psutil" does without /proc.

    Raises ValueError for anything but auto, proc and psutil.
    """
    backend = os.environ.get("LARGER_THAN_RAM_BACKEND", "auto")
    if backend not in ("auto", "proc", "psutil"):
        raise ValueError(f"LARGER_THAN_RAM_BACKEND is {backend!r}: use auto, proc or psutil")
    return cast(MemoryBackend, backend)
