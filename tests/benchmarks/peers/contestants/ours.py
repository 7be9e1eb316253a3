"""Our own readers, as a reader of the README would use them."""

from collections.abc import Iterable, Iterator

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from helpers.loaders.blocks import ShuffledBlocks
from helpers.loaders.datasets import FileDataset, Hdf5Dataset, Labelled, NpyDataset
from helpers.loaders.order import BlockShuffleSampler

from ..records import Source
from .mixed_blocks import Batch

_BLOCK_BYTES = 1 << 20


def load(source: Source, variant: str) -> Iterable[Batch]:
    """Return the loader of one variant: 'blocks' is the fast path, the others index a dataset."""
    if variant in ("blocks", "past"):
        return _blocks(source, past_cache=True if variant == "past" else None)
    return _block_sampler(source) if variant == "sampler" else _full_shuffle(source)


def _blocks(source: Source, *, past_cache: bool | None) -> Iterable[Batch]:
    batches = ShuffledBlocks(
        source.rows_path,
        source.labels_path,
        batch_size=source.batch_size,
        buffer_bytes=source.mix_bytes,
        seed=source.seed,
        past_cache=past_cache,
    )
    return _FromWorkers(batches, source.workers) if source.workers else batches


class _FromWorkers:
    """Blocks that workers read: they start with the epoch, as those of all others do."""

    def __init__(self, batches: ShuffledBlocks, workers: int) -> None:
        self._batches, self._workers = batches, workers

    def __iter__(self) -> Iterator[Batch]:
        loader = DataLoader(
            self._batches, batch_size=None, num_workers=self._workers, prefetch_factor=1
        )
        return self._batches.unpack(loader)


def _block_sampler(source: Source) -> Iterable[Batch]:
    recipe = source.recipe
    block_rows = min(_BLOCK_BYTES // recipe.row_bytes, recipe.count)
    batches = BlockShuffleSampler(
        recipe.count,
        batch_size=source.batch_size,
        block_rows=block_rows,
        buffer_blocks=_mixed_bytes(source) // (block_rows * recipe.row_bytes),
        seed=source.seed,
    )
    return _load(source, batches)


def _full_shuffle(source: Source) -> Iterable[Batch]:
    order = RandomSampler(
        range(source.recipe.count), generator=torch.Generator().manual_seed(source.seed)
    )
    return _load(source, BatchSampler(order, source.batch_size, drop_last=False))


def _load(source: Source, batches: Iterable[list[int]]) -> DataLoader[Batch]:
    dataset = Labelled(*(_open(source, name) for name in ("rows", "labels")))
    return DataLoader(dataset, sampler=batches, batch_size=None, num_workers=source.workers)


def _open(source: Source, name: str) -> FileDataset:
    path = source.rows_path if name == "rows" else source.labels_path
    if path.suffix == ".npy":
        return NpyDataset(path)
    return Hdf5Dataset(path, name, cache_bytes=_mixed_bytes(source))


def _mixed_bytes(source: Source) -> int:
    """Return each worker's share of the memory: all of them go through the same mixes."""
    return source.mix_bytes // max(1, source.workers)
