"""The order of an epoch: which rows are in which batch. Numbers only; nothing here reads a file.

The file's blocks are shuffled and laid end to end. Ranks cut this row of blocks into equal shares,
to the row, and the workers of a rank cut its share at whole batches. Each then takes its blocks a
*mix* at a time: as many as fit its memory. The rows of a mix are shuffled together, and handed out
in batches while the next mix is read. So a batch holds rows of nearly all blocks of its mix.

Everything follows from the seed and the epoch, so a place in the epoch is just a number of batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class Place(NamedTuple):
    """Where to start, and for whom: `batches` of this rank's epoch are done, in `worker`'s eyes."""

    epoch: int = 0
    batches: int = 0
    worker: int = 0
    workers: int = 1


class MixOrder(NamedTuple):
    """The runs of rows that are in memory together, and the order in which they are handed out.

    `picks` are places among the rows of all `runs` laid end to end.
    """

    runs: list[tuple[int, int]]  # from the first row to before the last, ascending
    picks: Indices

    @property
    def indices(self) -> Indices:
        """Return the numbers of the rows in the file, in the order they are handed out."""
        return np.concatenate([np.arange(*run) for run in self.runs])[self.picks]


@dataclass(frozen=True, slots=True)
class BlockOrder:
    """What decides an epoch's order, for one of `ranks` processes that share it."""

    rows: int
    block_rows: int
    batch_size: int
    seed: int = 0
    drop_last: bool = False
    rank: int = 0
    ranks: int = 1
    group: int = 1  # batches that one worker hands over together

    @property
    def blocks(self) -> int:
        """Return the number of blocks in the file; the last may be short."""
        return -(-self.rows // self.block_rows)

    @property
    def batches(self) -> int:
        """Return the number of batches of this rank, which all ranks have in common."""
        if self.drop_last:
            return self.rows // self.ranks // self.batch_size
        return -(-self.rows // (self.ranks * self.batch_size))

    def groups(self, place: Place) -> Iterator[list[int]]:
        """Yield the sizes of the batches that are left, in the groups that are handed over."""
        cycle = self.group * place.workers
        for first in range(place.worker * self.group, self.batches, cycle):
            last = min(first + self.group, self.batches)
            left = range(max(first, place.batches), last)
            if left:
                yield [self._end(batch + 1) - self._end(batch) for batch in left]

    def mixes(self, place: Place, mix_blocks: int) -> Iterator[MixOrder]:
        """Yield the mixes that are left, of at most `mix_blocks` blocks and evenly filled."""
        first, last = self._share(place)
        if first == last:
            return
        starts = np.random.default_rng([self.seed, place.epoch]).permutation(self.blocks)
        starts *= self.block_rows
        ends = np.cumsum(np.minimum(self.block_rows, self.rows - starts))
        low, high = np.searchsorted(ends, [first, last - 1], side="right")
        done = self._rows(place.batches, place)
        mixes = -(-(high + 1 - low) // mix_blocks)
        for mix, blocks in enumerate(np.array_split(np.arange(low, high + 1), mixes)):
            runs = self._runs(starts[blocks], ends[blocks], first, last)
            size = sum(stop - start for start, stop in runs)
            if done < size:
                key = [self.seed, place.epoch, self.rank, place.worker, mix]
                yield MixOrder(runs, np.random.default_rng(key).permutation(size)[done:])
            done = max(0, done - size)

    def _runs(self, starts: Indices, ends: Indices, first: int, last: int) -> list[tuple[int, int]]:
        """Return the rows of some blocks, less what lies outside the share from first to last."""
        stops = np.minimum(starts + self.block_rows, self.rows)
        begins = ends - (stops - starts)
        starts = starts + np.maximum(first - begins, 0)
        stops = stops - np.maximum(ends - last, 0)
        return sorted(zip(starts.tolist(), stops.tolist(), strict=True))

    def _share(self, place: Place) -> tuple[int, int]:
        """Return which rows are a worker's, counted along the shuffled blocks."""
        first = self.rows * self.rank // self.ranks
        for worker in range(place.worker):
            first += self._rows(self.batches, place._replace(worker=worker))
        return first, first + self._rows(self.batches, place)

    def _rows(self, batches: int, place: Place) -> int:
        """Return how many rows of this rank's first `batches` batches are the worker's."""
        cycles, rest = divmod(batches, self.group * place.workers)
        own = cycles * self.group + min(max(rest - place.worker * self.group, 0), self.group)
        rows = own * self.batch_size
        for batch in range(max(0, self.batches - 2), batches):  # the last two may be short
            if batch // self.group % place.workers == place.worker:
                rows -= self.batch_size - (self._end(batch + 1) - self._end(batch))
        return rows

    def _end(self, batches: int) -> int:
        """Return how many rows this rank's first `batches` batches have.

        Each is full but the last. Where a rank has so few rows that its last batch would be empty,
        the batch before gives it one, for the ranks must have equal numbers of batches.
        """
        if self.drop_last:
            return batches * self.batch_size
        rows = self.rows * (self.rank + 1) // self.ranks - self.rows * self.rank // self.ranks
        return min(batches * self.batch_size, rows - (self.batches - batches))
