"""Map-style datasets over files larger than RAM, for a plain DataLoader.

    dataset = Labelled(NpyDataset("rows.npy"), NpyDataset("labels.npy"))
    dataset = Labelled(Hdf5Dataset("data.h5", "rows"), Hdf5Dataset("data.h5", "labels"))
    for rows, labels in DataLoader(dataset, batch_size=256, shuffle=True, num_workers=2):
        ...

The constructor checks, notes the shape and closes. Each process opens the file for itself when it
first reads, so a dataset is small to send to workers, whichever way they start. A list of indices
gives a ready batch, which spares the loader its collation; with small rows that is most of the work:

    batches = BatchSampler(RandomSampler(dataset), batch_size=256, drop_last=False)
    loader = DataLoader(dataset, sampler=batches, batch_size=None)
"""

import mmap
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from helpers.files import (
    Hdf5Header,
    NpyHeader,
    check_unchanged,
    read_hdf5_header,
    read_npy_header,
)
from helpers.units import parse_size

Indices = NDArray[np.int64]
Index = int | Sequence[int] | Indices | torch.Tensor
Pair = tuple[torch.Tensor, torch.Tensor]
Rows = NDArray[Any]

_SLAB_BYTES = 1 << 23  # at most, of rows that HDF5 is asked for at once


