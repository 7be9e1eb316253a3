"""One experiment as seen from beside it: looked at, held to its budget, and cleaned up after."""

import contextlib
import dataclasses
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from helpers.budget import Group
from helpers.memory import MemoryBackend, MemoryMeter, MemoryReading
from helpers.records import ProcessPeak, Snapshot
from helpers.running.shared_state import Phase, SharedState
from helpers.system.processes import command_line, end_all, kill
from helpers.system.procfs import ProcessMemory

SHARE_OF_A_CORE = 0.02  # the most that looking may take
SHORTEST_INTERVAL, LONGEST_INTERVAL = 0.001, 0.1
STARTING_INTERVAL = 0.005
AVERAGED_READINGS = 16  # exact readings cost much more, and come rarely
SNAPSHOT_INTERVAL = 0.02  # between snapshots handed on, unless one is a new peak
# No process tree on a small machine fills memory faster: it bounds how long not to look.
FASTEST_BYTES_PER_SECOND = 8 * 2**30
TOLERATED_SHARE = 0.05  # over the budget before the watcher kills; killing takes the rest of 10 %
LAST_WORDS_SECONDS = 1.0  # after the kernel killed a worker, for the main process to say so


@dataclass(frozen=True)
class Task:
    """What to watch. A sandbox that waits has neither budget nor timeout yet."""

    pid: int  # of the experiment's main process, which leads a session of its own
    folder: str  # holds the state; removed here if the caller of `run` dies
    group: str = ""  # path of the memory cgroup; "" where the watcher enforces the budget
    version: int = 0
    budget_bytes: int = 0
    timeout: float = 0.0
    backend: MemoryBackend = "auto"

    def memory_group(self) -> Group | None:
        """Return the cgroup, where there is one."""
        return Group(Path(self.group), self.version) if self.group else None


@dataclass(frozen=True)
class WatchReport:
    """How the watch ended."""

    reason: str  # "over budget", "timed out", "stopped", or "" when the experiment just ended
    kernel_kills: int | None  # processes killed over the budget; None when the group has gone
    all_gone: bool  # no process left, no cgroup left
    cpu_seconds: float  # that watching took
    peaks: tuple[ProcessPeak, ...] = ()


class Watch:
    """One experiment being watched."""

    def __init__(self, task: Task, emit: Callable[[Snapshot], None]) -> None:
        self.task = task
        self.emit = emit
        self.state = SharedState(Path(task.folder, "state"))
        self.group = task.memory_group()
        self.meter = MemoryMeter(
            task.pid, backend=task.backend, pids=self.group.pids if self.group else None
        )
        self.seen: tuple[ProcessMemory, ...] = ()
        self.peaks: dict[int, ProcessPeak] = {}
        self.read_before = 0
        self.highest = 0
        self.next_sample = 0.0
        self.killed_since: float | None = None
        self.cost = 0.0  # of a reading, on average
        self.began = time.monotonic()

    def step(self) -> tuple[str, float]:
        """Take one reading.

        Returns why the experiment must end, '' if it need not, and the seconds to the next reading.
        """
        phase = self.state.phase
        awaited = phase in (Phase.READY, Phase.DONE)  # the child waits until we have looked
        reading = self.meter.exact() if awaited else self.meter.read()
        if phase is Phase.READY:
            self.read_before = reading.read_bytes or 0
        self.cost += (reading.cpu_seconds - self.cost) / AVERAGED_READINGS
        self.seen = reading.processes
        snapshot = self._snapshot(reading, self.state.seconds(time.monotonic()))
        if phase is Phase.STARTING:  # the order's modules are being imported: nothing to record
            return self._reason(snapshot), min(self._interval(snapshot), STARTING_INTERVAL)
        self._note_peaks(reading)
        if awaited:
            self.state.phase = Phase.GO if phase is Phase.READY else Phase.LEAVE
        reason = self._reason(snapshot)
        if reading.processes and (awaited or reason or self._is_worth_handing_on(snapshot)):
            self.emit(snapshot)
            self.next_sample = snapshot.seconds + max(SNAPSHOT_INTERVAL, snapshot.seconds / 1500)
        self.highest = max(self.highest, snapshot.budgeted_bytes)
        return reason, self._interval(snapshot)

    def kernel_kills(self) -> int | None:
        """Return how many of the experiment's processes the kernel has killed over the budget."""
        try:
            return self.group.kills() if self.group else 0
        except OSError:  # a systemd scope goes with its last process
            return None

    def end(self, reason: str) -> WatchReport:
        """End what still runs, remove the cgroup, and say how it all ended."""
        kills = self.kernel_kills()
        if reason == "over budget":
            self._kill_who_was_seen()
        gone = end_all(self.task.pid, self.peaks, listed=self._listed)
        if self.group is not None:
            gone = self.group.remove() and gone
        peaks = tuple(self.peaks.values())
        return WatchReport(reason, kills, gone, time.process_time(), peaks)

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
        return [process.pid for process in self.meter.cheap().processes]

    def _is_worth_handing_on(self, snapshot: Snapshot) -> bool:
        return snapshot.seconds >= self.next_sample or snapshot.budgeted_bytes > self.highest

    def _snapshot(self, reading: MemoryReading, seconds: float) -> Snapshot:
        charged = None
        if self.group is not None:
            with contextlib.suppress(OSError):
                charged = self.group.charged_bytes()
        read = None if reading.read_bytes is None else reading.read_bytes - self.read_before
        return Snapshot(
            seconds=seconds,
            anonymous_bytes=reading.anonymous_bytes,
            file_bytes=reading.file_bytes,
            shared_bytes=reading.shared_bytes,
            rss_bytes=reading.rss_bytes,
            processes=len(reading.processes),
            exact=reading.exact,
            charged_bytes=charged,
            read_bytes=read,
            counters=self.state.read(),
        )

    def _note_peaks(self, reading: MemoryReading) -> None:
        for process in reading.processes:
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

    def _reason(self, snapshot: Snapshot) -> str:
        budget = self.task.budget_bytes
        if self.group is not None:
            if self.kernel_kills():
                self.killed_since = self.killed_since or time.monotonic()
                if time.monotonic() - self.killed_since > LAST_WORDS_SECONDS:
                    return "over budget"
        elif snapshot.budgeted_bytes > budget and self._truly_over(snapshot):
            return "over budget"
        seconds = time.monotonic() - (self.state.started or self.began)
        return "timed out" if seconds > self.task.timeout else ""

    def _truly_over(self, snapshot: Snapshot) -> bool:
        """Read exactly before killing: a cheap reading counts shared pages several times."""
        if snapshot.exact or snapshot.processes == 1:
            return True
        exact = self._snapshot(self.meter.exact(), snapshot.seconds)
        return exact.budgeted_bytes > self.task.budget_bytes

    def _interval(self, snapshot: Snapshot) -> float:
        """Return the time to the next reading: cheap on average, short near the budget."""
        cheap = min(max(self.cost / SHARE_OF_A_CORE, SHORTEST_INTERVAL), LONGEST_INTERVAL)
        room = self.task.budget_bytes * (1 + TOLERATED_SHARE) - snapshot.budgeted_bytes
        return min(cheap, max(room / FASTEST_BYTES_PER_SECOND, SHORTEST_INTERVAL))


def clean_up(task: Task) -> None:
    """Do what the caller of `run` would have done: it has died, and nobody else is left to."""
    group = task.memory_group()
    end_all(task.pid, listed=group.pids if group else tuple)
    if group is not None:
        group.remove()
    shutil.rmtree(task.folder, ignore_errors=True)
