"""Shuffling data larger than RAM: a sampler for files that can be indexed, a buffer for streams.

    batches = BlockShuffleSampler(len(dataset), batch_size=256, block_rows=512, mixed_blocks=32)
    loader = DataLoader(dataset, batch_sampler=batches)
    for epoch in range(10):
        batches.set_epoch(epoch)
        for rows, labels in loader:
            ...

Datasets that take lists of indices (`helpers.datasets`) are faster with ready batches:
DataLoader(dataset, sampler=batches, batch_size=None). How well either mixes: `helpers.mixing`.
"""

import random
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import IterableDataset, Sampler, get_worker_info

Item = TypeVar("Item")
Integers = NDArray[np.int64]


class BlockShuffleSampler(Sampler[list[int]]):
    """Batches of indices: the file's blocks in random order, the rows of several blocks mixed.

    Large blocks are read at the disk's speed; many mixed blocks make batches as varied as a full
    shuffle's. A cache has to hold what is mixed: the page cache, or HDF5's for compressed chunks.

    Every row comes once in an epoch. Ranks, which train together, get equal numbers of batches.
    Without `set_epoch` each epoch has the order of the first.
    """

    def __init__(
        self,
        rows: int,
        *,
        batch_size: int = 256,
        block_rows: int = 512,
        mixed_blocks: int = 32,
        seed: int = 0,
        drop_last: bool = False,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self.rows, self.batch_size, self.drop_last = rows, batch_size, drop_last
        self.block_rows, self.mixed_blocks = block_rows, mixed_blocks
        self.seed, self.epoch = seed, 0
        self.rank, self.ranks = rank, ranks
        for wrong, message in _mistakes(self):
            if wrong:
                raise ValueError(message)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration."""
        self.epoch = epoch

    def __len__(self) -> int:
        whole, rest = divmod(self.rows, self.ranks * self.batch_size)
        return whole if self.drop_last or not rest else whole + 1

    def __iter__(self) -> Iterator[list[int]]:
        mixes, left = self._mixes(), np.empty(0, np.int64)
        for batch in range(len(self)):
            size = self._end(batch + 1) - self._end(batch)
            while len(left) < size:
                left = np.concatenate([left, next(mixes)])
            yield left[:size].tolist()
            left = left[size:]

    def _end(self, batches: int) -> int:
        """Return how many rows the first batches have: all are full but the last.

        A rank whose share ends with a full batch, while others have one more, takes a row from it
        for a last batch of its own.
        """
        first, last = self._share()
        missing = 0 if self.drop_last else len(self) - batches
        return min(batches * self.batch_size, last - first - missing)

    def _share(self) -> tuple[int, int]:
        """Return this rank's share of the line that the shuffled blocks make, end to end."""
        return self.rows * self.rank // self.ranks, self.rows * (self.rank + 1) // self.ranks

    def _mixes(self) -> Iterator[Integers]:
        """Yield the rows of this rank's share, shuffled a mix at a time."""
        blocks = np.random.default_rng([self.seed, self.epoch]).permutation(_blocks(self))
        starts = blocks * self.block_rows
        stops = np.minimum(starts + self.block_rows, self.rows)
        ends = np.cumsum(stops - starts)
        begins = ends - (stops - starts)
        first, last = self._share()
        starts += np.maximum(first - begins, 0)  # a block across the edge of a share is cut
        stops -= np.maximum(ends - last, 0)
        mine = np.flatnonzero(starts < stops)
        rng = np.random.default_rng([self.seed, self.epoch, self.rank + 1])
        for mix in np.array_split(mine, -(-len(mine) // self.mixed_blocks)):
            runs = [np.arange(starts[block], stops[block]) for block in mix]
            yield rng.permutation(np.concatenate(runs))


class ShuffleBuffer(IterableDataset[Item]):
    """Items of a stream, shuffled as far as a buffer reaches.

    The buffer is filled; then each new item takes the place of a random one, which is handed out.
    That moves an item by three quarters of the buffer on average, so a run of one label much longer
    than the buffer survives.

    `items` must start again for each epoch, and be the same in every process: each DataLoader
    worker goes through all of them and keeps its share.
    """

    def __init__(self, items: Iterable[Item], buffer_size: int, *, seed: int = 0) -> None:
        if buffer_size < 1:
            raise ValueError(f"buffer_size={buffer_size}: pass 1 or more")
        if isinstance(items, Iterator):
            raise TypeError(
                f"{items!r} ends with its first epoch: pass what `iter` can start again, as a list "
                "or an object with __iter__"
            )
        self.items, self.buffer_size, self.seed = items, buffer_size, seed
        # Shared, because persistent workers keep their own copy of everything else.
        self._epoch = torch.zeros((), dtype=torch.int64)
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration."""
        self._epoch.fill_(epoch)

    def __iter__(self) -> Iterator[Item]:
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        rng = random.Random(f"seed {self.seed}, epoch {int(self._epoch)}, worker {number}")
        buffer: list[Item] = []
        for item in islice(self.items, number, None, workers):
            if len(buffer) < self.buffer_size:
                buffer.append(item)
            else:
                place = rng.randrange(self.buffer_size)
                yield buffer[place]
                buffer[place] = item
        rng.shuffle(buffer)
        yield from buffer


def _blocks(sampler: BlockShuffleSampler) -> int:
    return -(-sampler.rows // sampler.block_rows)


def _mistakes(sampler: BlockShuffleSampler) -> Iterator[tuple[bool, str]]:
    for name in ("rows", "batch_size", "block_rows", "mixed_blocks", "ranks"):
        value = getattr(sampler, name)
        yield value < 1, f"{name}={value}: pass 1 or more"
    rows, batch_size, ranks = sampler.rows, sampler.batch_size, sampler.ranks
    yield sampler.seed < 0, f"seed={sampler.seed}: pass 0 or more"
    yield not 0 <= sampler.rank < ranks, f"rank={sampler.rank} of {ranks}: pass 0 to {ranks - 1}"
    yield (
        sampler.block_rows > rows,
        f"block_rows={sampler.block_rows} is more than the {rows} rows: pass less",
    )
    yield (
        ranks > _blocks(sampler),
        f"{ranks} ranks cannot share {_blocks(sampler)} blocks: pass fewer, or smaller block_rows",
    )
    yield (
        batch_size > sampler.mixed_blocks * sampler.block_rows,
        f"batch_size={batch_size} is more than {sampler.mixed_blocks} mixed blocks of "
        f"{sampler.block_rows} rows: pass a larger mixed_blocks",
    )
    yield (
        batch_size == 1 and rows % ranks > 0 and not sampler.drop_last,
        f"{rows} batches of one row cannot be shared equally by {ranks} ranks: "
        "pass drop_last=True, or a larger batch_size",
    )
