"""Columns: arrays of rows in .npy and HDF5 files, checked, and known again when a file changed."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from helpers.reading.files import Hdf5Header, NpyHeader, read_hdf5_header, read_npy_header

# Enough for the disk's speed where several are read at a time; with the page that a block may begin
# in, half a megabyte, for which each of four threads has room past the page cache.
_BLOCK_BYTES = (1 << 19) - 4096
_FEWEST_BLOCKS = 32  # in a mix, and in a file, where their size is chosen here


@dataclass(frozen=True, slots=True)
class Column:
    """One checked array of rows: a .npy file, or the dataset `name` of an HDF5 file."""

    path: Path
    name: str
    header: NpyHeader | Hdf5Header

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return self.header.shape[0]

    @property
    def row_bytes(self) -> int:
        """Return the bytes of one row in memory."""
        return self.header.nbytes // self.rows

    @property
    def chunk_rows(self) -> int:
        """Return how many rows can only be read together: 1 where they lie one by one."""
        chunks = self.header.chunks if isinstance(self.header, Hdf5Header) else None
        return chunks[0] if chunks else 1


def open_column(path: str | Path, name: str) -> Column:
    """Check a file and return its column. `name` counts for HDF5, which is all but `*.npy`."""
    path = Path(path).absolute()
    header = read_npy_header(path) if path.suffix == ".npy" else read_hdf5_header(path, name)
    torch.from_numpy(np.empty(0, header.dtype))  # raises where torch has no such type
    return Column(path, name, header)


def open_columns(
    rows_path: str | Path, rows_name: str, labels_path: str | Path | None, labels_name: str
) -> list[Column]:
    """Return the column of rows and, where their path is given, that of their labels."""
    rows = open_column(rows_path, rows_name)
    if labels_path is None:
        return [rows]
    labels = open_column(labels_path, labels_name)
    if labels.rows != rows.rows:
        raise ValueError(
            f"{rows.path} has {rows.rows:,} rows, and {labels.path} {labels.rows:,} labels: "
            "pass the labels of these rows"
        )
    return [rows, labels]


def choose_block_rows(rows: Column, wanted: int | None, mix_rows: int) -> int:
    """Return the rows of a block, in whole chunks: as wanted, or else to suit disk and mix."""
    if wanted is None:
        most = min(mix_rows, rows.rows) // _FEWEST_BLOCKS
        wanted = max(min(_BLOCK_BYTES // rows.row_bytes, most), 1)
    chunks = -(-wanted // rows.chunk_rows)
    return min(chunks * rows.chunk_rows, max(wanted, rows.rows))


def fingerprint(path: Path) -> str:
    """Return a digest of a file's size and of 16 samples of it: a copy of the file has the same."""
    size = path.stat().st_size
    digest = hashlib.sha256(f"{size}".encode())
    with path.open("rb") as file:
        for sample in range(16):
            file.seek(size * sample // 16)
            digest.update(file.read(4096))
    return digest.hexdigest()
