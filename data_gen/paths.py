"""Where a dataset lies in its folder: the names that follow from its recipe and layout."""

from dataclasses import dataclass
from pathlib import Path

from data_gen.generated import GeneratedData
from data_gen.layouts import Layout
from data_gen.recipe import Recipe

MAKING = ".data_gen-making"  # ends the name of a folder with unfinished files
LOCK = ".data_gen-lock"


@dataclass(frozen=True, slots=True)
class DatasetPaths:
    """A recipe in a layout in a folder. Variants that can be told by name stand side by side."""

    folder: Path
    recipe: Recipe
    layout: Layout

    @property
    def rows_name(self) -> str:
        """Return 'features.npy', 'spectrograms-sorted.npy', 'features-chunks512x128-gzip4.h5'."""
        return f"{self._kind}{self._order}{self.layout.suffix}"

    @property
    def labels_name(self) -> str:
        """Return the name of the file with the labels; in HDF5 they lie beside the rows."""
        if self.layout.format == "hdf5":
            return self.rows_name
        kind = "" if self._kind == "features" else f"{self._kind}-"
        return f"{kind}labels{self._order}.npy"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the files' names, the rows last."""
        return tuple(dict.fromkeys((self.labels_name, self.rows_name)))

    @property
    def data(self) -> GeneratedData:
        """Return the record of the data, once it is there."""
        rows, labels = (self.folder / name for name in (self.rows_name, self.labels_name))
        return GeneratedData(rows, labels, self.recipe)

    @property
    def description_path(self) -> Path:
        """Return the path of the file that says what the data was made from."""
        return self.folder / f"{self._stem}.json"

    @property
    def making(self) -> Path:
        """Return the folder, on the same disk, in which the files are written."""
        return self.folder / f".{self._stem}{MAKING}"

    @property
    def lock(self) -> Path:
        """Return the file that is locked while the files are written."""
        return self.folder / f".{self._stem}{LOCK}"

    @property
    def _stem(self) -> str:
        return Path(self.rows_name).stem

    @property
    def _kind(self) -> str:
        return "features" if len(self.recipe.row_shape) == 1 else "spectrograms"

    @property
    def _order(self) -> str:
        return "" if self.recipe.order == "shuffled" else f"-{self.recipe.order}"
