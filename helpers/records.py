"""What an experiment leaves behind: frozen records. They hold numbers and words, and draw nothing.

Everything that measures returns these; everything that draws takes them. So a figure can be
tested with five snapshots made up by hand.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from helpers.page_cache import Eviction
from helpers.units import format_bytes, format_rate


class Outcome(StrEnum):
    """How an experiment ended. A failure on purpose is a result, not an error."""

    FINISHED = "finished"
    KILLED = "killed"  # over its RAM budget, by the kernel or by the watcher
    REFUSED = "refused"  # the system would not give so much memory at once
    RAISED = "raised"
    CRASHED = "crashed"  # ended by a signal, or left without a word
    TIMED_OUT = "timed out"
    STOPPED = "stopped"  # by the reader: the Stop button, or an interrupt


@dataclass(frozen=True, slots=True)
class Counters:
    """What `track` has counted so far in one experiment."""

    samples: int = 0
    batches: int = 0
    data_bytes: int = 0
    waiting_seconds: float = 0.0  # for the next batch
    working_seconds: float = 0.0  # on the batch in hand
    expected_batches: int | None = None  # len(loader), where it has one


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A process tree at one moment, in bytes. Shared pages count once.

    `exact` tells a reading through `smaps_rollup` (or private memory) from a cheap one that was
    corrected by the last exact one.
    """

    seconds: float  # since the function was called
    anonymous_bytes: int
    file_bytes: int
    shared_bytes: int
    rss_bytes: int  # the sum of every process's RSS: shared pages once for each process
    processes: int
    exact: bool = True
    charged_bytes: int | None = None  # as a memory cgroup counts: page cache included
    read_bytes: int | None = None  # from the disk since the function was called
    counters: Counters = Counters()
    workers_bytes: int = 0  # anonymous memory of all DataLoader workers

    @property
    def pss_bytes(self) -> int:
        """Return the sum of every PSS, of all three kinds: what the tree really takes."""
        return self.anonymous_bytes + self.file_bytes + self.shared_bytes

    @property
    def budgeted_bytes(self) -> int:
        """Return what no page reclaim can free: anonymous and shared memory."""
        return self.anonymous_bytes + self.shared_bytes


@dataclass(frozen=True, slots=True)
class ProcessPeak:
    """One process of the tree: how much anonymous memory (PSS) it had first, and at its most."""

    pid: int
    name: str  # "main", "worker 1", ...
    first_anonymous_bytes: int
    peak_anonymous_bytes: int


