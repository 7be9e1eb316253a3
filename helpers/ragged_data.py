"""A part of generated data for a check to read: small, cold to the reader's code, and ragged.

The number of rows is a prime, so that no batch and no block divides it, and nobody knows it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PART_BYTES = 64 * 2**20  # loaded, it stands out from what imports and a few rows take
_WRITTEN_BYTES = 2**20  # at a time: what the check itself takes must not stand out


@dataclass(frozen=True)
class Part:
    """The first rows of `data`, in `.npy` files of the same names in another folder."""

    data: Any
    rows: int
    folder: Path

    @property
    def rows_path(self) -> Path:
        """Return the file with the rows."""
        return self.folder / str(self.data.rows_path.name)

    @property
    def labels_path(self) -> Path:
        """Return the file with the labels."""
        return self.folder / str(self.data.labels_path.name)

    @property
    def nbytes(self) -> int:
        """Return the bytes of all rows."""
        return self.rows * int(self.data.expected_rows([0]).nbytes)

    def __getattr__(self, name: str) -> Any:
        """Return what is the same in all of the data: the shape and the right values of a row."""
        return getattr(self.data, name)


def make_part(data: Any, folder: Path) -> Any:
    """Write the first rows of `data` into a new folder, and return what stands for `data` there.

    Takes up to 64 MiB of disk. Data in another format than npy is returned as it is.
    """
    if data.rows_path.suffix != ".npy":
        return data
    row = data.expected_rows([0])
    part = Part(data, _largest_prime(min(data.rows, PART_BYTES // row.nbytes)), folder)
    folder.mkdir()
    np.save(part.labels_path, data.expected_labels(range(part.rows)))
    header = {"descr": row.dtype.str, "fortran_order": False, "shape": (part.rows, *row.shape[1:])}
    step = max(1, _WRITTEN_BYTES // row.nbytes)
    with part.rows_path.open("wb") as file:  # a map's pages might be taken for the reader's
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, part.rows, step):
            indices = range(start, min(start + step, part.rows))
            file.write(data.expected_rows(indices).tobytes())
    return part


def _largest_prime(most: int) -> int:
    """Return the largest prime up to `most`, or 1."""
    return next((n for n in range(most, 1, -1) if all(n % d for d in range(2, int(n**0.5) + 1))), 1)
