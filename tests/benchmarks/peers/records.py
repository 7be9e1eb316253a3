"""What is measured, and what was found: frozen records that know no library."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from data_gen.recipe import Recipe

Group = Literal["limit", "ours", "plain", "peer"]
Cache = Literal["warm", "cold", "limited"]  # limited: cold, and inside a kernel memory limit


@dataclass(frozen=True, slots=True)
class Case:
    """The conditions of one measurement."""

    cache: Cache
    workers: int

    def __str__(self) -> str:
        return f"{self.cache}, {self.workers} workers"


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to read shuffled batches, or one limit that no reader can pass."""

    name: str  # also what --only matches
    title: str  # as the table and the figure call it
    group: Group
    store: str  # what lies on the disk
    module: str  # in contestants/
    variant: str = ""
    environment: str = ""  # in requirements/; "" is the project's own
    caches: tuple[Cache, ...] = ("warm", "cold", "limited")
    workers: tuple[int, ...] = (0, 2)
    in_table_only: bool = False  # its like is in the figure already

    @property
    def drawn(self) -> bool:
        """Return whether it gets a bar in the figure."""
        return self.group != "limit" and not self.in_table_only

    def takes(self, case: Case) -> bool:
        """Return whether it is measured under these conditions."""
        return case.cache in self.caches and case.workers in self.workers


@dataclass(frozen=True, slots=True)
class Source:
    """What a contestant is given: where the rows lie, what they are, and how to hand them out."""

    folder: Path  # of its store
    rows_path: Path  # of the .npy or HDF5 file; a peer's own store has none: the folder itself
    labels_path: Path
    recipe: Recipe
    batch_size: int
    workers: int
    seed: int
    mix_bytes: int  # how much memory a block shuffle may fill, over all workers

    @property
    def block_rows(self) -> int:
        """Return the rows of one block (4 MiB), for those that read whole blocks."""
        return max(1, min((4 << 20) // self.recipe.row_bytes, self.recipe.count))

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Source":
        """Return the source that these plain values describe."""
        recipe = values["recipe"] | {"row_shape": tuple(values["recipe"]["row_shape"])}
        paths = {name: Path(values[name]) for name in ("folder", "rows_path", "labels_path")}
        return cls(**values | paths | {"recipe": Recipe(**recipe)})


@dataclass(frozen=True, slots=True)
class Job:
    """What a child process is asked: to make a store, or to measure an epoch (and to prove one)."""

    task: Literal["make", "measure"]
    module: str
    variant: str
    source: Source
    seconds: float = 0.0  # the most that is measured of an epoch, and proved of one
    tiny: Source | None = None  # read first, so that nobody's imports and first calls are timed
    fingerprints: Path | None = None  # where there are some, an epoch is proved after the timed one

    def as_json(self) -> dict[str, Any]:
        """Return the job as plain values; paths become words when they are written."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Job":
        """Return the job that `as_json` was made from, by way of JSON."""
        tiny, fingerprints = values["tiny"], values["fingerprints"]
        return cls(
            **values
            | {"source": Source.from_json(values["source"])}
            | {"tiny": Source.from_json(tiny) if tiny else None}
            | {"fingerprints": Path(fingerprints) if fingerprints else None}
        )


@dataclass(frozen=True, slots=True)
class Timing:
    """One epoch, or as much of it as there was time for."""

    rows: int
    seconds: float  # from the first request to the last batch
    opening_seconds: float = 0.0  # from the imports' end to a loader that can be asked
    first_batch_seconds: float = 0.0
    start_up_seconds: float = 0.0  # to the first batch of the tiny store: imports, worker processes
    whole: bool = True  # the epoch came to its end

    @property
    def rows_per_second(self) -> float:
        """Return the throughput. A part leaves out the start-up, which a whole epoch has once."""
        return self.rows / (self.seconds - (0.0 if self.whole else self.start_up_seconds))


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
    parts_per_batch: float  # of a hundred equal parts of the file, how many a batch comes from
    parts_if_shuffled: float

    @property
    def right(self) -> bool:
        """Return whether every row came as it should, and none twice or never."""
        return self.rows > 0 and not (
            self.wrong_rows or self.wrong_labels or self.repeated or self.missing
        )

    @property
    def mixing(self) -> float:
        """Return the share of a full shuffle's distinct labels in a batch, about 0 to 1."""
        return self.labels_per_batch / self.labels_if_shuffled


@dataclass(frozen=True, slots=True)
class Measurement:
    """One contestant under one set of conditions in one round."""

    contestant: str
    case: Case
    heat: int  # what was measured in turn with what: ratios are taken inside one round of a heat
    round: int
    timing: Timing | None = None
    proof: Proof | None = None
    error: str = ""  # why there is no timing

    @property
    def rows_per_second(self) -> float:
        """Return the throughput, 0 where it failed."""
        return self.timing.rows_per_second if self.timing else 0.0


def names_of(record: type) -> tuple[str, ...]:
    """Return a record's field names in order."""
    return tuple(field.name for field in fields(record))
