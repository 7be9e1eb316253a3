"""The order of an epoch: which rows make up which batch. Only numbers; nothing here reads a file.

The file's blocks are shuffled and laid end to end. Ranks cut this line into equal shares, to the
row, and a rank's workers cut its share at whole batches. Each then goes along its share a *mix* at
a time: as many blocks as fit its memory. The rows of a mix are shuffled together and handed out in
batches, so a batch holds rows of nearly every block of its mix.

    >>> order = BlockOrder(rows=12, block_rows=2, mix_rows=6, batch_size=3)
    >>> [mix.runs for mix in order.mixes(Place(epoch=0))]
    [[(4, 6), (6, 8), (10, 12)], [(0, 2), (2, 4), (8, 10)]]
    >>> [batch.tolist() for batch in order.indices(epoch=0)]
    [[11, 7, 4], [5, 6, 10], [8, 3, 2], [0, 1, 9]]

Everything follows from the seed and the epoch, so a place in an epoch is a number of batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Run = tuple[int, int]  # rows of the file: the first one, and the one behind the last


class Place(NamedTuple):
    """Where a worker begins: behind the first `batches` batches of its rank, its own or not."""

    epoch: int
    batches: int = 0
    worker: int = 0
    workers: int = 1


class Mix(NamedTuple):
    """Runs of rows that are in memory together, and the order in which they are handed out."""

    runs: list[Run]  # ascending, for the disk's sake
    picks: Indices  # places among the rows of all runs, laid end to end


@dataclass(frozen=True, slots=True)
class BlockOrder:
    """What decides the order, for one of `ranks` processes that share every epoch."""

    rows: int
    block_rows: int
    mix_rows: int  # that are in memory together, in all workers of this rank
    batch_size: int
    batches_per_message: int = 1  # that one worker hands over before the next has its turn
    seed: int = 0
    drop_last: bool = False
    rank: int = 0
    ranks: int = 1

    def __post_init__(self) -> None:
        for wrong, message in _mistakes(self):
            if wrong:
                raise ValueError(message)
        self.check_workers(1)

    @property
    def blocks(self) -> int:
        """Return the number of blocks in the file; the last may be short."""
        return -(-self.rows // self.block_rows)

    @property
    def batches(self) -> int:
        """Return the number of batches of each rank."""
        if self.drop_last:
            return self.rows // (self.ranks * self.batch_size)
        return -(-self.rows // (self.ranks * self.batch_size))

    def check_workers(self, workers: int) -> None:
        """Raise ValueError where so many workers would leave too little to each."""
        if self.ranks * workers > self.blocks:
            raise ValueError(
                f"{self.ranks} ranks of {workers} workers are more than the {self.blocks} blocks "
                f"of {self.block_rows} rows: pass fewer, or smaller block_rows"
            )
        if max(self.block_rows, self.batch_size) > self.mix_rows // workers:
            raise ValueError(
                f"half of mix_bytes holds {self.mix_rows // workers} rows in each of {workers} "
                f"workers, less than a block of {self.block_rows} or a batch of {self.batch_size}: "
                "pass a larger mix_bytes, or less of the others"
            )

    def messages(self, place: Place) -> Iterator[list[int]]:
        """Yield the sizes of the batches that are left to a worker, message by message."""
        step = self.batches_per_message
        for first in range(place.worker * step, self.batches, place.workers * step):
            last = min(first + step, self.batches)
            left = range(max(first, place.batches), last)
            if left:
                yield [self._end(batch + 1) - self._end(batch) for batch in left]

    def mixes(self, place: Place) -> Iterator[Mix]:
        """Yield the mixes that are left to a worker, all of about the same number of blocks."""
        first, last = self._share(place)
        if first == last:
            return
        starts = np.random.default_rng([self.seed, place.epoch]).permutation(self.blocks)
        starts *= self.block_rows
        ends = np.cumsum(np.minimum(self.block_rows, self.rows - starts))  # along the line
        low, high = np.searchsorted(ends, [first, last - 1], side="right")
        count = -(-(high + 1 - low) // (self.mix_rows // place.workers // self.block_rows))
        done = self._rows(place.batches, place)
        for number, blocks in enumerate(np.array_split(np.arange(low, high + 1), count)):
            runs = self._runs(starts[blocks], ends[blocks], first, last)
            size = sum(stop - start for start, stop in runs)
            if done < size:
                key = [self.seed, place.epoch, self.rank, place.worker, number]
                yield Mix(runs, np.random.default_rng(key).permutation(size)[done:])
            done = max(0, done - size)

    def indices(self, epoch: int, batches: int = 0, workers: int = 1) -> Iterator[Indices]:
        """Yield the row numbers of each batch behind the first ones, as workers hand them out."""
        parts = [self._indices(Place(epoch, batches, worker, workers)) for worker in range(workers)]
        for batch in range(batches, self.batches):
            yield next(parts[batch // self.batches_per_message % workers])

    def _indices(self, place: Place) -> Iterator[Indices]:
        left, mixes = np.empty(0, np.int64), self.mixes(place)
        for size in (size for sizes in self.messages(place) for size in sizes):
            while len(left) < size:
                runs, picks = next(mixes)
                rows = np.concatenate([np.arange(*run) for run in runs])
                left = np.concatenate([left, rows[picks]])
            yield left[:size]
            left = left[size:]

    def _runs(self, starts: Indices, ends: Indices, first: int, last: int) -> list[Run]:
        """Return the rows of blocks, less what lies outside of a share of the line."""
        stops = np.minimum(starts + self.block_rows, self.rows)
        before = first - (ends - (stops - starts))
        starts, stops = starts + np.maximum(before, 0), stops - np.maximum(ends - last, 0)
        return sorted(zip(starts.tolist(), stops.tolist(), strict=True))

    def _share(self, place: Place) -> Run:
        """Return a worker's share of the line of shuffled blocks."""
        first = self.rows * self.rank // self.ranks
        for worker in range(place.worker):
            first += self._rows(self.batches, place._replace(worker=worker))
        return first, first + self._rows(self.batches, place)

    def _rows(self, batches: int, place: Place) -> int:
        """Return how many rows of this rank's first `batches` batches are a worker's."""
        step = self.batches_per_message
        turns, rest = divmod(batches, place.workers * step)
        rows = (turns * step + min(max(rest - place.worker * step, 0), step)) * self.batch_size
        for batch in range(max(0, self.batches - 2), batches):  # only these may be short
            if batch // step % place.workers == place.worker:
                rows -= self.batch_size - (self._end(batch + 1) - self._end(batch))
        return rows

    def _end(self, batches: int) -> int:
        """Return how many rows this rank's first `batches` batches have.

        All are full but the last. A rank that would have no row left for its last batch gives it
        one of the batch before, for all ranks must have as many batches.
        """
        if self.drop_last:
            return batches * self.batch_size
        rows = self.rows * (self.rank + 1) // self.ranks - self.rows * self.rank // self.ranks
        return min(batches * self.batch_size, rows - (self.batches - batches))


def _mistakes(order: BlockOrder) -> Iterator[tuple[bool, str]]:
    for name in ("rows", "block_rows", "batch_size", "batches_per_message", "ranks"):
        value = getattr(order, name)
        yield value < 1, f"{name}={value}: pass 1 or more"
    yield order.seed < 0, f"seed={order.seed}: pass 0 or more"
    yield (
        not 0 <= order.rank < order.ranks,
        f"rank={order.rank}: of {order.ranks} ranks, pass 0 to {order.ranks - 1}",
    )
    yield (
        order.block_rows > order.rows,
        f"block_rows={order.block_rows} is more than the {order.rows} rows of the file: pass less",
    )
    yield (
        order.batch_size == 1 and not order.drop_last and order.rows % order.ranks > 0,
        f"{order.rows} batches of one row cannot be shared equally by {order.ranks} ranks: "
        "pass drop_last=True, or a larger batch_size",
    )
