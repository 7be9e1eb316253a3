"""What contestants share: loaders over whatever reads a row, a batch or a block of rows."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from ..records import Source

Batch = tuple[torch.Tensor, torch.Tensor]
Read = Callable[[Any], Iterable[Any]]  # rows and labels: of an index, of an array of them, a slice
Open = Callable[[Source], Read]  # called where it is read: in a worker, if there are any


@dataclass
class Indexed(Dataset[Any]):
    """A copied row for its number, or a batch for an array of them: one fancy index, not 256."""

    source: Source
    open_rows: Open

    def __len__(self) -> int:
        return self.source.recipe.count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int):
            row, label = self.read(index)
            return torch.from_numpy(np.array(row)), int(label)
        return tuple(map(torch.as_tensor, self.read(index.numpy())))

    @cached_property
    def read(self) -> Read:
        return self.open_rows(self.source)


@dataclass
class MixedBlocks(IterableDataset[Batch]):
    """Blocks in random order, several mixed in memory; each worker takes its share of them.

    A careful user's, for stores that are no loaders: it mixes as many bytes as our own readers.
    """

    source: Source
    open_rows: Open

    def __iter__(self) -> Iterator[Batch]:
        source, read, worker = self.source, self.open_rows(self.source), get_worker_info()
        blocks, block_rows = source.blocks, len(source.blocks[0])
        mine = np.random.default_rng(source.seed).permutation(len(blocks))
        mine = mine[worker.id :: worker.num_workers] if worker else mine
        rng = np.random.default_rng([source.seed, worker.id if worker else 0])
        at_once = max(1, source.mix_bytes_each // (block_rows * source.recipe.row_bytes))
        room = at_once * block_rows + source.batch_size
        rows = np.empty((room, *source.recipe.row_shape), np.float32)
        labels, filled = np.empty(room, np.int64), 0
        for first in range(0, len(mine), at_once):
            for block in (blocks[number] for number in mine[first : first + at_once]):
                here = slice(filled, filled + len(block))
                rows[here], labels[here] = read(slice(block.start, block.stop))
                filled = here.stop
            order = torch.from_numpy(rng.permutation(filled))
            whole = filled if first + at_once >= len(mine) else filled - filled % source.batch_size
            for chosen in torch.split(order[:whole], source.batch_size):
                both = torch.from_numpy(rows), torch.from_numpy(labels)
                yield both[0].index_select(0, chosen), both[1].index_select(0, chosen)
            left = order[whole:].numpy()  # made no whole batch: they go with the next blocks
            filled = len(left)
            rows[:filled], labels[:filled] = rows[left], labels[left]


def load(source: Source, open_rows: Open, gives: str) -> DataLoader[Batch]:
    """Return a loader of rows in a full shuffle, of batches in one, or of blocks mixed."""
    if gives == "blocks":
        return ready(source, MixedBlocks(source, open_rows))
    if gives == "batches":
        return ready(source, Indexed(source, open_rows), shuffled_batches(source))
    generator, workers = torch.Generator().manual_seed(source.seed), source.workers
    rows, size = Indexed(source, open_rows), source.batch_size
    return DataLoader(rows, size, shuffle=True, generator=generator, num_workers=workers)


def ready(source: Source, dataset: Any, order: Any = None) -> DataLoader[Batch]:
    """Return a loader of batches that come whole: nothing is collated."""
    return DataLoader(dataset, sampler=order, batch_size=None, num_workers=source.workers)


def shuffled_batches(source: Source) -> list[torch.Tensor]:
    """Return all row numbers in random order, in arrays, which cost less than lists of integers."""
    generator = torch.Generator().manual_seed(source.seed)
    order = torch.randperm(source.recipe.count, generator=generator)
    return list(torch.split(order, source.batch_size))


def begin(start: Callable[[], Iterable[Any]]) -> Iterator[Batch]:
    """Yield batches whose workers start with the epoch, and so inside the time that is taken."""
    yield from start()


def read_arrays(rows: Any, labels: Any) -> Read:
    return lambda index: (rows[index], labels[index])


def open_map(source: Source) -> Read:
    return read_arrays(*(np.load(path, mmap_mode="r") for path in source.paths))


def made_rows(source: Source) -> Iterator[tuple[int, Any, Any]]:
    """Yield each row with its number and its label, for those who write a store of their own."""
    for block in source.blocks:
        yield from zip(block, source.recipe.rows(block), source.recipe.labels(block), strict=True)


def write_arrays(source: Source, rows: Any, labels: Any) -> None:
    for block in source.blocks:
        part = slice(block.start, block.stop)
        rows[part], labels[part] = source.recipe.rows(block), source.recipe.labels(block)
