"""How well an order is mixed: a measure of what was handed out, whoever shuffled it.

It stands beside what a full shuffle gives on average, so that it needs no second run:

    >>> distinct_labels([0, 0, 1, 1, 2, 2], batch_size=2)
    distinct labels in a batch: 1, after a full shuffle 1.8 (56%)

Of a loader: distinct_labels(torch.cat([labels for _, labels in loader]), batch_size=256).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.loaders.settings import whole_number

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, repr=False)
class Mixing:
    """How many labels a batch has on average, as measured and as a full shuffle gives."""

    measured: float
    full_shuffle: float

    @property
    def share(self) -> float:
        """Return the measure as a share of the full shuffle's: 1 is best, more is no better."""
        return self.measured / self.full_shuffle

    def __repr__(self) -> str:
        measured, full = (
            f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
            for value in (self.measured, self.full_shuffle)
        )
        return (
            f"distinct labels in a batch: {measured}, after a full shuffle {full} "
            f"({self.share:.0%})"
        )


def distinct_labels(labels: ArrayLike, batch_size: int, *, of: ArrayLike | None = None) -> Mixing:
    """Measure how many labels a batch has on average. `labels` come as they were handed out.

    After a full shuffle a batch of b is drawn without replacement from n rows. A label that m rows
    have is missing (the hypergeometric distribution) with probability C(n-m, b) / C(n, b), which is
    the product of 1 - m / (n - i) for i = 0 ... b-1. The expected number of labels is the sum over
    all labels of 1 less that probability.

    Where only a part of the rows was handed out, `of` has the labels of all, in any order: the part
    alone would hide that it is not mixed.
    """
    handed_out = _numbers(labels)
    drawn_from = handed_out if of is None else _numbers(of)
    batch_size = whole_number("batch_size", batch_size, 1)
    starts = range(0, len(handed_out), batch_size)
    batches = [handed_out[start : start + batch_size] for start in starts]
    if len(drawn_from) < len(batches[0]):
        raise ValueError(
            f"of has {len(drawn_from)} rows, less than a batch of {len(batches[0])}: "
            "pass the labels of all rows"
        )
    _, counts = np.unique(drawn_from, return_counts=True)
    expected = {size: _expected_distinct(counts, size) for size in {len(b) for b in batches}}
    return Mixing(
        float(np.mean([len(np.unique(batch)) for batch in batches])),
        float(np.mean([expected[len(batch)] for batch in batches])),
    )


def _expected_distinct(counts: Integers, batch_size: int) -> float:
    """Return how many labels a batch drawn from `counts` rows of each has on average."""
    sizes, labels = np.unique(counts, return_counts=True)  # labels of one size fare alike
    left = counts.sum() - np.arange(batch_size)
    missing = np.prod(1 - sizes[:, None] / left, axis=1)
    return float(labels @ (1 - missing))


def _numbers(values: ArrayLike) -> Integers:
    numbers = np.asarray(values)
    if numbers.ndim != 1 or not numbers.size or not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(
            f"{numbers.dtype} of shape {numbers.shape} cannot be measured: pass one integer for "
            "each row, in the order they were handed out"
        )
    return numbers.astype(np.int64, copy=False)
