"""A full shuffle on the disk, in constant memory: scatter rows to buckets, then shuffle each.

The permutation follows from the seed, the number of rows and the number of buckets, and is never
held as a whole. A row goes to a bucket at random, and within it to a random place: that is sorting
by a random key, whose first digits are the bucket (Rao 1961; Sandelius 1962), so every order is
equally likely.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data_gen.stream import spans
from data_gen.writers import Tick

Bytes = NDArray[np.uint8]  # rows as they lie in memory, one below the other
Integers = NDArray[np.int64]

BUCKET_BYTES = 1 << 26
_DRAW_BYTES = 8
_MOST_BUCKETS = 1 << 11  # more, and the pieces that are written to each would be tiny


@dataclass(frozen=True, slots=True)
class Permutation:
    """An order of `count` rows, gone through bucket by bucket."""

    count: int
    buckets: int
    seed: int

    @classmethod
    def of(
        cls, count: int, row_bytes: int, seed: int, bucket_bytes: int = BUCKET_BYTES
    ) -> "Permutation":
        """Return one whose buckets fit in memory: of 64 MiB, and larger in files above 128 GiB."""
        wanted = -(-count * row_bytes // bucket_bytes)
        return cls(count, max(min(wanted, _MOST_BUCKETS, count), 1), seed)

    def sizes(self) -> Integers:
        """Return how many rows each bucket gets."""
        draw, sizes = self.drawing(), np.zeros(self.buckets, np.int64)
        for span in spans(self.count, _DRAW_BYTES):
            sizes += np.bincount(draw(len(span)), minlength=self.buckets)
        return sizes

    def drawing(self) -> Callable[[int], Integers]:
        """Return a function that gives the buckets of the next rows, so many as it is asked for."""
        rng = np.random.default_rng((self.seed, 0))  # one draw for each row, whatever the portions
        return lambda rows: (rng.random(rows) * self.buckets).astype(np.int64)

    def places(self, bucket: int, size: int) -> Integers:
        """Return the order of the rows within a bucket."""
        return np.random.default_rng((self.seed, 1, bucket)).permutation(size)


def scatter(blocks: Iterable[Bytes], order: Permutation, path: Path, tick: Tick) -> None:
    """Write blocks of rows to `path`, grouped by bucket. Every row of the source comes once."""
    draw, sizes = order.drawing(), order.sizes()
    free = np.cumsum(sizes) - sizes  # the first free place of each bucket
    with path.open("wb") as file:
        for block in blocks:
            for bucket, rows in _grouped(block, draw(len(block))):
                file.seek(int(free[bucket]) * block.shape[1])
                file.write(rows.data)
                free[bucket] += len(rows)
            tick(block.nbytes)


def gather(path: Path, row_bytes: int, order: Permutation) -> Iterator[Bytes]:
    """Yield the rows that were scattered to `path`, bucket by bucket, each in random order."""
    with path.open("rb") as file:
        for bucket, size in enumerate(order.sizes().tolist()):
            rows = np.fromfile(file, np.uint8, size * row_bytes).reshape(size, row_bytes)
            yield rows[order.places(bucket, size)]


def _grouped(block: Bytes, drawn: Integers) -> Iterator[tuple[int, Bytes]]:
    """Yield the rows of each bucket that has some, in the order of the block."""
    by_bucket = np.argsort(drawn, kind="stable")
    grouped, found = block[by_bucket], drawn[by_bucket]
    edges = np.flatnonzero(np.diff(found)) + 1
    for start, stop in zip([0, *edges], [*edges, len(found)], strict=True):
        yield int(found[start]), grouped[start:stop]
