"""Columns: arrays of rows in files, which any thread can read anywhere. Nothing is kept open here.

Where rows lie in the file as they do in memory (.npy, HDF5 without filters) they are read straight
into the caller's array, past every library. Chunks compressed with gzip are read raw and
decompressed here, because zlib lets other threads run meanwhile. Whatever else HDF5 can read goes
through h5py, which serves one thread at a time.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from helpers.files import (
    Hdf5Header,
    NpyHeader,
    check_unchanged,
    read_hdf5_header,
    read_npy_header,
)

Rows = NDArray[Any]
Read = Callable[[int, Rows], None]  # fills an array with the rows from a first one on

_DEFLATE, _SHUFFLE = 1, 2  # HDF5's numbers for its filters
_READABLE_FILTERS = {(), (_DEFLATE,), (_SHUFFLE, _DEFLATE)}


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


@dataclass(frozen=True, slots=True)
class Chunks:
    """Where the rows lie in the file: in chunks of whole rows, of which a .npy file is one."""

    rows: int  # in each
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]  # in the file
    filters: tuple[int, ...] = ()


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


def fingerprint(path: Path) -> str:
    """Return a digest of a file's size and of 16 samples of it: a copy of the file has the same."""
    size = path.stat().st_size
    digest = hashlib.sha256(f"{size}".encode())
    with path.open("rb") as file:
        for sample in range(16):
            file.seek(size * sample // 16)
            digest.update(file.read(4096))
    return digest.hexdigest()


def find_chunks(column: Column) -> Chunks | None:
    """Return where the rows lie now, or None where only HDF5 itself can tell or decode them."""
    check_unchanged(column.path, column.header.identity)
    if column.header.offset is None:
        return _find_hdf5_chunks(column)
    offset, size = np.array([[column.header.offset], [column.header.nbytes]])
    return Chunks(column.rows, offset, size)


@contextmanager
def open_rows(column: Column, chunks: Chunks | None) -> Iterator[Read]:
    """Open a column for one thread, and check that it is still the file that was noted."""
    if chunks is None:
        import h5py  # slow to import, and .npy files do without it

        check_unchanged(column.path, column.header.identity)
        # Blocks are read whole and once: a cache of chunks would only take memory.
        with h5py.File(column.path, "r", rdcc_nbytes=0) as file:
            yield partial(_read_through_library, file[column.name])
    else:
        with column.path.open("rb", buffering=0) as file:
            check_unchanged(column.path, column.header.identity, file.fileno())
            yield partial(_read_chunks, file, column, chunks)


def _read_through_library(dataset: Any, first: int, out: Rows) -> None:
    dataset.read_direct(out, np.s_[first : first + len(out)])


def _read_chunks(file: FileIO, column: Column, chunks: Chunks, first: int, out: Rows) -> None:
    done = 0
    while done < len(out):
        number, skipped = divmod(first + done, chunks.rows)
        part = out[done : done + chunks.rows - skipped]
        offset, skipped_bytes = int(chunks.offsets[number]), skipped * column.row_bytes
        if chunks.filters:
            packed = np.empty(chunks.sizes[number], np.uint8)
            _read_at(file, offset, packed)
            whole = _unpack(packed, chunks, column.row_bytes, out.itemsize)
            into = _bytes_of(part).reshape(-1, out.itemsize)
            into[:] = whole[skipped_bytes // out.itemsize :][: len(into)]
        else:
            _read_at(file, offset + skipped_bytes, _bytes_of(part))
        done += len(part)


def _unpack(packed: Rows, chunks: Chunks, row_bytes: int, item_bytes: int) -> Rows:
    """Return the bytes of a chunk, an item to a row."""
    size = chunks.rows * row_bytes
    whole = np.frombuffer(zlib.decompress(packed.data, bufsize=size), np.uint8)
    if len(whole) != size:
        raise OSError(f"a chunk of {size:,} bytes has {len(whole):,}")
    if _SHUFFLE in chunks.filters:  # the first bytes of all items, then their second ones, ...
        return whole.reshape(item_bytes, -1).T
    return whole.reshape(-1, item_bytes)


def _find_hdf5_chunks(column: Column) -> Chunks | None:
    import h5py

    with h5py.File(column.path, "r") as file:
        dataset = file[column.name]
        plist = dataset.id.get_create_plist()
        filters = tuple(plist.get_filter(place)[0] for place in range(plist.get_nfilters()))
        whole_rows = dataset.chunks is not None and dataset.chunks[1:] == dataset.shape[1:]
        if not whole_rows or filters not in _READABLE_FILTERS:
            return None
        offsets, sizes, masks = np.zeros((3, -(-column.rows // column.chunk_rows)), np.int64)

        def note(chunk: Any) -> None:
            number = chunk.chunk_offset[0] // column.chunk_rows
            offsets[number], sizes[number] = chunk.byte_offset, chunk.size
            masks[number] = chunk.filter_mask

        dataset.id.chunk_iter(note)
    if not sizes.all() or masks.any():  # chunks never written, or stored past their filters
        return None
    return Chunks(column.chunk_rows, offsets, sizes, filters)


def _bytes_of(rows: Rows) -> NDArray[np.uint8]:
    return rows.reshape(-1).view(np.uint8)


def _read_at(file: FileIO, offset: int, into: NDArray[np.uint8]) -> None:
    """Fill an array from a place in the file: one call may read less than was asked for."""
    file.seek(offset)
    while len(into):
        count = file.readinto(into.data)
        if not count:
            raise OSError(f"the file ended {len(into):,} bytes too early")
        into = into[count:]
