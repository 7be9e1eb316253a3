"""The record of a dataset on disk. It is small, so that it can be passed to child processes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_gen.recipe import Indices, Labels, Recipe, Rows
from helpers.units import format_bytes


@dataclass(frozen=True, slots=True, repr=False)
class GeneratedData:
    """Data that proves itself: where it lies, and the right value of any of its rows.

    In HDF5 `rows_path` and `labels_path` are the same file, with datasets "rows" and "labels".
    """

    rows_path: Path
    labels_path: Path
    recipe: Recipe

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return self.recipe.count

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Return the shape of one row."""
        return self.recipe.row_shape

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of all rows as one array."""
        return (self.recipe.count, *self.recipe.row_shape)

    @property
    def nbytes(self) -> int:
        """Return the bytes of all rows in memory; compressed, they take less on disk."""
        return self.recipe.nbytes

    def expected_rows(self, indices: Indices) -> Rows:
        """Return the right rows: float32, of the shape `(*indices.shape, *row_shape)`."""
        return self.recipe.rows(indices)

    def expected_labels(self, indices: Indices) -> Labels:
        """Return the right labels: int64, of the shape of `indices`."""
        return self.recipe.labels(indices)

    def count_wrong(self, rows: Any, indices: Indices) -> int:
        """Return how many of `rows`, an array or a tensor, are not the right ones for `indices`."""
        return self.recipe.count_wrong(rows, indices)

    def __repr__(self) -> str:
        recipe, shape = self.recipe, " x ".join(map(str, self.row_shape))
        order = ", labels in order" if recipe.order == "sorted" else ""
        return (
            f"{self.rows_path.name}: {self.rows:,} rows of {shape} float32, "
            f"{format_bytes(self.nbytes)}, {recipe.classes} classes{order}, seed {recipe.seed}"
        )
