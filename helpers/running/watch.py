"""One experiment as seen from beside it: looked at, held to its budget, and cleaned up after."""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from helpers.memory import MemoryBackend, MemoryMeter, MemoryReading
from helpers.records import ProcessPeak, Snapshot
from helpers.running.run_folder import RunFolder
from helpers.running.shared_state import Phase, SharedState
from helpers.system.cgroups import own_group
from helpers.system.processes import command_line, kill
from helpers.system.procfs import ProcessMemory
from helpers.system.shared_files import SharedFiles

SHARE_OF_A_CORE = 0.02  # the most that looking may take
SHORTEST_INTERVAL, LONGEST_INTERVAL = 0.001, 0.1
STARTING_INTERVAL = 0.005
AVERAGED_READINGS = 16  # exact readings cost much more, and come rarely
SNAPSHOT_INTERVAL = 0.02  # between snapshots handed on, unless one is a new peak
# No process tree on a small machine fills memory faster: it bounds how long not to look.
FASTEST_BYTES_PER_SECOND = 8 * 2**30
TOLERATED_SHARE = 0.05  # over the budget before the watcher kills; killing takes the rest of 10 %
LINGERING_SECONDS = 2.0  # for a child that has written its result and does not end
FULL_SHARE, HEADWAY_SHARE = 0.97, 0.01  # of the budget: where it stands still, and what moves it
STALLED_SECONDS = 4.0  # at the budget, while the kernel only takes back what is read again
STALLED_READ_BYTES = 64 * 2**20
LAST_WORDS_SECONDS = 1.0  # after the kernel killed a worker, for the main process to say so
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Task:
    """What to watch for."""

    budget_bytes: int
    timeout: float | None  # in seconds, None for no limit
    backend: MemoryBackend = "auto"


@dataclass(frozen=True)
class WatchReport:
    """How the watch ended."""

    reason: str  # "over budget", "stalled", "timed out", "stopped", or "" when it just ended
    kernel_kills: int | None  # processes killed over the budget; None when the group has gone
    all_gone: bool  # no process left, no cgroup left
    cpu_seconds: float  # that watching took
    peaks: tuple[ProcessPeak, ...] = ()
    killed_from_above: bool = False  # at the limit of a container or the machine, not the budget
    code: int | None = None  # the child's exit code as `Popen` has it, None where it is not known


