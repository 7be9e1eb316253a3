"""One experiment as seen from beside it: looked at, held to its budget, and cleaned up after."""

import contextlib
import dataclasses
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from helpers.budget import Group
from helpers.looking.procfs import ProcessLook
from helpers.memory import Look, Measure, TreeSampler
from helpers.records import ProcessPeak, Sample
from helpers.running.board import Board, Phase
from helpers.running.processes import command_line, end_all, kill

SHARE_OF_A_CORE = 0.02  # the most that looking may take
SHORTEST_INTERVAL, LONGEST_INTERVAL = 0.001, 0.1
STARTING_INTERVAL = 0.005
AVERAGED_LOOKS = 16  # exact looks cost much more, and come rarely
SAMPLE_INTERVAL = 0.02  # between samples handed on, unless one is a new peak
# No process tree on a small machine fills memory faster: it bounds how long not to look.
FASTEST_BYTES_PER_SECOND = 8 * 2**30
TOLERATED_SHARE = 0.05  # over the budget before the watcher kills; killing takes the rest of 10 %
LAST_WORDS_SECONDS = 1.0  # after the kernel killed a worker, for the main process to say so


@dataclass(frozen=True)
class Task:
    """What to watch. A spare that waits has neither budget nor timeout yet."""

    pid: int  # of the experiment's main process, which leads a session of its own
    folder: str  # holds the board; removed here if the kernel dies
    group: str = ""  # path of the memory cgroup; "" where the watcher enforces the budget
    version: int = 0
    budget_bytes: int = 0
    timeout: float = 0.0
    measure: Measure = "auto"

    def memory_group(self) -> Group | None:
        """Return the cgroup, where there is one."""
        return Group(Path(self.group), self.version) if self.group else None


@dataclass(frozen=True)
class Verdict:
    """How the watch ended."""

    reason: str  # "over budget", "timed out", "stopped", or "" when the experiment just ended
    kernel_kills: int | None  # processes killed over the budget; None when the group has gone
    all_gone: bool  # no process left, no cgroup left
    cpu_seconds: float  # that watching took
    peaks: tuple[ProcessPeak, ...] = ()


