"""Tell which row of the data a row is, by its first values alone.

So no contestant has to carry an index along: what it hands out is looked up here, and then compared
value by value with what that row should be.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data_gen.recipe import Recipe

_VALUES = 32  # of a row: two rows that agree in all of these would be refused below
_AT_ONCE = 1 << 15


class Fingerprints:
    """A sorted list of keys, one for each row, and the rows' indices in that order."""

    def __init__(self, keys: NDArray[np.uint64], indices: NDArray[np.int64]) -> None:
        self._keys, self._indices = keys, indices

    @classmethod
    def of(cls, recipe: Recipe) -> "Fingerprints":
        """Make the keys of all rows, without reading a file."""
        keys = np.empty(recipe.count, np.uint64)
        step = max(1, _AT_ONCE * 512 // recipe.row_bytes)
        for start in range(0, recipe.count, step):
            wanted = range(start, min(start + step, recipe.count))
            keys[wanted.start : wanted.stop] = _keys(recipe.rows(wanted))
        indices = np.argsort(keys)
        keys = keys[indices]
        if (keys[1:] == keys[:-1]).any():
            raise ValueError(f"two rows of {recipe} have one fingerprint: pass another seed")
        return cls(keys, indices)

    @classmethod
    def load(cls, path: Path) -> "Fingerprints":
        """Return what `save` has written."""
        keys, indices = np.load(path)
        return cls(keys, indices.astype(np.int64))

    def save(self, path: Path) -> None:
        """Write both lists as one array."""
        np.save(path, np.stack([self._keys, self._indices.astype(np.uint64)]))

    def indices_of(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return each row's index in the data, or -1 where no row begins like it."""
        keys = _keys(np.ascontiguousarray(rows, np.float32))
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[places] == keys, self._indices[places], -1)


def _keys(rows: NDArray[np.float32]) -> NDArray[np.uint64]:
    flat = rows.reshape(len(rows), -1)[:, :_VALUES]
    values = np.ascontiguousarray(flat).view(np.uint32).astype(np.uint64)
    weights = np.random.default_rng(0).integers(0, 2**63, values.shape[1], np.uint64) * 2 + 1
    return np.asarray((values * weights).sum(axis=1), np.uint64)
