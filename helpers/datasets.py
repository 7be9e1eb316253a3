"""Map-style datasets over files larger than RAM, for a plain DataLoader.

    dataset = Labelled(NpyDataset("rows.npy"), NpyDataset("labels.npy"))
    dataset = Labelled(Hdf5Dataset("data.h5", "rows"), Hdf5Dataset("data.h5", "labels"))
    for rows, labels in DataLoader(dataset, batch_size=256, shuffle=True, num_workers=2):
        ...

The constructor checks, notes the shape and closes. Each process opens the file for itself when it
first reads, so a dataset is small to send to workers, whichever way they start.

A list of indices gives a ready batch, which spares the loader its collation, row by row:

    batches = BatchSampler(RandomSampler(dataset), batch_size=256, drop_last=False)
    loader = DataLoader(dataset, sampler=batches, batch_size=None)
"""

import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from helpers.files import Hdf5Header, NpyHeader, check_unchanged, read_hdf5_header, read_npy_header
from helpers.units import parse_size

Indices = NDArray[np.int64]
Rows = NDArray[Any]
Index = int | Sequence[int] | Indices | torch.Tensor
Labelling = tuple[torch.Tensor, torch.Tensor]

_SLAB_BYTES = 1 << 23  # the most that HDF5 is asked for at once
_SIEVE_BYTES = 1 << 16  # what HDF5 reads at once of a contiguous dataset


