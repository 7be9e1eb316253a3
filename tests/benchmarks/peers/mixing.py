"""How well batches are mixed: how many different labels one holds, and how many it would.

`helpers.mixing` measures whole epochs. Here a slow reader may come through only a part of one, so
what a full shuffle gives is said of the whole file, not of the part that was seen.
"""

import numpy as np
from numpy.typing import NDArray


def distinct_per_batch(labels: NDArray[np.int64], batch_size: int) -> float:
    """Return the average number of different labels in the whole batches of an epoch's labels."""
    whole = len(labels) // batch_size
    if not whole:
        return float(len(np.unique(labels)))
    batches = np.sort(labels[: whole * batch_size].reshape(whole, batch_size), axis=1)
    return float(1 + (batches[:, 1:] != batches[:, :-1]).sum(axis=1).mean())


def distinct_if_shuffled(counts: NDArray[np.int64], batch_size: int) -> float:
    """Return what a full shuffle gives, where label k is carried by `counts[k]` rows.

    A label is missing from a batch with the chance that none of its rows was drawn, one draw after
    another, without putting back.
    """
    total = int(counts.sum())
    batch_size = min(batch_size, total)
    drawn = np.arange(batch_size)
    left = np.maximum(total - counts[:, None] - drawn, 0) / (total - drawn)
    return float((1 - left.prod(axis=1)).sum())