class FileDataset(Dataset[torch.Tensor]):
    """The rows of one array in a file. This class knows indices and processes, but no format."""

    def __init__(
        self,
        path: Path,
        header: NpyHeader | Hdf5Header,
        open_rows: "Callable[[], MappedRows | ChunkedRows]",
    ) -> None:
        self.path = path
        self.shape = header.shape
        self.dtype = torch.from_numpy(np.empty(0, header.dtype)).dtype
        self._identity = header.identity
        self._open_rows = open_rows
        self._rows: MappedRows | ChunkedRows | None = None
        self._process: int | None = None  # that has opened them

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Index) -> torch.Tensor:
        """Return a row; for a list, an array or a tensor of indices, all of their rows as one."""
        wanted = np.asarray(index)
        batch = self._read(np.atleast_1d(wanted))
        return batch if wanted.ndim else batch[0]

    def __getitems__(self, indices: Sequence[int]) -> tuple[torch.Tensor, ...]:
        """Return the rows of a batch one by one: a DataLoader asks so, and collates them."""
        return self._read(np.asarray(indices)).unbind()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the open file behind: a worker opens its own."""
        return {**self.__dict__, "_rows": None, "_process": None}

    def _read(self, indices: Indices) -> torch.Tensor:
        wanted = _from_start(indices, len(self), self.path)
        check_unchanged(self.path, self._identity)
        if self._rows is None or self._process != os.getpid():
            if self._rows is not None:  # a forked worker has them from its parent
                self._rows.close()
            self._rows, self._process = self._open_rows(), os.getpid()
        batch = torch.empty((len(wanted), *self.shape[1:]), dtype=self.dtype)
        self._rows.read(wanted, batch.numpy())
        return batch


class NpyDataset(FileDataset):
    """The rows of a .npy file."""

    def __init__(self, path: str | Path) -> None:
        path = Path(path).absolute()
        header = read_npy_header(path)
        super().__init__(path, header, partial(MappedRows, path, header, header.offset))


class Hdf5Dataset(FileDataset):
    """The rows of a dataset in an HDF5 file, contiguous or in chunks of any shape and compression.

    For compressed chunks, `cache_bytes` should hold as many as are read in turn: the blocks that a
    `BlockShuffle` mixes. Each process has a cache of its own.
    """

    def __init__(self, path: str | Path, name: str, *, cache_bytes: str | int = "64 MiB") -> None:
        path = Path(path).absolute()
        header = read_hdf5_header(path, name)
        chunked = partial(ChunkedRows, path, name, header, parse_size(cache_bytes))
        if header.offset is None:
            super().__init__(path, header, chunked)
        else:  # contiguous: the rows lie as in a .npy file
            super().__init__(path, header, partial(MappedRows, path, header, header.offset))


class Labelled(Dataset[Pair]):
    """Rows and their labels, side by side, out of one file or of two."""

    def __init__(self, rows: FileDataset, labels: FileDataset) -> None:
        if len(rows) != len(labels):
            raise ValueError(
                f"{rows.path} has {len(rows):,} rows, and {labels.path} {len(labels):,} labels: "
                "pass the labels of these rows"
            )
        self.rows, self.labels = rows, labels

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Index) -> Pair:
        """Return a row and its label; for a list of indices, a ready batch of each."""
        return self.rows[index], self.labels[index]

    def __getitems__(self, indices: Sequence[int]) -> list[Pair]:
        """Return a batch pair by pair: a DataLoader asks so, and collates them."""
        rows, labels = self.rows.__getitems__(indices), self.labels.__getitems__(indices)
        return list(zip(rows, labels, strict=True))


class MappedRows:
    """Rows that lie in the file as they do in memory, copied out of a memory map.

    A disk is at its best with many reads in hand, so the rows of a batch are announced to the
    system before the first one is copied. Rows below a page are not: there the call costs more
    than the copy, and the system's own read-ahead does more for blocks in shuffled order.
    """

    def __init__(self, path: Path, header: NpyHeader | Hdf5Header, offset: int) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._offset, self._row_bytes = offset, header.nbytes // header.shape[0]
        # As bytes: HDF5 may lay numbers where numpy would have to copy all of them, to align them.
        values = np.frombuffer(self._map, np.uint8, count=header.nbytes, offset=offset)
        self._rows = values.reshape(-1, self._row_bytes)
        # Windows has no such advice.
        self._announces = self._row_bytes >= mmap.PAGESIZE and hasattr(mmap, "MADV_WILLNEED")
        if self._announces:
            self._map.madvise(mmap.MADV_RANDOM)  # read what is announced, and nothing around it

    def read(self, indices: Indices, out: Rows) -> None:
        """Fill `out` with the rows at `indices`."""
        if self._announces:
            starts = self._offset + np.sort(indices) * self._row_bytes
            within = starts % mmap.PAGESIZE
            for page, skipped in zip((starts - within).tolist(), within.tolist(), strict=True):
                self._map.madvise(mmap.MADV_WILLNEED, page, skipped + self._row_bytes)
        into = out.view(np.uint8).reshape(len(indices), self._row_bytes)
        np.take(self._rows, indices, axis=0, out=into, mode="clip")  # "clip" needs no buffer

    def close(self) -> None:
        """Let go of the file."""
        del self._rows  # it holds on to the map
        self._map.close()


class ChunkedRows:
    """Rows that only HDF5 can find or decode: read in the file's order, a chunk's in one call."""

    def __init__(self, path: Path, name: str, header: Hdf5Header, cache_bytes: int) -> None:
        import h5py  # slow to import, and .npy files do without it

        # Without filters the page cache will do, and HDF5's own would read whole chunks for a row.
        self._file = h5py.File(path, "r", rdcc_nbytes=cache_bytes if header.filters else 0)
        self._dataset = self._file[name]
        most = max(1, _SLAB_BYTES * header.shape[0] // header.nbytes)
        self._slab_rows = min(header.chunks[0], most) if header.chunks else most

    def read(self, indices: Indices, out: Rows) -> None:
        """Fill `out` with the rows at `indices`."""
        order = np.argsort(indices, kind="stable")
        slabs = indices[order] // self._slab_rows
        for places in np.split(order, np.flatnonzero(np.diff(slabs)) + 1):
            first, last = int(indices[places[0]]), int(indices[places[-1]])
            try:
                slab = self._dataset[first : last + 1]
            except OSError as error:
                raise OSError(
                    f"rows {first} to {last} of {self._dataset.name} in {self._file.filename} "
                    f"cannot be read ({error}): write the file again"
                ) from error
            out[places] = slab[indices[places] - first]

    def close(self) -> None:
        """Let go of the file: while it is open, HDF5 gives the same one to whoever opens it."""
        self._file.close()


def _from_start(indices: Indices, length: int, path: Path) -> Indices:
    """Return indices counted from the start of the file, or raise an error that names one."""
    if not indices.size:
        return np.empty(0, np.int64)
    if not np.issubdtype(indices.dtype, np.integer) or indices.ndim != 1:
        raise TypeError(f"{indices} are no indices: pass an integer, or a list of integers")
    from_start = np.where(indices < 0, indices + length, indices).astype(np.int64, copy=False)
    outside = indices[(from_start < 0) | (from_start >= length)]
    if outside.size:
        raise IndexError(f"index {outside[0]} is out of range: {path} has {length:,} rows")
    return from_start
