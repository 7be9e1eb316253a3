"""What is to be measured, and how it is shared out where the disk does not hold everything."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from data_gen import Recipe

from .records import Case, Contestant
from .stores import STORES

_LIMIT_SHARE = 4  # a memory limit is this part of the file
_ALWAYS = "npy"  # its limits are what everybody is compared with


@dataclass(frozen=True, slots=True)
class Plan:
    """Who is measured, under which conditions, on what data, and where everything is kept."""

    contestants: tuple[Contestant, ...]
    cases: tuple[Case, ...]
    recipe: Recipe
    folder: Path  # data, and homes of the processes
    environments: Path
    rounds: int = 3
    batch_size: int = 256
    seconds: float = 15.0  # the most that is measured of one epoch
    mix_bytes: int = 128 << 20
    disk_bytes: int = 12 << 30
    seed: int = 0
    keep: bool = False  # the data, for another time
    one_process: bool = False  # a smoke test: no fresh process for each measurement

    @property
    def limited(self) -> bool:
        """Return whether it measures inside a memory limit."""
        return any(case.cache == "limited" for case in self.cases)

    @property
    def limit_bytes(self) -> int:
        """Return the memory limit of the cases that have one."""
        return self.recipe.nbytes // _LIMIT_SHARE

    def heats(self) -> Iterator[tuple[Contestant, ...]]:
        """Yield groups of contestants whose stores fit on the disk together.

        The limits of the .npy file are in each of them, and so in every round of everybody.
        """
        names = dict.fromkeys(contestant.store for contestant in self.contestants)
        others = [name for name in names if name != _ALWAYS]
        for stores in self._fitting(others) or [[]]:
            yield tuple(c for c in self.contestants if self._is_in(c, stores, others))

    def _fitting(self, names: Sequence[str]) -> list[list[str]]:
        heats: list[list[str]] = []
        room = 0
        for name in names:
            size = STORES[name].bytes_on_disk(self.recipe)
            if not heats or size > room:
                heats.append([])
                room = self.disk_bytes - STORES[_ALWAYS].bytes_on_disk(self.recipe)
            heats[-1].append(name)
            room -= size
        return heats

    def _is_in(self, contestant: Contestant, stores: list[str], others: list[str]) -> bool:
        if contestant.store != _ALWAYS:
            return contestant.store in stores
        return contestant.group == "limit" or stores == [] or stores[0] == others[0]
