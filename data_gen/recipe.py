"""Rows that follow from their index and a seed, so any loader can be checked row by row.

A row is its class's pattern plus one window out of each of two fixed noise tables. Where the
windows start follows from the row's index alone, so a row costs about as much as copying it, and
any row can be made again without reading a file. This module writes nothing.

    >>> recipe = Recipe(count=1_000_000, seed=7)
    >>> rows = recipe.rows([3, 1, 4])
    >>> rows.shape, recipe.count_wrong(rows, [3, 1, 5])
    ((3, 128), 1)
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from data_gen.tables import WINDOWS, Tables, make_tables
from data_gen.whole_numbers import whole_number, whole_numbers

LabelOrder = Literal["shuffled", "sorted"]
Rows = NDArray[np.float32]
Labels = NDArray[np.int64]
Indices = ArrayLike | range

_MOST_ROWS = WINDOWS**2  # every row has its own pair of window starts
_FEWEST_VALUES = 8  # in a row: fewer, and two rows might be equal by chance
_MOST_ROW_BYTES = 1 << 24
_SLICE_BYTES = 1 << 20  # made at a time: the temporaries stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Recipe:
    """What decides every value: `count` float32 rows of `row_shape`, and their int64 labels.

    A row depends on the seed, its index, `row_shape` and `classes`, and with `order="sorted"`
    (labels ascend along the file) on `count` too; never on how, or in what blocks, it is asked for.
    """

    count: int
    row_shape: tuple[int, ...] = (128,)
    seed: int = 0
    classes: int = 10
    order: LabelOrder = "shuffled"

    def __post_init__(self) -> None:
        for name in ("count", "seed", "classes"):  # numbers of numpy and torch become plain ones
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        object.__setattr__(self, "row_shape", whole_numbers("row_shape", self.row_shape))
        for wrong, message in _mistakes(self):
            if wrong:
                raise ValueError(message)

    @property
    def width(self) -> int:
        """Return the number of values in a row."""
        return math.prod(self.row_shape)

    @property
    def row_bytes(self) -> int:
        """Return the bytes of a row."""
        return 4 * self.width

    @property
    def nbytes(self) -> int:
        """Return the bytes of all rows."""
        return self.count * self.row_bytes

    def labels(self, indices: Indices) -> Labels:
        """Return the labels of the rows at `indices`: int64, of the shape of `indices`."""
        wanted = self._checked(indices)
        return self._labels(wanted.ravel()).reshape(wanted.shape)

    def rows(self, indices: Indices) -> Rows:
        """Return the rows at `indices`: float32, of the shape `(*indices.shape, *row_shape)`."""
        wanted = self._checked(indices)
        rows = np.empty((wanted.size, self.width), np.float32)
        for part, label, first, second in self._slices(wanted.ravel()):
            self._fill(rows[part], label, first, second)
        return rows.reshape(*wanted.shape, *self.row_shape)

    def count_wrong(self, rows: Any, indices: Indices) -> int:
        """Return how many of `rows` have a value that differs from the rows at `indices`.

        `rows` is an array, or a tensor in main memory, that holds one whole row for each index.
        """
        wanted = self._checked(indices)
        given = np.asarray(rows)
        if given.size != wanted.size * self.width:
            raise ValueError(
                f"an array of shape {given.shape} does not hold {wanted.size} rows of shape "
                f"{self.row_shape}: pass one whole row for each index"
            )
        given = given.reshape(wanted.size, self.width)
        scratch = np.empty((min(self._slice_rows, wanted.size), self.width), np.float32)
        wrong = 0
        for part, label, first, second in self._slices(wanted.ravel()):
            right = scratch[: len(label)]
            self._fill(right, label, first, second)
            wrong += int(np.count_nonzero((given[part] != right).any(axis=1)))
        return wrong

    @property
    def _slice_rows(self) -> int:
        return max(1, _SLICE_BYTES // self.row_bytes)

    @property
    def _tables(self) -> Tables:
        return make_tables(self.seed, self.row_shape, self.classes)

    def _checked(self, indices: Indices) -> Labels:
        if isinstance(indices, range):  # numpy would go through it number by number
            indices = np.arange(indices.start, indices.stop, indices.step)
        wanted = np.asarray(indices)
        if wanted.size == 0:
            return wanted.astype(np.int64)
        if not np.issubdtype(wanted.dtype, np.integer):
            raise TypeError(f"indices are {wanted.dtype}: pass integers from 0 to {self.count - 1}")
        for index in (int(wanted.min()), int(wanted.max())):
            if not 0 <= index < self.count:
                raise IndexError(
                    f"index {index} is out of range: pass indices from 0 to {self.count - 1}"
                )
        return wanted.astype(np.int64, copy=False)

    def _labels(self, indices: Labels) -> Labels:
        if self.order == "sorted":
            return indices * self.classes // self.count
        keys = _mixed(indices.astype(np.uint32) + self._tables.label_shift)
        return (keys % np.uint32(self.classes)).astype(np.int64)

    def _slices(self, indices: Labels) -> Iterator[tuple[slice, Labels, Labels, Labels]]:
        """Yield slices that fit the cache, each with its rows' labels and two window starts."""
        labels = self._labels(indices)
        keys = _mixed(indices.astype(np.uint32) + self._tables.row_shift)
        first = (keys >> np.uint32(16)).astype(np.int64)  # 0 to WINDOWS - 1, as the second
        second = (keys & np.uint32(WINDOWS - 1)).astype(np.int64)
        for start in range(0, len(indices), self._slice_rows):
            part = slice(start, start + self._slice_rows)
            yield part, labels[part], first[part], second[part]

    def _fill(self, rows: Rows, labels: Labels, first: Labels, second: Labels) -> None:
        tables = self._tables
        np.take(tables.patterns, labels, axis=0, out=rows, mode="clip")  # "clip" needs no copy
        rows += tables.first[first]
        rows += tables.second[second]


def _mixed(numbers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return 32-bit numbers shuffled one to one: an odd factor loses nothing, nor does a shift."""
    mixed = numbers ^ (numbers >> np.uint32(16))
    for factor in (0x85EBCA6B, 0xC2B2AE35):
        mixed *= np.uint32(factor)
        mixed ^= mixed >> np.uint32(15)
    return mixed


def _mistakes(recipe: Recipe) -> Iterator[tuple[bool, str]]:
    shape = recipe.row_shape
    yield not shape or min(shape) < 1, f"row shape {shape} is empty: pass (128,) or (64, 64)"
    yield (
        not _FEWEST_VALUES <= recipe.width <= _MOST_ROW_BYTES // 4,
        f"row shape {shape} has {recipe.width} values: "
        f"pass one with {_FEWEST_VALUES} to {_MOST_ROW_BYTES // 4:,}",
    )
    yield (
        not 1 <= recipe.count <= _MOST_ROWS,
        f"{recipe.count} rows cannot be made: ask for 1 to {_MOST_ROWS:,}",
    )
    yield recipe.seed < 0, f"seed {recipe.seed} is negative: pass 0 or more"
    yield not 2 <= recipe.classes <= 1000, f"{recipe.classes} classes: pass 2 to 1000"
    yield (
        recipe.order not in ("shuffled", "sorted"),
        f"order {recipe.order!r} is unknown: pass 'shuffled' or 'sorted'",
    )
