"""Curves out of samples: thinned to what a screen can show, smoothed into rates. Draws nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from helpers.records import Run, Sample

Floats = npt.NDArray[np.float64]

MOST_POINTS = 400  # about one for each pixel of a panel


class Thinned:
    """The samples worth drawing, kept at a bounded number while more arrive.

    Time is cut into equal spans and each keeps its highest sample, so that a short peak is never
    lost. When there are too many spans, they are made twice as long.
    """

    def __init__(self, most: int = MOST_POINTS) -> None:
        self._most = most
        self._span = 0.0
        self._last: Sample | None = None
        self._kept: list[Sample] = []

    def add(self, samples: Iterable[Sample]) -> None:
        """Take in new samples, in the order of their time."""
        for sample in samples:
            self._last = sample
            self._place(sample)
            if len(self._kept) > 2 * self._most:
                self._widen()

    def _place(self, sample: Sample) -> None:
        if not self._kept or not self._shares_span(self._kept[-1], sample):
            self._kept.append(sample)
        elif sample.budgeted_bytes >= self._kept[-1].budgeted_bytes:
            self._kept[-1] = sample

    def _shares_span(self, one: Sample, other: Sample) -> bool:
        return self._span > 0 and one.seconds // self._span == other.seconds // self._span

    def _widen(self) -> None:
        length = self._kept[-1].seconds - self._kept[0].seconds
        self._span = max(2 * self._span, length / self._most, 1e-6)
        kept, self._kept = self._kept, []
        for sample in kept:
            self._place(sample)

    @property
    def samples(self) -> list[Sample]:
        """Return what is kept, always with the very last sample."""
        if self._last is None or self._kept[-1] is self._last:
            return self._kept
        return [*self._kept, self._last]


def thin(samples: Sequence[Sample], most: int = MOST_POINTS) -> list[Sample]:
    """Return at most about twice `most` samples, with every peak and the last one among them."""
    thinned = Thinned(most)
    thinned.add(samples)
    return thinned.samples


def last_second(seen: Run | Sequence[Sample]) -> float:
    """Return where the time axis of a run, or of samples, has to end."""
    if isinstance(seen, Run):
        return seen.seconds
    return seen[-1].seconds if seen else 0.0


def band(x: Floats, low: Floats, high: Floats) -> list[Floats]:
    """Return the outline between two curves, as matplotlib's PolyCollection takes it."""
    if not x.size:
        return []
    return [np.column_stack([np.append(x, x[::-1]), np.append(low, high[::-1])])]


@dataclass(frozen=True)
class Memory:
    """Bytes over seconds, one array for each kind; charged is None where no cgroup told."""

    seconds: Floats
    anonymous: Floats
    shared: Floats
    file_backed: Floats
    rss: Floats
    charged: Floats | None
    processes: int  # at most

    @property
    def kinds(self) -> tuple[Floats, Floats, Floats]:
        """Return the kinds in the order in which they are stacked."""
        return self.anonymous, self.shared, self.file_backed

    @property
    def stack(self) -> Floats:
        """Return the upper edge of the stack."""
        return self.anonymous + self.shared + self.file_backed

    @property
    def last(self) -> float | None:
        """Return the last height of the stack while there was a process, None without samples."""
        alive = self.stack[self.stack > 0]
        return float(alive[-1]) if alive.size else None

    @property
    def rss_misleads(self) -> bool:
        """Return whether the sum of RSS counts much twice: several processes share pages."""
        return self.processes > 1 and bool(self.rss.max() > 1.1 * self.top)

    @property
    def top(self) -> float:
        """Return the highest point of the stack."""
        return float(self.stack.max()) if self.seconds.size else 0.0


def memory_curves(samples: Sequence[Sample], until: float = 0) -> Memory:
    """Return the memory curves of samples. A lone one is held until the end, in seconds."""
    if len(samples) == 1:
        samples = [*samples, replace(samples[0], seconds=max(until, samples[0].seconds))]
    charged = [s.charged_bytes for s in samples]
    known = any(value is not None for value in charged)
    return Memory(
        seconds=np.array([s.seconds for s in samples], float),
        anonymous=np.array([s.anonymous_bytes for s in samples], float),
        shared=np.array([s.shared_bytes for s in samples], float),
        file_backed=np.array([s.file_bytes for s in samples], float),
        rss=np.array([s.rss_bytes for s in samples], float),
        charged=np.array([np.nan if c is None else c for c in charged], float) if known else None,
        processes=max((s.processes for s in samples), default=0),
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
        return float(self.rate.max()) if self.rate.size else 0.0


def throughput_curves(samples: Sequence[Sample], window: float = 0.5) -> Throughput:
    """Return the throughput over a trailing window of so many seconds, less for a short run.

    A loader that gives a batch less often gets a window of three batches: between two batches
    its rate is not zero. Before the start there were no samples, so the first window's rate rises.
    """
    seconds = np.array([s.seconds for s in samples], float)
    if seconds.size < 2:
        return Throughput(seconds, np.zeros_like(seconds), np.full_like(seconds, np.nan))
    counts = [s.counters for s in samples]
    done = np.array([c.samples for c in counts], float)
    waited = np.array([c.waiting_seconds for c in counts], float)
    worked = np.array([c.working_seconds for c in counts], float)
    length = seconds[-1] - seconds[0]
    batch_seconds = (waited[-1] + worked[-1]) / max(counts[-1].batches, 1)
    window = min(max(min(window, length / 5), 3 * batch_seconds), length)
    before = seconds - window  # np.interp holds the first value before the first sample

    def grown(total: Floats) -> Floats:
        return np.asarray(total - np.interp(before, seconds, total))

    loop = grown(waited) + grown(worked)
    rate = grown(done) / window if window > 0 else np.zeros_like(seconds)
    waiting = np.divide(grown(waited), loop, out=np.full_like(loop, np.nan), where=loop > 0)
    return Throughput(seconds, rate, np.clip(waiting, 0, 1))
