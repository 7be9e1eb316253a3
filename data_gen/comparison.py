"""Compare every row and label of a dataset with its right value, in constant memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data_gen.generated import GeneratedData
from data_gen.layouts import Layout
from data_gen.pieces import Tile, cut, works
from data_gen.progress_bar import Bar
from data_gen.recipe import Labels, Recipe
from data_gen.stored import Stored, stored
from data_gen.stream import spans
from data_gen.writers import Tick

_NAMED = 5  # of all wrong rows, the first


@dataclass(frozen=True, slots=True)
class Wrong:
    """How many rows, or labels, are wrong or cannot be read, and the indices of the first few."""

    count: int = 0
    first: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Checked:
    """What a check of all rows and labels has found."""

    data: GeneratedData
    rows: Wrong
    labels: Wrong

    @property
    def ok(self) -> bool:
        """Return whether every row and every label is right."""
        return not self.rows.count + self.labels.count

    def __repr__(self) -> str:
        name, total = self.data.rows_path.name, self.data.rows
        if self.ok:
            return f"{name}: all {total:,} rows and labels are right"
        found = (
            f"{wrong.count:,} of {total:,} {what} are wrong "
            f"(first {', '.join(f'{index:,}' for index in wrong.first)})"
            for wrong, what in ((self.rows, "rows"), (self.labels, "labels"))
            if wrong.count
        )
        return f"{name}: {', '.join(found)}: delete it and make it again"


def check(data: GeneratedData, *, progress: bool = True) -> Checked:
    """Compare all rows and labels with their right values, some MiB at a time.

    What cannot be read counts as wrong. Raises OSError for a file that is missing or that may not
    be read, and ValueError for one that cannot be opened as the array it should hold.
    """
    recipe = data.recipe
    with Bar(f"check {data.rows_path.name}", recipe.nbytes, shown=progress) as bar:
        with stored(data.rows_path, "rows", data.shape, "float32") as array:
            rows = _together(_wrong_rows(recipe, array, bar.update))
        with stored(data.labels_path, "labels", (recipe.count,), "int64") as array:
            labels = _together(_wrong_labels(recipe, array))
    return Checked(data, rows, labels)


def _wrong_rows(recipe: Recipe, array: Stored, tick: Tick) -> Iterator[Labels]:
    """Yield the indices of wrong rows, band by band; each chunk of the file is read once."""
    layout = Layout("hdf5", array.chunks)
    for rows, band in groupby(works(recipe, layout), key=lambda work: work.rows):
        wrong = np.zeros(len(rows), np.bool_)
        for piece in chain.from_iterable(cut(recipe, work) for work in band):
            wrong |= _differing(array.read, piece.place, piece.data)
            tick(piece.data.nbytes)
        yield rows.start + np.flatnonzero(wrong)


def _wrong_labels(recipe: Recipe, array: Stored) -> Iterator[Labels]:
    for span in spans(recipe.count, array.dtype.itemsize):
        place = (slice(span.start, span.stop),)
        yield span.start + np.flatnonzero(_differing(array.read, place, recipe.labels(span)))


def _differing(
    read: Callable[[Tile], NDArray[Any]], place: Tile, right: NDArray[Any]
) -> NDArray[np.bool_]:
    """Return for each row of a place whether it differs. What cannot be read is tried in halves."""
    try:
        differs: NDArray[np.bool_] = (read(place) != right).reshape(len(right), -1).any(axis=1)
        return differs
    except (OSError, EOFError):
        if len(right) == 1:
            return np.ones(1, np.bool_)
    start, middle, stop = place[0].start, len(right) // 2, place[0].stop
    halves = (slice(start, start + middle), slice(start + middle, stop))
    parts = zip(halves, (right[:middle], right[middle:]), strict=True)
    return np.concatenate([_differing(read, (rows, *place[1:]), part) for rows, part in parts])


def _together(found: Iterator[Labels]) -> Wrong:
    count, first = 0, list[int]()
    for indices in found:
        count += len(indices)
        first += indices[: _NAMED - len(first)].tolist()
    return Wrong(count, tuple(first))
