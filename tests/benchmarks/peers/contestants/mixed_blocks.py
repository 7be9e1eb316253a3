"""A block shuffle over anything that reads whole blocks quickly: what a careful user would write.

It gives the stores that are no loaders (zarr, parquet, plain HDF5) the same chance: as many bytes
are mixed as our own readers mix.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from ..records import Source

Batch = tuple[Tensor, Tensor]
Block = tuple[NDArray[np.float32], NDArray[np.int64]]


@dataclass
class MixedBlocks(IterableDataset[Batch]):
    """Blocks in random order, several mixed in memory; each worker takes its share of them."""

    source: Source
    open_blocks: Callable[[Source], Callable[[slice], Block]]  # called once, where it reads

    def __iter__(self) -> Iterator[Batch]:
        source, read = self.source, self.open_blocks(self.source)
        starts = range(0, source.recipe.count, source.block_rows)
        order = np.random.default_rng(source.seed).permutation(len(starts))
        worker = get_worker_info()
        if worker is not None:
            order = order[worker.id :: worker.num_workers]
        at_once = _blocks_at_once(source)
        rng = np.random.default_rng([source.seed, worker.id if worker else 0])
        room = at_once * source.block_rows + source.batch_size
        rows = np.empty((room, *source.recipe.row_shape), np.float32)
        labels = np.empty(room, np.int64)
        filled = 0
        for first in range(0, len(order), at_once):
            for block in order[first : first + at_once]:
                start = starts[block]
                stop = min(start + source.block_rows, source.recipe.count)
                part = slice(filled, filled + stop - start)
                rows[part], labels[part] = read(slice(start, stop))
                filled = part.stop
            shuffled = torch.from_numpy(rng.permutation(filled))
            last = first + at_once >= len(order)
            whole = filled if last else filled - filled % source.batch_size
            for chosen in torch.split(shuffled[:whole], source.batch_size):
                yield (
                    torch.from_numpy(rows).index_select(0, chosen),
                    torch.from_numpy(labels).index_select(0, chosen),
                )
            filled = _move_to_front(rows, labels, shuffled[whole:].numpy())


def load_mixed(
    source: Source, open_blocks: Callable[[Source], Callable[[slice], Block]]
) -> DataLoader[Batch]:
    """Return a loader of batches that a MixedBlocks has mixed."""
    dataset = MixedBlocks(source, open_blocks)
    return DataLoader(dataset, batch_size=None, num_workers=source.workers)


def _blocks_at_once(source: Source) -> int:
    block_bytes = source.block_rows * source.recipe.row_bytes
    return max(1, source.mix_bytes // max(1, source.workers) // block_bytes)


def _move_to_front(
    rows: NDArray[np.float32], labels: NDArray[np.int64], left: NDArray[np.int64]
) -> int:
    """Keep the rows that made no whole batch for the next blocks; return how many."""
    rows[: len(left)], labels[: len(left)] = rows[left], labels[left]
    return len(left)
