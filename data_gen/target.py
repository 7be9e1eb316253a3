"""Where a dataset lies in its folder, and whether what lies there is whole, ours, or neither.

A small .json file beside the data says what it was made from. It is put in place before the rows,
and the rows come last, by one rename: so rows beside a description that fits them are whole.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data_gen.blocks import Labels, Recipe, Rows
from data_gen.layouts import Layout
from helpers.units import format_bytes

MAKING = ".data_gen-making"  # the end of a folder's name: of files that are not finished
LOCK = ".data_gen-lock"
_MAKER = "data_gen 1"  # a new number where the same recipe would give other bytes


@dataclass(frozen=True)
class Target:
    """A recipe in a layout in a folder, and the names that follow from them."""

    folder: Path
    recipe: Recipe
    layout: Layout

    @property
    def kind(self) -> str:
        """Return 'features', or 'spectrograms' where a row has several axes."""
        return "features" if len(self.recipe.row_shape) == 1 else "spectrograms"

    @property
    def rows_name(self) -> str:
        """Return the name of the file with the rows."""
        return f"{self.kind}{self._order}{self.layout.suffix}"

    @property
    def labels_name(self) -> str:
        """Return the name of the file with the labels: in HDF5 the same."""
        if self.layout.format == "hdf5":
            return self.rows_name
        return "labels" + ("" if self.kind == "features" else f"-{self.kind}") + f"{self._order}.npy"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the files' names, the rows last."""
        return tuple(dict.fromkeys((self.labels_name, self.rows_name)))

    @property
    def description_name(self) -> str:
        """Return the name of the file that says what the data was made from."""
        return f"{Path(self.rows_name).stem}.json"

    @property
    def making(self) -> Path:
        """Return the folder, on the same disk, in which the files are written."""
        return self.folder / f".{Path(self.rows_name).stem}{MAKING}"

    @property
    def lock(self) -> Path:
        """Return the file that is locked while this is made."""
        return self.folder / f".{Path(self.rows_name).stem}{LOCK}"

    @property
    def description(self) -> dict[str, Any]:
        """Return what the data is made from, as it is read back from JSON."""
        parts = {"made_by": _MAKER, **asdict(self.recipe), **asdict(self.layout)}
        as_read: dict[str, Any] = json.loads(json.dumps(parts))
        return as_read

    @property
    def _order(self) -> str:
        return "" if self.recipe.order == "shuffled" else f"-{self.recipe.order}"
