"""Columns: arrays of rows in files, laid out so that any thread can read any run of rows at once.

Where the rows lie in the file as they are in memory (.npy, HDF5 without filters) they are read
straight into the caller's buffer, past every library. Gzip chunks are read raw and decompressed
here, because zlib lets other threads run meanwhile. Whatever else HDF5 can read goes through h5py,
which reads for one thread at a time.
"""

import hashlib
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from helpers.files import (
    Hdf5Header,
    NpyHeader,
    check_unchanged,
    read_hdf5_header,
    read_npy_header,
)

_SHUFFLE, _DEFLATE = 2, 1  # HDF5's numbers of its filters
_SAMPLES, _SAMPLE_BYTES = 16, 4096


class Read(Protocol):
    """Reads the rows from `start` to `stop` into `out`, which has room for just these."""

    def __call__(self, start: int, stop: int, out: NDArray[Any]) -> None: ...


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
    def row_shape(self) -> tuple[int, ...]:
        """Return the shape of one row."""
        return self.header.shape[1:]

    @property
    def row_bytes(self) -> int:
        """Return the bytes of one row in memory."""
        return self.header.nbytes // self.rows

    @property
    def chunk_rows(self) -> int:
        """Return how many rows can only be read together."""
        chunks = self.header.chunks if isinstance(self.header, Hdf5Header) else None
        return chunks[0] if chunks else 1

    def lay_out(self) -> "Layout":
        """Return where the rows lie, asked of the file now; it is closed again."""
        check_unchanged(self.path, self.header.identity)
        if isinstance(self.header, NpyHeader) or self.header.offset is not None:
            return _Plain(self)
        chunks = _find_chunks(self)
        return _Library(self) if chunks is None else chunks


def open_column(path: str | Path, name: str) -> Column:
    """Check a file and return its column: `name` counts for HDF5, which is all but `*.npy`."""
    path = Path(path).absolute()
    header = read_npy_header(path) if path.suffix == ".npy" else read_hdf5_header(path, name)
    return Column(path, name, header)


def fingerprint(path: Path) -> str:
    """Return a digest of a file's size and of 16 samples: a copy of the file has the same."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for sample in range(_SAMPLES):
            file.seek(size * sample // _SAMPLES)
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


class Layout(Protocol):
    """Knows where a column's rows lie. Each thread opens it for itself."""

    def open(self) -> AbstractContextManager[Read]:
        """Open the file for one thread, and check that it is still the one that was noted."""


@dataclass(frozen=True, slots=True)
class _Plain:
    """Rows one after another, as they are in memory."""

    column: Column

    @contextmanager
    def open(self) -> Iterator[Read]:
        with _open_unchanged(self.column) as file:
            yield partial(self._read, file)

    def _read(self, file: BinaryIO, start: int, stop: int, out: NDArray[Any]) -> None:
        offset, row_bytes = self.column.header.offset, self.column.row_bytes
        assert offset is not None
        _read_at(file, offset + start * row_bytes, _bytes_of(out))


@dataclass(frozen=True, slots=True)
class _Chunks:
    """Chunks of whole rows, each compressed with zlib or not at all."""

    column: Column
    offsets: NDArray[np.int64]  # of each chunk in the file
    sizes: NDArray[np.int64]  # in the file
    filters: tuple[int, ...]

    @contextmanager
    def open(self) -> Iterator[Read]:
        with _open_unchanged(self.column) as file:
            yield partial(self._read, file)

    def _read(self, file: BinaryIO, start: int, stop: int, out: NDArray[Any]) -> None:
        chunk_rows = self.column.chunk_rows
        for chunk in range(start // chunk_rows, -(-stop // chunk_rows)):
            first = chunk * chunk_rows
            wanted = slice(max(start - first, 0), min(stop - first, chunk_rows))
            into = out[first + wanted.start - start : first + wanted.stop - start]
            self._read_chunk(file, chunk, wanted, into)

    def _read_chunk(self, file: BinaryIO, chunk: int, wanted: slice, out: NDArray[Any]) -> None:
        offset, row_bytes = int(self.offsets[chunk]), self.column.row_bytes
        if not self.filters:
            _read_at(file, offset + wanted.start * row_bytes, _bytes_of(out))
            return
        packed = np.empty(self.sizes[chunk], np.uint8)
        _read_at(file, offset, memoryview(packed))
        whole = np.frombuffer(self._unpack(packed), np.uint8)
        target = out.view(np.uint8).reshape(len(out), row_bytes)
        if _SHUFFLE in self.filters:  # the first bytes of all values, then the second ones, ...
            whole = whole.reshape(out.itemsize, -1).T
        target[:] = whole.reshape(-1, row_bytes)[wanted]

    def _unpack(self, packed: NDArray[np.uint8]) -> bytes:
        chunk_bytes = self.column.chunk_rows * self.column.row_bytes
        whole = zlib.decompress(packed, bufsize=chunk_bytes)
        if len(whole) != chunk_bytes:
            raise OSError(f"a chunk of {chunk_bytes:,} bytes has {len(whole):,}")
        return whole


@dataclass(frozen=True, slots=True)
class _Library:
    """Rows that only HDF5 itself can find and decode."""

    column: Column

    @contextmanager
    def open(self) -> Iterator[Read]:
        import h5py

        check_unchanged(self.column.path, self.column.header.identity)
        # A block is read whole and once, so a cache of chunks would only take memory.
        with h5py.File(self.column.path, "r", rdcc_nbytes=0) as file:
            yield partial(self._read, file[self.column.name])

    def _read(self, dataset: Any, start: int, stop: int, out: NDArray[Any]) -> None:
        dataset.read_direct(out, np.s_[start:stop])


def _find_chunks(column: Column) -> _Chunks | None:
    """Return where the chunks lie, or None where they cannot be read past the library."""
    import h5py

    with h5py.File(column.path, "r") as file:
        dataset = file[column.name]
        plist = dataset.id.get_create_plist()
        filters = tuple(plist.get_filter(i)[0] for i in range(plist.get_nfilters()))
        if (
            dataset.chunks is None
            or dataset.chunks[1:] != column.row_shape
            or filters not in {(), (_DEFLATE,), (_SHUFFLE, _DEFLATE)}
            or file.userblock_size
        ):
            return None
        count = -(-column.rows // column.chunk_rows)
        offsets, sizes = np.zeros((2, count), np.int64)
        masks = []

        def note(chunk: Any) -> None:
            number = chunk.chunk_offset[0] // column.chunk_rows
            offsets[number], sizes[number] = chunk.byte_offset, chunk.size
            masks.append(chunk.filter_mask)

        dataset.id.chunk_iter(note)
    if len(masks) != count or any(masks):  # some were never written, or their filters skipped
        return None
    return _Chunks(column, offsets, sizes, filters)


@contextmanager
def _open_unchanged(column: Column) -> Iterator[BinaryIO]:
    with column.path.open("rb", buffering=0) as file:
        check_unchanged(column.path, column.header.identity, file.fileno())
        yield file  # type: ignore[misc]  # a FileIO is all that we need of a BinaryIO


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8))


def _read_at(file: BinaryIO, offset: int, into: memoryview) -> None:
    """Fill a buffer from the file: one system call moves at most 2 GiB, and often less."""
    file.seek(offset)
    while len(into):
        count = file.readinto(into)
        if not count:
            raise OSError(f"the file ended {len(into):,} bytes too early")
        into = into[count:]
