"""Curves out of snapshots: thinned to what a screen shows, smoothed into rates. Draws nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from helpers.records import Snapshot

Floats = npt.NDArray[np.float64]


class Thinned:
    """The snapshots worth drawing, kept at a bounded number while more arrive.

    Time is cut into equal spans and each keeps its highest snapshot, so that a short peak is never
    lost. When there are too many spans, they are made twice as long.
    """

    def __init__(self, most: int = 400) -> None:  # about one for each pixel of a panel
        self._most, self._span = most, 0.0
        self._last: Snapshot | None = None
        self._kept: list[Snapshot] = []

    def add(self, snapshots: Iterable[Snapshot]) -> None:
        """Take in new snapshots, in the order of their time."""
        for snapshot in snapshots:
            self._last = snapshot
            self._place(snapshot)
            if len(self._kept) > 2 * self._most:
                length = self._kept[-1].seconds - self._kept[0].seconds
                self._span = max(2 * self._span, length / self._most, 1e-6)
                kept, self._kept = self._kept, []
                for one in kept:
                    self._place(one)

    def _place(self, snapshot: Snapshot) -> None:
        before = self._kept[-1] if self._kept and self._span else None
        if not before or before.seconds // self._span != snapshot.seconds // self._span:
            self._kept.append(snapshot)
        elif snapshot.budgeted_bytes >= before.budgeted_bytes:
            self._kept[-1] = snapshot

    @property
    def snapshots(self) -> list[Snapshot]:
        """Return what is kept, always with the very last snapshot."""
        if self._last is None or self._kept[-1] is self._last:
            return self._kept
        return [*self._kept, self._last]


def thin(snapshots: Sequence[Snapshot], most: int = 400) -> list[Snapshot]:
    """Return at most about twice `most` snapshots, with every peak and the last one among them."""
    thinned = Thinned(most)
    thinned.add(snapshots)
    return thinned.snapshots


def band(x: Floats, low: Floats, high: Floats) -> list[Floats]:
    """Return the outline between two curves, as matplotlib's PolyCollection takes it."""
    outline = np.column_stack([np.append(x, x[::-1]), np.append(low, high[::-1])])
    return [outline] if x.size else []


@dataclass(frozen=True)
class Memory:
    """Bytes over seconds, one array for each kind; charged is None where no cgroup told."""

    seconds: Floats
    kinds: tuple[Floats, Floats, Floats]  # as they are stacked: anonymous, shared, file-backed
    rss: Floats
    charged: Floats | None
    processes: int  # at most

    @property
    def last(self) -> float | None:
        """Return where the memory was at the end, None without snapshots.

        Whoever looks while a process is taken down sees a part of its memory, or none: the highest
        of the last few snapshots with a process tells.
        """
        alive = np.sum(self.kinds, axis=0)[self.kinds[0] > 0]
        return float(alive[-3:].max()) if alive.size else None

    @property
    def rss_misleads(self) -> bool:
        """Return whether the sum of RSS counts much twice: several processes share pages."""
        return self.processes > 1 and bool(self.rss.max() > 1.1 * self.top)

    @property
    def top(self) -> float:
        """Return the highest point of the stack."""
        return float(np.sum(self.kinds, axis=0).max(initial=0))


def memory_curves(snapshots: Sequence[Snapshot], until: float = 0) -> Memory:
    """Return the memory curves of snapshots. A lone one is held until the end, in seconds."""
    if len(snapshots) == 1:
        snapshots = [*snapshots, replace(snapshots[0], seconds=max(until, snapshots[0].seconds))]
    charged = [s.charged_bytes for s in snapshots]
    known = any(value is not None for value in charged)
    return Memory(
        np.array([s.seconds for s in snapshots], float),
        (
            np.array([s.anonymous_bytes for s in snapshots], float),
            np.array([s.shared_bytes for s in snapshots], float),
            np.array([s.file_bytes for s in snapshots], float),
        ),
        rss=np.array([s.rss_bytes for s in snapshots], float),
        charged=np.array(charged, float) if known else None,  # None becomes nan
        processes=max((s.processes for s in snapshots), default=0),
    )


@dataclass(frozen=True)
class Throughput:
    """Samples per second and the share of time waiting for data (0 to 1, nan where unknown)."""

    seconds: Floats
    rate: Floats
    waiting: Floats

    @property
    def top(self) -> float:
        """Return the highest rate."""
        return float(self.rate.max(initial=0))


def throughput_curves(snapshots: Sequence[Snapshot], window: float = 0.5) -> Throughput:
    """Return the throughput over a trailing window of so many seconds, less for a short run.

    A loader that gives a batch less often gets a window of three batches: between two batches
    its rate is not zero. Before the start there were none, so the first window's rate rises.
    """
    seconds = np.array([s.seconds for s in snapshots], float)
    if seconds.size < 2:
        return Throughput(seconds, np.zeros_like(seconds), np.full_like(seconds, np.nan))
    counts = [s.counters for s in snapshots]
    done = np.array([c.samples for c in counts], float)
    waited = np.array([c.waiting_seconds for c in counts], float)
    worked = np.array([c.working_seconds for c in counts], float)
    length = seconds[-1] - seconds[0]
    batch_seconds = (waited[-1] + worked[-1]) / max(counts[-1].batches, 1)
    window = min(max(min(window, length / 5), 3 * batch_seconds), length)
    before = seconds - window  # np.interp holds the first value before the first snapshot

    def grown(total: Floats) -> Floats:
        return np.asarray(total - np.interp(before, seconds, total))

    loop = grown(waited) + grown(worked)
    rate = grown(done) / window if window > 0 else np.zeros_like(seconds)
    waiting = np.divide(grown(waited), loop, out=np.full_like(loop, np.nan), where=loop > 0)
    return Throughput(seconds, rate, np.clip(waiting, 0, 1))
