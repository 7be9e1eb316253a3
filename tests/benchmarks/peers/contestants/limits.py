"""What no reader can pass: the disk, the page cache, memory itself, decompression, hand-over."""

import time
import zlib
from collections.abc import Callable

import h5py
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from helpers.disk import sequential_read

from ..epoch import time_epoch
from ..records import Source, Timing
from .mixed_blocks import Batch

_COPY_BYTES = 64 << 20
_COPIES = 16


def measure(source: Source, variant: str, seconds: float) -> Timing:
    """Return how long the whole data took, in one thread and without any mixing."""
    if variant == "hand-over":
        return time_epoch(_ready_batches(source), seconds)
    limits: dict[str, Callable[[Source], int]] = {
        "read": _read,
        "fromfile": _fromfile,
        "copy": _copy,
        "hdf5": _read_chunks,
        "zlib": _inflate,
    }
    start = time.perf_counter()
    rows = limits[variant](source)
    return Timing(rows, time.perf_counter() - start)


def _read(source: Source) -> int:
    """Read the file from end to end into one buffer, and drop what was read."""
    sequential_read(source.rows_path, cold=False)  # the harness has seen to the page cache
    return source.recipe.count


def _fromfile(source: Source) -> int:
    """Read the file into a new array, as numpy does."""
    return int(np.fromfile(source.rows_path, np.uint8).nbytes // source.recipe.row_bytes)


def _copy(source: Source) -> int:
    """Copy memory that no cache holds."""
    here = np.ones(_COPY_BYTES, np.uint8)
    there = np.ones_like(here)
    for _ in range(_COPIES):
        np.copyto(there, here)
    return _COPIES * _COPY_BYTES // source.recipe.row_bytes


def _read_chunks(source: Source) -> int:
    """Let HDF5 decompress all chunks in order."""
    with h5py.File(source.rows_path, "r") as file:
        rows = file["rows"]
        chunk = np.empty(rows.chunks, np.float32)
        for start in range(0, len(rows), len(chunk)):
            stop = min(start + len(chunk), len(rows))
            rows.read_direct(chunk, np.s_[start:stop], np.s_[: stop - start])
    return source.recipe.count


def _inflate(source: Source) -> int:
    """Read each chunk raw and decompress it with zlib, which is what HDF5 does inside."""
    with h5py.File(source.rows_path, "r") as file:
        rows = file["rows"]
        for start in range(0, len(rows), rows.chunks[0]):
            _, packed = rows.id.read_direct_chunk((start, *(0,) * (rows.ndim - 1)))
            zlib.decompress(packed, bufsize=4 * int(np.prod(rows.chunks)))
    return source.recipe.count


class _Ready(Dataset[Batch]):
    """One batch that is there already, handed over again and again."""

    def __init__(self, source: Source) -> None:
        self.length = source.recipe.count // source.batch_size
        self.rows = torch.ones(source.batch_size, *source.recipe.row_shape)
        self.labels = torch.ones(source.batch_size, dtype=torch.int64)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Batch:
        return self.rows, self.labels


def _ready_batches(source: Source) -> DataLoader[Batch]:
    return DataLoader(_Ready(source), batch_size=None, num_workers=source.workers)
