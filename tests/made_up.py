"""Records made up by hand, for tests of what takes records and measures nothing."""

from dataclasses import replace
from typing import Any

from helpers.records import Counters, Guess, Outcome, Run, Snapshot

MIB, GIB = 2**20, 2**30


class Clock:
    """A clock that goes on only when it is told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def snapshot(seconds: float, anonymous_mib: float = 200, **others: Any) -> Snapshot:
    """Return one look at a single process, with 100 MiB of a file mapped and 10 MiB shared."""
    anonymous = int(anonymous_mib * MIB)
    made = Snapshot(seconds, anonymous, 100 * MIB, 10 * MIB, anonymous + 110 * MIB, processes=1)
    return replace(made, **others)


def counted(seconds: float, samples_per_second: float = 1000) -> Counters:
    """Return the counters of a steady loop with ten batches a second, which waits a quarter."""
    samples, batches = int(samples_per_second * seconds), int(10 * seconds)
    return Counters(samples, batches, samples * 1024, 0.25 * seconds, 0.75 * seconds, 600)


def finished_run(seconds: float = 10, samples_per_second: float = 1000, **others: Any) -> Run:
    """Return a run that read its data at a steady rate and finished."""
    snapshots = tuple(
        snapshot(time, 210, counters=counted(time, samples_per_second), read_bytes=int(time * MIB))
        for time in (seconds * step / 100 for step in range(101))
    )
    run = Run("steady", Outcome.FINISHED, seconds, GIB, "watcher", "PSS", "fork", snapshots)
    return replace(run, **others)


def killed_run(seconds: float = 2, **others: Any) -> Run:
    """Return a run that filled its 1 GiB budget before the first batch."""
    snapshots = tuple(snapshot(seconds * step / 20, 200 + 42 * step) for step in range(21))
    how: dict[str, Any] = {"title": "load everything", "outcome": Outcome.KILLED}
    return finished_run(seconds, **(how | {"snapshots": snapshots} | others))


def by_the_kernel(run: Run, **others: Any) -> Run:
    """Return a run as a cgroup would have held it, which charges page cache up to the budget."""
    snapshots = tuple(
        replace(s, charged_bytes=min(s.anonymous_bytes + 500 * MIB, GIB), **others)
        for s in run.snapshots
    )
    return replace(run, enforced_by="kernel (cgroup v2)", snapshots=snapshots)


def guess(value: float | None, unit: str) -> Guess:
    """Return a guess in that unit."""
    return Guess("How much?", unit, value)
