"""Limits that no reader can pass; our readers, as the README has them; datasets as people write."""

import zlib
from collections.abc import Iterable, Iterator
from functools import partial

import h5py
import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from helpers.disk import sequential_read
from helpers.loaders.blocks import ShuffledBlocks
from helpers.loaders.datasets import Hdf5Dataset, Labelled, NpyDataset
from helpers.loaders.order import BlockShuffleSampler

from ..records import Source
from .common import Batch, Read, begin, read_arrays, ready

_COPY_BYTES, _COPIES = 64 << 20, 16
_BLOCK_BYTES = 1 << 20


def read(source: Source) -> Iterator[int]:
    """Read the file from end to end into one buffer; this and other limits yield their rows."""
    sequential_read(source.paths[0], cold=False)  # the harness has seen to the page cache
    yield source.recipe.count


def fromfile(source: Source) -> Iterator[int]:
    yield np.fromfile(source.paths[0], np.uint8).nbytes // source.recipe.row_bytes


def copy(source: Source) -> Iterator[int]:
    """Copy memory that no cache holds."""
    here = np.ones(_COPY_BYTES, np.uint8)
    there = np.ones_like(here)
    for _ in range(_COPIES):
        np.copyto(there, here)
    yield _COPIES * _COPY_BYTES // source.recipe.row_bytes


def chunks(source: Source) -> Iterator[int]:
    """Let HDF5 decompress all chunks in order."""
    with h5py.File(source.paths[0], "r") as file:
        rows = file["rows"]
        chunk = np.empty(rows.chunks, np.float32)
        for start in range(0, len(rows), len(chunk)):
            stop = min(start + len(chunk), len(rows))
            rows.read_direct(chunk, np.s_[start:stop], np.s_[: stop - start])
    yield source.recipe.count


def inflate(source: Source) -> Iterator[int]:
    """Read each chunk raw and decompress it with zlib, which is what HDF5 does inside."""
    with h5py.File(source.paths[0], "r") as file:
        rows = file["rows"]
        for start in range(0, len(rows), rows.chunks[0]):
            _, packed = rows.id.read_direct_chunk((start, *(0,) * (rows.ndim - 1)))
            zlib.decompress(packed, bufsize=4 * int(np.prod(rows.chunks)))
    yield source.recipe.count


def hand_over(source: Source) -> DataLoader[Batch]:
    """Hand over one batch that is there already, again and again."""
    rows = torch.ones(source.batch_size, *source.recipe.row_shape)
    batch = rows, torch.ones(source.batch_size, dtype=torch.int64)
    return ready(source, [batch] * (source.recipe.count // source.batch_size))


def blocks(source: Source, *, past_cache: bool | None = None) -> Iterable[Batch]:
    """Return our fast path; its workers hand over whole mixes of batches."""
    size, mix, seed = source.batch_size, source.mix_bytes, source.seed
    batches = ShuffledBlocks(
        *source.paths, batch_size=size, buffer_bytes=mix, seed=seed, past_cache=past_cache
    )
    if not (workers := source.workers):
        return batches
    loader = DataLoader(batches, batch_size=None, num_workers=workers, prefetch_factor=1)
    return begin(lambda: batches.unpack(loader))


def sampler(source: Source) -> Iterable[Batch]:
    """Return a block shuffle of our datasets; all workers go through the same mixes."""
    count, row_bytes = source.recipe.count, source.recipe.row_bytes
    rows = min(_BLOCK_BYTES // row_bytes, count)
    mixed = source.mix_bytes_each // (rows * row_bytes)
    size, seed = source.batch_size, source.seed
    order = BlockShuffleSampler(
        count, batch_size=size, block_rows=rows, buffer_blocks=mixed, seed=seed
    )
    return ready(source, _open_dataset(source), order)


def dataset(source: Source) -> Iterable[Batch]:
    generator = torch.Generator().manual_seed(source.seed)
    order = RandomSampler(range(source.recipe.count), generator=generator)
    batches = BatchSampler(order, source.batch_size, drop_last=False)
    return ready(source, _open_dataset(source), batches)


def _open_dataset(source: Source) -> Labelled:
    if source.paths[0].suffix == ".npy":
        return Labelled(*map(NpyDataset, source.paths))
    open_column = partial(Hdf5Dataset, source.paths[0], cache_bytes=source.mix_bytes_each)
    return Labelled(open_column("rows"), open_column("labels"))


def open_hdf5(source: Source) -> Read:
    file = h5py.File(source.paths[0], "r")
    return read_arrays(file["rows"], file["labels"][:])  # a label by itself costs as much as a row


past_cache = partial(blocks, past_cache=True)
