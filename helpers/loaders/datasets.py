"""Map-style datasets over files larger than RAM, for a plain DataLoader.

    dataset = Labelled(NpyDataset("rows.npy"), NpyDataset("labels.npy"))
    dataset = Labelled(Hdf5Dataset("data.h5", "rows"), Hdf5Dataset("data.h5", "labels"))
    batches = BlockShuffleSampler(len(dataset), batch_size=256)
    for rows, labels in DataLoader(dataset, batch_sampler=batches, num_workers=2):
        ...

The constructor checks, notes the shape and closes. Each process opens the file for itself when it
first reads, so a dataset is small to send to workers, whichever way they start.

A list of indices gives a ready batch. It spares the loader its collation, which for small rows is
most of the work: DataLoader(dataset, sampler=batches, batch_size=None).
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

from helpers.loaders.columns import Column, check_labels, open_hdf5, open_npy
from helpers.loaders.order import Indices
from helpers.loaders.row_access import ChunkedRows, MappedRows
from helpers.loaders.settings import whole_number
from helpers.units import parse_size

Index = int | slice | Sequence[int] | Indices | torch.Tensor
Pair = tuple[torch.Tensor, torch.Tensor]

_LARGE_BYTES = 1 << 20  # of a batch: below, to make shared memory costs more than to copy


class FileDataset(Dataset[torch.Tensor]):
    """The rows of one column of a file, each a tensor that is its reader's own to change.

    Negative indices count from the end. Raises IndexError outside, TypeError for what is no
    integer, RuntimeError when the file has changed.
    """

    def __init__(self, column: Column, open_rows: Callable[[], MappedRows | ChunkedRows]) -> None:
        self.column = column
        self.path, self.shape, self.dtype = column.path, column.shape, column.torch_dtype
        self._open_rows = open_rows
        self._rows: MappedRows | ChunkedRows | None = None
        self._process: int | None = None  # that has opened them

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Index) -> torch.Tensor:
        """Return a row; for a slice, or indices in a list, an array or a tensor, all as one."""
        wanted, only_one = _from_start(index, len(self), self.path)
        batch = self._read(wanted)
        return batch[0] if only_one else batch

    def __getitems__(self, indices: Sequence[int]) -> tuple[torch.Tensor, ...]:
        """Return the rows of a batch one by one: a DataLoader asks so, and collates them."""
        return self._read(_from_start(indices, len(self), self.path)[0]).unbind()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the open file behind: a worker opens its own."""
        return {**self.__dict__, "_rows": None, "_process": None}

    def _read(self, wanted: Indices) -> torch.Tensor:
        self.column.check_unchanged()
        if self._rows is None or self._process != os.getpid():
            if self._rows is not None:  # a forked worker has them from its parent
                self._rows.close()
            self._rows, self._process = self._open_rows(), os.getpid()
        batch = torch.empty((len(wanted), *self.shape[1:]), dtype=self.dtype)
        if batch.nbytes >= _LARGE_BYTES and get_worker_info() is not None:
            # It would end there anyway, and the heap keeps holes where large batches were.
            batch.share_memory_()  # type: ignore[no-untyped-call]
        if wanted.size:
            self._rows.read(wanted, batch.numpy())
            self.column.check_unchanged()  # none of the rows is of another time
        return batch


class NpyDataset(FileDataset):
    """The rows of a .npy file."""

    def __init__(self, path: str | Path) -> None:
        column = open_npy(path)
        super().__init__(column, partial(MappedRows, column))


class Hdf5Dataset(FileDataset):
    """The rows of a dataset in an HDF5 file, contiguous or in chunks of any shape and compression.

    For compressed chunks, `cache_bytes` should hold one fill of a `BlockShuffleSampler`: its
    `buffer_blocks` of `block_rows`, which are best whole chunks (`column.chunk_rows`). Each process
    has its own cache. Chunks of whole rows with gzip are unpacked here; where HDF5 has to do it,
    its own cache may take twice as much.
    """

    def __init__(self, path: str | Path, name: str, *, cache_bytes: str | int = "64 MiB") -> None:
        column = open_hdf5(path, name)
        chunked = partial(ChunkedRows, column, parse_size(cache_bytes))
        # In one piece, the rows lie as in a .npy file.
        super().__init__(column, chunked if column.offset is None else partial(MappedRows, column))


class Labelled(Dataset[Pair]):
    """Rows and their labels, side by side, out of one file or of two."""

    def __init__(self, rows: FileDataset, labels: FileDataset) -> None:
        check_labels(rows.column, labels.column)
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


def _from_start(index: Index, length: int, path: Path) -> tuple[Indices, bool]:
    """Return indices counted from the start of the file, and whether it was but one."""
    if isinstance(index, slice):
        return np.arange(*index.indices(length)), False
    asked = np.asarray(index)
    if not asked.size:
        return np.empty(0, np.int64), False
    if asked.dtype.kind not in "iu":  # numbers of several types, or too large for one
        ones = index if isinstance(index, Sequence) else np.atleast_1d(index)
        asked = np.array([whole_number("index", one) for one in ones], object)
    if asked.ndim > 1:
        raise TypeError(f"{asked} are no indices: pass an integer, or a list of integers")
    wanted = np.atleast_1d(asked)
    outside = wanted[(wanted >= length) | (wanted < -length)]
    if outside.size:
        raise IndexError(f"index {outside[0]} is out of range: {path} has {length:,} rows")
    from_start = wanted.astype(np.int64, copy=False)
    return np.where(from_start < 0, from_start + length, from_start), not asked.ndim
