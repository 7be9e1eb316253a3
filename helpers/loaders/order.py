"""Shuffling data larger than RAM: a sampler for files that can be indexed, a buffer for streams.

    batches = BlockShuffleSampler(len(dataset), batch_size=256, block_rows=512, buffer_blocks=32)
    loader = DataLoader(dataset, batch_sampler=batches)
    for epoch in range(10):
        batches.set_epoch(epoch)
        for rows, labels in loader:
            ...

Datasets that take lists of indices (`helpers.loaders.datasets`) are faster with ready batches:
DataLoader(dataset, sampler=batches, batch_size=None). Faster still are the threads of
`helpers.loaders.blocks`, which read in such an order. How well it mixes: `helpers.loaders.mixing`.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import IterableDataset, Sampler, get_worker_info

from helpers.loaders.settings import whole_number, yes_or_no

Item = TypeVar("Item")
Indices = NDArray[np.int64]
RowRange = tuple[int, int]  # rows of the file: the first one, and the one behind the last


@dataclass(frozen=True, slots=True)
class Fill:
    """One filling of the shuffle buffer: rows in memory together, handed out in batches."""

    ranges: list[RowRange]  # ascending, for the disk's sake
    edges: list[int]  # where its batches begin among its shuffled rows, and where the last one ends
    key: tuple[int, ...]  # the seed of its shuffle

    def batches(self) -> list[Indices]:
        """Return the places of each batch among the rows of all ranges, laid end to end."""
        rows = sum(stop - start for start, stop in self.ranges)
        shuffled = np.random.default_rng(self.key).permutation(rows)
        return np.split(shuffled, self.edges)[1:-1]

    def indices(self) -> Iterator[Indices]:
        """Yield the row numbers of each batch."""
        rows = np.concatenate([np.arange(*row_range) for row_range in self.ranges])
        return (rows[places] for places in self.batches())


@dataclass(eq=False)
class BlockShuffleSampler(Sampler[list[int]]):
    """Batches of indices: the file's blocks in random order, the rows of several blocks mixed.

    The shuffled blocks are laid end to end, and ranks, which train together, cut this line into
    shares with equal numbers of batches. A share is gone through one *fill* of the shuffle buffer
    at a time: as many batches as `buffer_blocks` hold, whose rows are shuffled together.

    >>> list(BlockShuffleSampler(12, batch_size=3, block_rows=2, buffer_blocks=3))
    [[5, 10, 11], [7, 6, 4], [1, 8, 3], [0, 2, 9]]

    Large blocks are read at the disk's speed; many mixed blocks make batches as varied as a full
    shuffle's. A cache has to hold one fill: the page cache, or `cache_bytes` for compressed chunks.

    Every row comes once in an epoch. Without `set_epoch` each epoch has the order of the first.
    Where there would be fewer blocks than ranks, `block_rows` is lowered to a rank's share.
    """

    rows: int
    _: KW_ONLY
    batch_size: int = 256
    block_rows: int = 512
    buffer_blocks: int = 32
    seed: int = 0
    epoch: int = 0
    drop_last: bool = False
    rank: int = 0
    ranks: int = 1

    def __post_init__(self) -> None:
        for name in ("rows", "batch_size", "block_rows", "buffer_blocks", "ranks"):
            setattr(self, name, whole_number(name, getattr(self, name), 1))
        for name in ("seed", "epoch", "rank"):
            setattr(self, name, whole_number(name, getattr(self, name), 0))
        self.drop_last = yes_or_no("drop_last", self.drop_last)
        self.block_rows = min(self.block_rows, self.rows)
        if self.blocks < self.ranks:
            self.block_rows = max(self.rows // self.ranks, 1)
        for wrong, message in self._mistakes():
            if wrong:
                raise ValueError(message)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration."""
        self.epoch = whole_number("epoch", epoch, 0)

    def __len__(self) -> int:
        whole, rest = divmod(self.rows, self.ranks * self.batch_size)
        return whole if self.drop_last or not rest else whole + 1

    def __iter__(self) -> Iterator[list[int]]:
        settled = replace(self)  # `set_epoch` is for the next iteration
        return (batch.tolist() for fill in settled.fills() for batch in fill.indices())

    @property
    def blocks(self) -> int:
        """Return the number of blocks in the file; the last may be short."""
        return -(-self.rows // self.block_rows)

    def fills(self, start: int = 0) -> Iterator[Fill]:
        """Yield the fills of this rank, all of about the same size, without its first batches."""
        order = np.random.default_rng((self.seed, self.epoch, 0)).permutation(self.blocks)
        starts = order * self.block_rows
        stops = np.minimum(starts + self.block_rows, self.rows)
        ends = np.cumsum(stops - starts)  # of each block, on the line
        begins = ends - (stops - starts)
        most = max(self.buffer_blocks * self.block_rows // self.batch_size, 1)  # batches in a fill
        count = -(-len(self) // most)
        for number in range(count):
            first, behind = (len(self) * edge // count for edge in (number, number + 1))
            if behind <= start:
                continue
            begin, end = self._begin_of(first), self._begin_of(behind)
            low, high = np.searchsorted(ends, [begin, end - 1], "right")
            blocks = slice(low, high + 1)
            # Of a block across the edge of a fill only one part belongs to it.
            heads = starts[blocks] + np.maximum(begin - begins[blocks], 0)
            tails = stops[blocks] - np.maximum(ends[blocks] - end, 0)
            yield Fill(
                sorted(zip(heads.tolist(), tails.tolist(), strict=True)),
                [self._begin_of(batch) - begin for batch in range(max(first, start), behind + 1)],
                (self.seed, self.epoch, 1 + begin),
            )

    def _begin_of(self, batch: int) -> int:
        """Return where on the line a batch of this rank begins. All are full but the last.

        A rank whose share ends with a full batch, while others have one more, takes a row from it
        for a last batch of its own.
        """
        first, last = (self.rows * rank // self.ranks for rank in (self.rank, self.rank + 1))
        missing = 0 if self.drop_last else len(self) - batch
        return min(first + batch * self.batch_size, last - missing)

    def _mistakes(self) -> Iterator[tuple[bool, str]]:
        """Yield what may be wrong between settings that are right one by one."""
        rows, ranks = self.rows, self.ranks
        yield self.rank >= ranks, f"rank={self.rank} of {ranks}: pass 0 to {ranks - 1}"
        yield ranks > rows, f"{ranks} ranks cannot share {rows} rows: pass fewer"
        yield (
            min(self.batch_size, rows) > self.buffer_blocks * self.block_rows,
            f"batch_size={self.batch_size} is more than {self.buffer_blocks} mixed blocks of "
            f"{self.block_rows} rows: pass a larger buffer_blocks",
        )
        yield (
            self.batch_size == 1 and rows % ranks > 0 and not self.drop_last,
            f"{rows} batches of one row cannot be shared equally by {ranks} ranks: "
            "pass drop_last=True, or a larger batch_size",
        )


class ShuffleBuffer(IterableDataset[Item]):
    """Items of a stream, shuffled as far as a buffer reaches.

    The buffer is filled; then each new item takes the place of a random one, which is handed out.
    That moves an item by three quarters of the buffer on average, so a run of one label much longer
    than the buffer survives.

    `items` must start again for each epoch, and be the same in every process: each DataLoader
    worker goes through all of them and keeps its share. It knows no ranks, and cannot resume.
    """

    def __init__(self, items: Iterable[Item], buffer_size: int, *, seed: int = 0) -> None:
        if isinstance(items, Iterator):
            raise TypeError(
                f"{items!r} ends with its first epoch: pass what `iter` can start again, as a list "
                "or an object with __iter__"
            )
        self.items, self.seed = items, whole_number("seed", seed)
        self.buffer_size = whole_number("buffer_size", buffer_size, 1)
        # Shared, because persistent workers keep their own copy of everything else.
        self._epoch = torch.zeros((), dtype=torch.int64)
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration."""
        self._epoch.fill_(whole_number("epoch", epoch, 0))

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
