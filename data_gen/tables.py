"""What all rows of one seed, row shape and number of classes share: noise tables and patterns.

Small enough to stay in a core's cache, made once per process, never pickled. Everything is drawn
in float64 and rounded once, so that mathematical libraries that differ in a last bit do not show.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

WINDOWS = 1 << 16  # starts in one noise table: 256 KiB of float32
_LENGTH = 3.0  # of a pattern, over noise of variance 1: a linear model gets most right, not all
_WAVES = 3  # that make up the pattern of a picture


class Tables(NamedTuple):
    """Two tables of noise, seen as overlapping windows, and one flat pattern per class."""

    patterns: NDArray[np.float32]  # (classes, width)
    first: NDArray[np.float32]  # (WINDOWS, width), a view
    second: NDArray[np.float32]  # (WINDOWS, width), a view
    row_shift: np.uint32
    label_shift: np.uint32


@lru_cache(maxsize=8)
def make_tables(seed: int, row_shape: tuple[int, ...], classes: int) -> Tables:
    """Return the tables: each drawn from its own seed, so that each can be made alone."""
    width = math.prod(row_shape)
    first, second = (
        np.random.default_rng([seed, table]).standard_normal(WINDOWS + width - 1) * math.sqrt(0.5)
        for table in (1, 2)
    )
    patterns = np.stack([_pattern(seed, row_shape, label).ravel() for label in range(classes)])
    shifts = np.random.default_rng([seed, 3]).integers(1 << 32, size=2, dtype=np.uint32)
    return Tables(
        patterns.astype(np.float32),
        sliding_window_view(first.astype(np.float32), width),
        sliding_window_view(second.astype(np.float32), width),
        shifts[0],
        shifts[1],
    )


def _pattern(seed: int, row_shape: tuple[int, ...], label: int) -> NDArray[np.float64]:
    """Return plain noise for a row of features, and a few waves for a picture."""
    random = np.random.default_rng([seed, 4, label])
    pattern = random.standard_normal(row_shape)
    if len(row_shape) > 1:
        axes = np.meshgrid(*(np.linspace(0, math.pi, size) for size in row_shape), indexing="ij")
        waves = [
            [np.cos(axis * random.integers(1, 9) + random.uniform(0, 2 * math.pi)) for axis in axes]
            for _ in range(_WAVES)
        ]
        pattern = np.prod(waves, axis=1).sum(axis=0)
    scaled: NDArray[np.float64] = pattern * (_LENGTH / np.linalg.norm(pattern))
    return scaled