class Watch:
    """One experiment being watched."""

    def __init__(self, task: Task, emit: Callable[[Sample], None]) -> None:
        self.task = task
        self.emit = emit
        self.board = Board(Path(task.folder, "board"))
        self.group = task.memory_group()
        self.sampler = TreeSampler(
            task.pid, measure=task.measure, pids=self.group.pids if self.group else None
        )
        self.seen: tuple[ProcessLook, ...] = ()
        self.peaks: dict[int, ProcessPeak] = {}
        self.read_before = 0
        self.highest = 0
        self.next_sample = 0.0
        self.killed_since: float | None = None
        self.cost = 0.0  # of a look, on average
        self.began = time.monotonic()

    def step(self) -> tuple[str, float]:
        """Take one look.

        Returns why the experiment must end, '' if it need not, and the seconds to the next look.
        """
        phase = self.board.phase
        awaited = phase in (Phase.READY, Phase.DONE)  # the child waits until we have looked
        look = self.sampler.exact() if awaited else self.sampler.look()
        if phase is Phase.READY:
            self.read_before = look.read_bytes or 0
        self.cost += (look.cpu_seconds - self.cost) / AVERAGED_LOOKS
        self.seen = look.processes
        sample = self._sample(look, self.board.seconds(time.monotonic()))
        if phase is Phase.STARTING:  # the order's modules are being imported: nothing to record
            return self._reason(sample), min(self._interval(sample), STARTING_INTERVAL)
        self._note_peaks(look)
        if awaited:
            self.board.phase = Phase.GO if phase is Phase.READY else Phase.LEAVE
        reason = self._reason(sample)
        if look.processes and (awaited or reason or self._is_worth_handing_on(sample)):
            self.emit(sample)
            self.next_sample = sample.seconds + max(SAMPLE_INTERVAL, sample.seconds / 1500)
        self.highest = max(self.highest, sample.budgeted_bytes)
        return reason, self._interval(sample)

    def kernel_kills(self) -> int | None:
        """Return how many of the experiment's processes the kernel has killed over the budget."""
        try:
            return self.group.kills() if self.group else 0
        except OSError:  # a systemd scope goes with its last process
            return None

    def end(self, reason: str) -> Verdict:
        """End what still runs, remove the cgroup, and say how it all ended."""
        kills = self.kernel_kills()
        if reason == "over budget":
            self._kill_who_was_seen()
        gone = end_all(self.task.pid, self.peaks, listed=self._listed)
        if self.group is not None:
            gone = self.group.remove() and gone
        peaks = tuple(self.peaks.values())
        return Verdict(reason, kills, gone, time.process_time(), peaks)

    def _kill_who_was_seen(self) -> None:
        """Kill before searching for the rest: what is over its budget grows by the millisecond."""
        for process in self.seen:
            peak = self.peaks.get(process.pid)
            if peak is None or peak.name != "resource tracker":  # that one has to clean up
                kill(process.pid)

    def _listed(self) -> list[int]:
        """Return living processes also where they have left the experiment's session."""
        if self.group is not None:
            return self.group.pids()
        return [process.pid for process in self.sampler.cheap().processes]

    def _is_worth_handing_on(self, sample: Sample) -> bool:
        return sample.seconds >= self.next_sample or sample.budgeted_bytes > self.highest

    def _sample(self, look: Look, seconds: float) -> Sample:
        charged = None
        if self.group is not None:
            with contextlib.suppress(OSError):
                charged = self.group.charged_bytes()
        read = None if look.read_bytes is None else look.read_bytes - self.read_before
        return Sample(
            seconds=seconds,
            anonymous_bytes=look.anonymous_bytes,
            file_bytes=look.file_bytes,
            shared_bytes=look.shared_bytes,
            rss_bytes=look.rss_bytes,
            processes=len(look.processes),
            exact=look.exact,
            charged_bytes=charged,
            read_bytes=read,
            counters=self.board.read(),
        )

    def _note_peaks(self, look: Look) -> None:
        for process in look.processes:
            seen, now = self.peaks.get(process.pid), process.anonymous_bytes
            if seen is None:
                name = self._name(process.pid)
                self.peaks[process.pid] = ProcessPeak(process.pid, name, now, now)
            elif now > seen.peak_anonymous_bytes:
                self.peaks[process.pid] = dataclasses.replace(seen, peak_anonymous_bytes=now)

    def _name(self, pid: int) -> str:
        if pid == self.task.pid:
            return "main"
        command = command_line(pid)
        if "resource_tracker" in command:
            return "resource tracker"
        names = [peak.name for peak in self.peaks.values()]
        if "forkserver" in command and "fork server" not in names:
            return "fork server"  # the workers it forks keep its command line
        return f"worker {sum(name.startswith('worker') for name in names) + 1}"

    def _reason(self, sample: Sample) -> str:
        budget = self.task.budget_bytes
        if self.group is not None:
            if self.kernel_kills():
                self.killed_since = self.killed_since or time.monotonic()
                if time.monotonic() - self.killed_since > LAST_WORDS_SECONDS:
                    return "over budget"
        elif sample.budgeted_bytes > budget and self._truly_over(sample):
            return "over budget"
        seconds = time.monotonic() - (self.board.started or self.began)
        return "timed out" if seconds > self.task.timeout else ""

    def _truly_over(self, sample: Sample) -> bool:
        """Look exactly before killing: a cheap look counts what workers share more than once."""
        if sample.exact or sample.processes == 1:
            return True
        exact = self._sample(self.sampler.exact(), sample.seconds)
        return exact.budgeted_bytes > self.task.budget_bytes

    def _interval(self, sample: Sample) -> float:
        """Return the time to the next look: cheap on average, short near the budget."""
        cheap = min(max(self.cost / SHARE_OF_A_CORE, SHORTEST_INTERVAL), LONGEST_INTERVAL)
        room = self.task.budget_bytes * (1 + TOLERATED_SHARE) - sample.budgeted_bytes
        return min(cheap, max(room / FASTEST_BYTES_PER_SECOND, SHORTEST_INTERVAL))


def clean_up(task: Task) -> None:
    """Do what the kernel would have done: it has died, and nobody else is left to do it."""
    group = task.memory_group()
    end_all(task.pid, listed=group.pids if group else tuple)
    if group is not None:
        group.remove()
    shutil.rmtree(task.folder, ignore_errors=True)
