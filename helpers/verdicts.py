"""Where does the time of a training loop go? Three runs, and what they say.

The loader alone, the step alone (one batch again and again), and both together. Whoever waits in
the third run is found in the first two.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from helpers.running.counting import whole

FREE = 0.05  # of the time: whoever waits less can win nothing worth a change
_FEWEST = 2


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """What three runs took, in seconds for each batch; the first batch of a run is left out."""

    loader_seconds: float
    step_seconds: float
    both_seconds: float
    waiting_seconds: float  # of the third run, for the loader
    batches: int  # that each run has timed

    @property
    def waiting_share(self) -> float:
        """Return the share of the time that the step waits for data, 0 to 1."""
        return min(self.waiting_seconds / self.both_seconds, 1.0)

    @property
    def loading_is_free(self) -> bool:
        """Return whether a faster loader would gain next to nothing."""
        return self.waiting_share < FREE

    @property
    def most_gain(self) -> float:
        """Return how many times as fast the loop would be if batches came at no cost."""
        return 1 / max(1 - self.waiting_share, 1e-9)

    def __repr__(self) -> str:
        times = ", ".join(
            f"{name} {_milliseconds(seconds)}"
            for name, seconds in (
                ("loader alone", self.loader_seconds),
                ("step alone", self.step_seconds),
                ("both", self.both_seconds),
            )
        )
        waits = f"the accelerator waits {self.waiting_share:.0%} of the time"
        if self.loading_is_free:
            return f"loading is already free ({waits}): to speed it up returns nothing; {times}"
        gain = f"at most {self.most_gain:.1f} times as fast, if loading took no time"
        return f"{waits}: {gain}; {times}"


def judge(
    loader: Iterable[Any],
    step: Callable[[Any], object],
    *,
    batches: int = 50,
    clock: Callable[[], float] = time.perf_counter,
) -> Verdict:
    """Time a loader alone, a training step alone and both together, over some batches each.

    `step(batch)` does the work of one batch. On a GPU let it wait for the result, as with
    `torch.cuda.synchronize()`: what is only queued there takes no time here. The first batch of a
    run, and those that workers have made ready meanwhile, are not timed; so start `loader` as you
    train with it, workers and all. An endless loader is left after so many batches.

    Raises ValueError for a loader that gives fewer than two batches, TypeError for a step that
    cannot be called or a loader that cannot be iterated. What they raise themselves comes through.
    """
    if not callable(step):
        raise TypeError(f"step is {step!r}: pass a function that takes a batch")
    if not whole(lambda: batches):
        raise ValueError(f"batches={batches!r}: pass a whole number above zero")
    alone = _Timed(loader, lambda _: None, batches, clock)
    both = _Timed(loader, step, batches, clock)
    again = _Timed(_repeated(alone.last, alone.taken), step, batches, clock)
    return Verdict(alone.seconds, again.seconds, both.seconds, both.waiting, both.timed)


class _Timed:
    """One run: the mean seconds of a batch, and the part of them that was spent waiting."""

    def __init__(
        self,
        loader: Iterable[Any],
        step: Callable[[Any], object],
        batches: int,
        clock: Callable[[], float],
    ) -> None:
        skip = 1 + _made_ready(loader)
        waits: list[float] = []
        works: list[float] = []
        asked = clock()
        for self.last in islice(_iterated(loader), skip + batches):
            arrived = clock()
            step(self.last)
            done = clock()
            waits.append(arrived - asked)
            works.append(done - arrived)
            asked = done
        self.taken = len(waits)
        if self.taken < _FEWEST:
            raise ValueError(
                f"the loader gave {self.taken} batch(es): pass one that gives {_FEWEST} or more, "
                "as the first is not timed"
            )
        skip = min(skip, self.taken // 2)
        self.timed = self.taken - skip
        self.waiting = sum(waits[skip:]) / self.timed
        self.seconds = self.waiting + sum(works[skip:]) / self.timed


def _iterated(loader: Iterable[Any]) -> Iterator[Any]:
    if not hasattr(loader, "__iter__"):
        raise TypeError(
            f"{type(loader).__name__} cannot be iterated: pass a DataLoader, or batches"
        )
    return iter(loader)


def _repeated(batch: Any, times: int) -> Iterator[Any]:
    return (batch for _ in range(times))


def _made_ready(loader: Any) -> int:
    """Return how many batches a DataLoader's workers prepare before they are asked."""
    workers, each = getattr(loader, "num_workers", 0), getattr(loader, "prefetch_factor", None)
    return int(workers) * int(each or 0) if isinstance(workers, int) else 0


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.3g} ms"
