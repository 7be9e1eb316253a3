"""What is measured, and what was found: frozen records that know no library."""

from dataclasses import dataclass
from pathlib import Path

from data_gen.recipe import Recipe

_BLOCK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Case:
    """The conditions of one measurement."""

    cache: str  # warm, cold, or limited: cold, and inside a kernel memory limit
    workers: int

    def __str__(self) -> str:
        return f"{self.cache}, {self.workers} workers"


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to read shuffled batches, or one limit that no reader can pass."""

    name: str  # also what --only matches
    title: str  # as the table and the figure call it
    group: str  # limit, ours, plain or peer
    store: str  # what lies on the disk
    function: str  # in contestants/: "module.function"
    gives: str  # rows, batches or blocks, when they are asked for; "": it is a loader
    pins: str  # of its environment; "" is the project's own
    caches: str  # and numbers of workers with which it is measured
    workers: str
    shown_in: str  # table, or figure, too

    def takes(self, case: Case) -> bool:
        return case.cache in self.caches.split() and str(case.workers) in self.workers.split()


@dataclass(frozen=True, slots=True)
class Source:
    """What a contestant is given: where the rows lie, what they are, and how to hand them out."""

    folder: Path  # of its store
    recipe: Recipe
    batch_size: int = 256
    workers: int = 0
    seed: int = 0
    mix_bytes: int = 128 << 20  # how much memory a block shuffle may fill, over all workers
    paths: tuple[Path, ...] = ()  # of rows and labels, .npy or HDF5; a peer's own store has none

    @property
    def mix_bytes_each(self) -> int:
        return self.mix_bytes // max(1, self.workers)

    @property
    def blocks(self) -> list[range]:
        """Return the numbers of the rows of each block, for those that read whole blocks."""
        every, step = range(self.recipe.count), max(1, _BLOCK_BYTES // self.recipe.row_bytes)
        return [every[start : start + step] for start in every[::step]]


@dataclass(frozen=True, slots=True)
class Timing:
    """One epoch, or as much of it as there was time for."""

    rows: int
    seconds: float  # from the first request to the last batch; of a part, without the start-up
    cpu_seconds_per_gib: float = 0.0  # of rows handed out: user and system, of children too
    first_batch_seconds: float = 0.0
    whole: bool = True  # the epoch came to its end

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


@dataclass(frozen=True, slots=True)
class Proof:
    """What an epoch handed out, compared with what it should have."""

    rows: int
    whole: bool
    wrong_rows: int
    wrong_labels: int
    repeated: int
    missing: int  # of a whole epoch; the last batch may be dropped
    labels_per_batch: float  # distinct ones, on average
    labels_if_shuffled: float  # the same, after a full shuffle

    @property
    def right(self) -> bool:
        """Return whether every row came as it should, and none twice or never."""
        faults = self.wrong_rows or self.wrong_labels or self.repeated or self.missing
        return self.rows > 0 and not faults

    @property
    def mixing(self) -> float:
        """Return the share of a full shuffle's distinct labels in a batch, about 0 to 1."""
        return self.labels_per_batch / self.labels_if_shuffled


@dataclass(frozen=True, slots=True)
class Measurement:
    """One contestant under one set of conditions in one round."""

    contestant: str
    case: Case
    round: int  # 0: it cannot take part at all
    timing: Timing | None = None
    proof: Proof | None = None
    error: str = ""  # why there is no timing