class Watch:
    """One experiment being watched. `adopter` is the process that its orphans come to."""

    def __init__(
        self, task: Task, folder: RunFolder, emit: Callable[[Snapshot], None], *, adopter: int = 0
    ) -> None:
        self.task, self.folder, self.emit, self.adopter = task, folder, emit, adopter
        self.pid = folder.pids()[0]
        self.state = SharedState.open(folder.path / "state")
        self.group = folder.group()
        self.outer = own_group("/proc/self")
        self.kills_before = self._outer_kills()
        pids = self.group.pids if self.group else None
        self.meter = MemoryMeter(self.pid, backend=task.backend, pids=pids, adopter=adopter)
        self.seen: tuple[ProcessMemory, ...] = ()
        self.files = SharedFiles()
        self.file_bytes = 0  # of them, where no cgroup counts them
        self.peaks: dict[int, ProcessPeak] = {}
        self.read_before = 0
        self.highest = 0
        self.next_sample = 0.0
        self.killed_since: float | None = None
        self.result_since: float | None = None
        self.headway: Snapshot | None = None  # the last one that was ahead of those before
        self.cost = 0.0  # of a reading, on average
        self.began = time.monotonic()

    def step(self) -> tuple[str, float]:
        """Take one reading.

        Returns why the experiment must end, '' if it need not, and the seconds to the next reading.
        """
        phase = self.state.phase
        awaited = phase in (Phase.READY, Phase.DONE)  # the child waits until we have looked
        reading = self.meter.exact() if awaited else self.meter.read()
        if phase == Phase.READY:
            self.read_before = reading.read_bytes or 0
        self.cost += (reading.cpu_seconds - self.cost) / AVERAGED_READINGS
        self.seen = reading.processes
        if phase != Phase.STARTING:  # until then the call's modules are being imported
            self._note_peaks(reading)
        snapshot = self._snapshot(reading, self.state.seconds(time.monotonic()))
        if phase == Phase.STARTING:  # nothing to record
            return self._reason(snapshot), min(self._interval(snapshot), STARTING_INTERVAL)
        if awaited:
            self.state.phase = Phase.GO if phase == Phase.READY else Phase.LEAVE
        reason = self._reason(snapshot)
        higher = snapshot.budgeted_bytes > self.highest
        if reading.processes and (
            awaited or reason or higher or snapshot.seconds >= self.next_sample
        ):
            self.emit(snapshot)
            self.next_sample = snapshot.seconds + max(SNAPSHOT_INTERVAL, snapshot.seconds / 1500)
        self.highest = max(self.highest, snapshot.budgeted_bytes)
        return reason, self._interval(snapshot)

    def kernel_kills(self) -> int | None:
        """Return how many of the experiment's processes the kernel has killed over the budget."""
        return _told(self.group.kills) if self.group else 0

    def lingers(self) -> bool:
        """Return whether the child has written its result some time ago and does not end."""
        if not self.state.ended or not (self.folder.path / "result").exists():
            return False
        self.result_since = self.result_since or time.monotonic()
        return time.monotonic() - self.result_since > LINGERING_SECONDS

    def end(self, reason: str) -> WatchReport:
        """End what still runs, remove the cgroup, and say how it all ended."""
        kills, from_above = self.kernel_kills(), self._killed_from_above()
        if reason in ("over budget", "stalled"):
            self._kill_who_was_seen()
        gone = self.folder.end(session=self.pid, adopter=self.adopter)
        peaks = tuple(self.peaks.values())
        return WatchReport(reason, kills, gone, time.process_time(), peaks, from_above)

    def _killed_from_above(self) -> bool:
        """Return whether the kernel has killed at a limit above the experiment's own."""
        if self.group is None:
            return self._outer_kills() > self.kills_before
        return bool(self.kernel_kills()) and _told(self.group.was_full) is False

    def _outer_kills(self) -> int:
        return (_told(self.outer.kills) if self.outer else 0) or 0

    def _kill_who_was_seen(self) -> None:
        """Kill before searching for the rest: what is over its budget grows by the millisecond."""
        for process in self.seen:
            peak = self.peaks.get(process.pid)
            if peak is None or peak.name != "resource tracker":  # that one has to clean up
                kill(process.pid)

    def _snapshot(self, reading: MemoryReading, seconds: float) -> Snapshot:
        if seconds >= self.next_sample:
            self.file_bytes = self.files.size_bytes(process.pid for process in reading.processes)
        read = None if reading.read_bytes is None else reading.read_bytes - self.read_before
        return Snapshot(
            seconds=seconds,
            anonymous_bytes=reading.anonymous_bytes,
            file_bytes=reading.file_bytes,
            shared_bytes=max(reading.shared_bytes, self.file_bytes),
            rss_bytes=reading.rss_bytes,
            processes=len(reading.processes),
            exact=reading.exact,
            charged_bytes=_told(self.group.charged_bytes) if self.group else None,
            read_bytes=read,
            counters=self.state.read(),
            workers_bytes=sum(
                process.anonymous_bytes
                for process in reading.processes
                if (peak := self.peaks.get(process.pid)) and peak.name.startswith("worker")
            ),
        )

    def _note_peaks(self, reading: MemoryReading) -> None:
        for process in reading.processes:
            seen, now = self.peaks.get(process.pid), process.anonymous_bytes
            if seen is None:
                name = self._name(process.pid)
                self.peaks[process.pid] = ProcessPeak(process.pid, name, now, now)
                if process.pid != self.pid:
                    self.folder.note_pid(process.pid)
            elif now > seen.peak_anonymous_bytes:
                self.peaks[process.pid] = dataclasses.replace(seen, peak_anonymous_bytes=now)

    def _name(self, pid: int) -> str:
        if pid == self.pid:
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
            elif self._stalls(snapshot):
                return "stalled"
        elif snapshot.budgeted_bytes > budget and self._truly_over(snapshot):
            return "over budget"
        seconds = time.monotonic() - (self.state.started or self.began)
        timeout = self.task.timeout
        return "timed out" if timeout is not None and seconds > timeout else ""

    def _stalls(self, snapshot: Snapshot) -> bool:
        """Return whether memory stands at the budget, and nothing happens but reading.

        The kernel may take pages back for a minute that are read again at once, before it kills.
        """
        budget, last = self.task.budget_bytes, self.headway
        if (
            last is None
            or snapshot.budgeted_bytes < FULL_SHARE * budget
            or snapshot.budgeted_bytes > last.budgeted_bytes + HEADWAY_SHARE * budget
            or snapshot.counters.batches > last.counters.batches
        ):
            self.headway = snapshot
            return False
        read = (snapshot.read_bytes or 0) - (last.read_bytes or 0)
        return snapshot.seconds - last.seconds > STALLED_SECONDS and read > STALLED_READ_BYTES

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


def _told(ask: Callable[[], Answer]) -> Answer | None:
    """Return what a cgroup tells, None where it has gone: a scope goes with its last process."""
    try:
        return ask()
    except OSError:
        return None
