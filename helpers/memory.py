"""One look at the memory of a process tree, from outside: cheap and often, exact and rarely.

A cheap look counts a page that three processes share three times. An exact look shares it out
(PSS). `TreeSampler.look` corrects cheap looks by the last exact one.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self

from helpers.procfs import ProcessLook, reports_kinds, reports_pss
from helpers.trees import ProcTree, PsutilTree, psutil_measure

Measure = Literal["auto", "proc", "psutil"]
_EXACT_SHARE = 0.01  # of a core, for exact looks
_SHORTEST_INTERVAL = 0.25
_KINDS = ("anonymous_bytes", "file_bytes", "shared_bytes")


@dataclass(frozen=True, slots=True)
class Look:
    """The memory of a whole tree at one moment.

    `exact` is True when every process's figures share out the pages it shares; `cpu_seconds` is
    what the look cost.
    """

    processes: tuple[ProcessLook, ...]
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


class Tree(Protocol):
    """A process and its descendants, on some system."""

    def cheap(self) -> tuple[ProcessLook, ...]:
        """Return every living process as its own counters tell."""

    def exact(self, cheap: tuple[ProcessLook, ...]) -> tuple[tuple[ProcessLook, ...], bool]:
        """Return the same processes with shared pages shared out, and whether all were."""

    def read_bytes(self) -> int | None:
        """Return the bytes read from the disk so far."""

    def close(self) -> None:
        """Give back what the tree holds open."""


class TreeSampler:
    """Look at a process and its descendants again and again, for one experiment.

    `pids` replaces the search for descendants, for instance by the list that a cgroup keeps.
    """

    def __init__(
        self,
        pid: int,
        *,
        pids: Callable[[], Iterable[int]] | None = None,
        measure: Measure = "auto",
        proc: str = "/proc",
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        use_proc = measure == "proc" or (measure == "auto" and reports_kinds(proc))
        self._tree: Tree = ProcTree(pid, pids, proc) if use_proc else PsutilTree(pid, pids)
        self._clock, self._cpu_clock = clock, cpu_clock
        self._next_exact = float("-inf")
        self._corrections: dict[int, tuple[int, ...]] = {}
        self._exact_pids: set[int] = set()

    def cheap(self) -> Look:
        """Return the processes' own counters: shared pages count once for each process."""
        start = self._cpu_clock()
        return self._finish(self._tree.cheap(), False, start)

    def exact(self) -> Look:
        """Return figures in which every shared page is shared out, as far as the system tells."""
        start = self._cpu_clock()
        cheap = self._tree.cheap()
        return self._exact(cheap, start)

    def look(self) -> Look:
        """Return a cheap look corrected by the last exact one, or an exact one where due.

        An exact look is due when processes came or went, and now and then, so rarely that it
        costs about 1 % of a core.
        """
        start = self._cpu_clock()
        cheap = self._tree.cheap()
        pids = {process.pid for process in cheap}
        if pids != self._exact_pids or self._clock() >= self._next_exact:
            return self._exact(cheap, start)
        return self._finish(tuple(self._corrected(process) for process in cheap), False, start)

    def close(self) -> None:
        """Give back the open descriptors."""
        self._tree.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exact(self, cheap: tuple[ProcessLook, ...], start: float) -> Look:
        processes, exact = self._tree.exact(cheap)
        counted = {process.pid: process for process in cheap}
        self._exact_pids = set(counted)
        self._corrections = {
            process.pid: tuple(
                getattr(counted[process.pid], kind) - getattr(process, kind) for kind in _KINDS
            )
            for process in processes
        }
        look = self._finish(processes, exact, start)
        interval = max(look.cpu_seconds / _EXACT_SHARE, _SHORTEST_INTERVAL)
        # One process shares hardly more than its libraries: its correction hardly moves.
        self._next_exact = self._clock() + (interval if len(cheap) > 1 else 10 * interval)
        return look

    def _corrected(self, process: ProcessLook) -> ProcessLook:
        corrections = self._corrections.get(process.pid, (0, 0, 0))
        kinds = {
            kind: max(getattr(process, kind) - correction, 0)
            for kind, correction in zip(_KINDS, corrections, strict=True)
        }
        return replace(process, **kinds)

    def _finish(self, processes: tuple[ProcessLook, ...], exact: bool, start: float) -> Look:
        read_bytes = self._tree.read_bytes()
        return Look(processes, exact, read_bytes, self._cpu_clock() - start)


def measure_name(measure: Measure = "auto", proc: str = "/proc") -> str:
    """Return what the figures are on this system: "PSS", "USS" or "RSS"."""
    if measure == "proc" or (measure == "auto" and reports_kinds(proc)):
        return "PSS" if reports_pss(proc) else "RSS"
    return psutil_measure()