@dataclass(frozen=True)
class Run:
    """One finished experiment: how it ended, and everything that was seen on the way."""

    title: str
    outcome: Outcome
    seconds: float
    budget_bytes: int
    enforced_by: str  # "kernel (cgroup v2)", "kernel (cgroup v1)" or "watcher"
    measure: str  # what the memory figures are: "PSS", or as `psutil_measure` tells
    start_method: str  # of DataLoader workers: "fork", "spawn" or "forkserver"
    snapshots: tuple[Snapshot, ...] = ()
    peaks: tuple[ProcessPeak, ...] = ()
    value: Any = None  # what the function returned
    error: str = ""  # "RuntimeError: DataLoader worker ...", or the signal's name
    traceback: str = ""
    stdout: str = ""  # the last lines of each
    stderr: str = ""
    guess: "Guess | None" = None
    asked_bytes: int | None = None  # the budget that was asked for, where there is less than that
    limit: str = ""  # "the 1.2 GiB limit of this container", where that has come before the budget
    ended_by: str = ""  # who has ended it, where that is not who enforces the budget
    cold: tuple[Eviction, ...] = ()  # the files that were to start cold, and what stayed of them

    @property
    def finished(self) -> bool:
        """Return whether the function came to its end."""
        return self.outcome is Outcome.FINISHED

    @property
    def why_not_cold(self) -> str:
        """Return why a file that was to start cold did not, or "" where all did."""
        return "; ".join(eviction.why_not_cold for eviction in self.cold if eviction.why_not_cold)

    @property
    def why_in_ram(self) -> str:
        """Return that a file that started cold ended in the page cache, or "" where none did.

        Where nothing limits the page cache and the file fits into RAM, an experiment on data
        larger than RAM becomes one on data in RAM.
        """
        return "; ".join(eviction.why_in_ram for eviction in self.cold if eviction.why_in_ram)

    @property
    def counters(self) -> Counters:
        """Return the last counters that were seen."""
        return self.snapshots[-1].counters if self.snapshots else Counters()

    @property
    def baseline_anonymous_bytes(self) -> int:
        """Return the child's anonymous memory just before the function ran: Python and torch."""
        return self.snapshots[0].anonymous_bytes if self.snapshots else 0

    @property
    def peak_anonymous_bytes(self) -> int:
        """Return the most anonymous memory of the whole tree."""
        return max((s.anonymous_bytes for s in self.snapshots), default=0)

    @property
    def added_anonymous_bytes(self) -> int:
        """Return the peak above the baseline: what the experiment itself took."""
        return self.peak_anonymous_bytes - self.baseline_anonymous_bytes

    @property
    def peak_shared_bytes(self) -> int:
        """Return the most shared memory of the whole tree, each page counted once."""
        return max((s.shared_bytes for s in self.snapshots), default=0)

    @property
    def added_rss_bytes(self) -> int:
        """Return how far the sum of RSS rose above the baseline."""
        return max((s.rss_bytes for s in self.snapshots), default=0) - (
            self.snapshots[0].rss_bytes if self.snapshots else 0
        )

    @property
    def read_bytes(self) -> int | None:
        """Return the bytes that came from the disk, or None where the system does not tell."""
        return self.snapshots[-1].read_bytes if self.snapshots else None

    @property
    def worked_snapshots(self) -> tuple[Snapshot, ...]:
        """Return the exact snapshots in which all workers were alive and had begun."""
        most = max((s.processes for s in self.snapshots), default=0)
        seen = (s for s in self.snapshots if s.exact and s.workers_bytes)
        return tuple(s for s in seen if s.processes == most)

    @property
    def workers(self) -> tuple[ProcessPeak, ...]:
        """Return the DataLoader workers, in the order in which they were seen."""
        return tuple(peak for peak in self.peaks if peak.name.startswith("worker"))

    @property
    def largest_worker_bytes(self) -> int | None:
        """Return the most anonymous memory of one DataLoader worker, None where there was none."""
        return max((worker.peak_anonymous_bytes for worker in self.workers), default=None)

    @property
    def read_amplification(self) -> float | None:
        """Return bytes read from the disk for each byte that `track` counted, None if unknown."""
        used = self.counters.data_bytes
        return None if self.read_bytes is None or not used else self.read_bytes / used

    @property
    def samples_per_second(self) -> float:
        """Return the throughput as `track` saw it: samples over the seconds of its loop."""
        seconds = self.counters.waiting_seconds + self.counters.working_seconds
        return self.counters.samples / seconds if seconds else 0.0

    @property
    def waiting_share(self) -> float:
        """Return the share of the loop's time spent waiting for data, 0 to 1."""
        seconds = self.counters.waiting_seconds + self.counters.working_seconds
        return self.counters.waiting_seconds / seconds if seconds else 0.0

    @property
    def ending(self) -> str:
        """Return how it ended, in words: 'killed: over its 1 GiB budget, by the kernel (...)'."""
        if self.outcome is Outcome.KILLED:
            budget = format_bytes(self.asked_bytes or self.budget_bytes)
            said = f", which raised {self.error.splitlines()[0]}" if self.error else ""
            if self.limit:
                return f"killed: at {self.limit}, below its {budget} budget{said}"
            who = self.ended_by or self.enforced_by
            return f"killed: over its {budget} budget, by the {who}{said}"
        if self.outcome is Outcome.REFUSED:
            return f"refused: the system would not give {_asked_for(self.error)} at once"
        return f"{self.outcome}: {self.error}" if self.error else str(self.outcome)

    def __repr__(self) -> str:
        parts = [
            f"{self.ending} after {self.seconds:.1f} s",
            f"peak anonymous {format_bytes(self.peak_anonymous_bytes)}",
        ]
        if self.asked_bytes:
            lowered = f"lowered to {format_bytes(self.budget_bytes)} by {self.limit}"
            parts.append(f"budget of {format_bytes(self.asked_bytes)} {lowered}")
        if self.counters.samples:
            parts.append(f"{self.counters.samples:,} samples")
            parts.append(format_rate(self.samples_per_second))
        return f"{self.title}: " + "; ".join(parts)


def _asked_for(error: str) -> str:
    """Return what an error of numpy's or torch's says was asked for: '29.4 GiB'."""
    if size := re.search(r"allocate ([\d.]+) ([KMGT]iB)", error):
        return f"{float(size[1]):g} {size[2]}"
    size = re.search(r"allocate (\d+) bytes", error)
    return format_bytes(int(size[1])) if size else "so much memory"


@dataclass
class Guess:
    """What the reader expects, kept before the run. `value` is None until they say it."""

    question: str
    unit: str  # "MiB" and "GiB" belong to the memory axis, "samples/s" to the throughput axis
    value: float | None = None


class View(Protocol):
    """Whatever shows an experiment while it runs."""

    def update(self, snapshots: Sequence[Snapshot]) -> None:
        """Take note of all snapshots so far. Called often; the view chooses when to draw."""

    def finish(self, run: Run) -> None:
        """Show the finished record and put away what only a running experiment needs."""

    def stop_requested(self) -> bool:
        """Return whether the reader has asked to stop."""