class FileDataset(Dataset[torch.Tensor]):
    """The rows of one array in a file. This class knows indices and processes, but no format."""

    def __init__(self, path: str | Path, header: NpyHeader | Hdf5Header) -> None:
        self.path = Path(path).absolute()
        self.shape = header.shape
        self._identity = header.identity
        self._dtype = torch.from_numpy(np.empty(0, header.dtype)).dtype
        self._opened: Any = None
        self._process: int | None = None  # that has opened the file

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Index) -> torch.Tensor:
        """Return a row; for a list, an array or a tensor of indices, all of their rows as one."""
        wanted = np.asarray(index)
        batch = self._batch(np.atleast_1d(wanted))
        return batch if wanted.ndim else batch[0]

    def __getitems__(self, indices: Sequence[int]) -> tuple[torch.Tensor, ...]:
        """Return the rows of a batch one by one: a DataLoader asks so, and collates them."""
        return self._batch(np.asarray(indices)).unbind()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the open file behind: a worker opens its own."""
        return {**self.__dict__, "_opened": None, "_process": None}

    def _batch(self, indices: Indices) -> torch.Tensor:
        wanted = self._from_start(indices)
        check_unchanged(self.path, self._identity)
        if self._process != os.getpid():  # the first access here, or after a fork
            self._close_inherited()
            self._opened, self._process = self._open(), os.getpid()
        batch = torch.empty((len(wanted), *self.shape[1:]), dtype=self._dtype)
        self._read(wanted, batch.numpy())
        return batch

    def _from_start(self, indices: Indices) -> Indices:
        """Return indices counted from the start of the file, or raise an error that names one."""
        if not indices.size:
            return np.empty(0, np.int64)
        if not np.issubdtype(indices.dtype, np.integer) or indices.ndim != 1:
            raise TypeError(f"{indices} are no indices: pass an integer, or a list of integers")
        from_start = np.where(indices < 0, indices + len(self), indices)
        outside = indices[(from_start < 0) | (from_start >= len(self))]
        if outside.size:
            raise IndexError(
                f"index {outside[0]} is out of range: {self.path} has {len(self):,} rows"
            )
        return from_start

    def _open(self) -> Any:
        raise NotImplementedError

    def _read(self, indices: Indices, out: Rows) -> None:
        raise NotImplementedError

    def _close_inherited(self) -> None:
        """Close what a forked worker has from its parent, where it must not be shared."""


class NpyDataset(FileDataset):
    """The rows of a .npy file, copied out of a memory map.

    A disk is at its best with many reads in hand. So all rows of a batch are announced to the
    system, in the file's order, before the first one is copied. Rows smaller than a page are not:
    there the call costs more than the copy. Read those in blocks, with `helpers.order`.
    """

    def __init__(self, path: str | Path) -> None:
        self._header = read_npy_header(path)
        super().__init__(path, self._header)

    def _open(self) -> tuple[mmap.mmap, Rows]:
        with self.path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._announces:
            mapped.madvise(mmap.MADV_RANDOM)  # read what is announced, and nothing around it
        rows = np.frombuffer(mapped, self._header.dtype, offset=self._header.offset)
        return mapped, rows.reshape(self.shape)

    def _read(self, indices: Indices, out: Rows) -> None:
        mapped, rows = self._opened
        if self._announces:
            first = self._header.offset + np.sort(indices) * self._header.row_bytes
            skipped = first % mmap.PAGESIZE
            for page, before in zip((first - skipped).tolist(), skipped.tolist(), strict=True):
                mapped.madvise(mmap.MADV_WILLNEED, page, before + self._header.row_bytes)
        np.take(rows, indices, axis=0, out=out, mode="clip")  # "clip" needs no copy on the way

    @property
    def _announces(self) -> bool:
        return self._header.row_bytes >= mmap.PAGESIZE and hasattr(mmap, "MADV_WILLNEED")


class Hdf5Dataset(FileDataset):
    """The rows of a dataset in an HDF5 file, contiguous or in chunks of any shape and compression.

    A batch is read in the file's order, and rows out of one chunk in one call. For chunks that
    are compressed, `cache_bytes` should hold the blocks that are mixed (see `helpers.order`).
    """

    def __init__(self, path: str | Path, name: str, *, cache_bytes: str | int = "64 MiB") -> None:
        self._header = read_hdf5_header(path, name)
        super().__init__(path, self._header)
        self.name = name
        self._cache_bytes = parse_size(cache_bytes)

    def _open(self) -> Any:
        import h5py  # slow to import, and .npy files do without it

        # Without filters the page cache will do, and HDF5's own would read whole chunks for a row.
        cache_bytes = self._cache_bytes if self._header.filters else 0
        return h5py.File(self.path, "r", rdcc_nbytes=cache_bytes)[self.name]

    def _read(self, indices: Indices, out: Rows) -> None:
        order = np.argsort(indices, kind="stable")
        units = indices[order] // self._unit_rows
        for places in np.split(order, np.flatnonzero(np.diff(units)) + 1):
            first, last = indices[places[0]], indices[places[-1]]
            try:
                slab = self._opened[first : last + 1]
            except OSError as error:
                raise OSError(
                    f"rows {first} to {last} of dataset {self.name!r} in {self.path} cannot be "
                    f"read ({error}): write the file again"
                ) from error
            out[places] = slab[indices[places] - first]

    @property
    def _unit_rows(self) -> int:
        """Return how many rows HDF5 reads about as fast as one of them."""
        row_bytes = self._header.nbytes // len(self)
        if self._header.chunks is None:
            return max(1, _SIEVE_BYTES // row_bytes)
        return max(1, min(self._header.chunks[0], _SLAB_BYTES // row_bytes))

    def _close_inherited(self) -> None:
        if self._opened is not None:  # else HDF5 would hand out the parent's open file again
            self._opened.file.close()


class Labelled(Dataset[Labelling]):
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

    def __getitem__(self, index: Index) -> Labelling:
        """Return a row and its label; for a list of indices, a ready batch of each."""
        return self.rows[index], self.labels[index]

    def __getitems__(self, indices: Sequence[int]) -> list[Labelling]:
        """Return a batch pair by pair: a DataLoader asks so, and collates them."""
        pairs = zip(self.rows.__getitems__(indices), self.labels.__getitems__(indices), strict=True)
        return list(pairs)
