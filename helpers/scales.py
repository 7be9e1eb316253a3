"""How large the workshop's data and budgets are: for a test, for a workshop, or for real."""

import os
from dataclasses import dataclass
from pathlib import Path

from helpers.system.ram import available_ram_bytes, machine_ram_bytes
from helpers.units import format_bytes, parse_size

VARIABLE = "LARGER_THAN_RAM_SCALE"
_MIB, _GIB = 2**20, 2**30


@dataclass(frozen=True)
class Scale:
    """One scale. Bytes; the data is made in `folder`.

    `epoch_seconds` is how long the pauses of one epoch last that stand for training steps.
    """

    name: str
    budget: int
    data_size: int
    folder: Path
    epoch_seconds: float

    def part(self, size: str) -> int:
        """Return a size that shrinks with the budget: '64 MiB' of a 1 GiB budget, in bytes."""
        return parse_size(size) * min(self.budget, _GIB) // _GIB

    def bytes_to_make(self) -> int:
        """Return how much of the data is still to be made: what the disk must have free."""
        made = sum(path.stat().st_size for path in self.folder.glob("**/*") if path.is_file())
        return max(self.data_size + self.part("256 MiB") - made, 0)

    def __repr__(self) -> str:
        budget, data = format_bytes(self.budget), format_bytes(self.data_size)
        return f"{self.name} scale: RAM budget {budget}, data {data}, in {self.folder}"


def scale() -> Scale:
    """Return the scale that LARGER_THAN_RAM_SCALE names: test, workshop (the default) or full.

    At full scale the data is 1.25 times this machine's RAM, and the budget what is available now
    less a reserve, so that an experiment dies and never the machine. Each scale has a folder of
    its own in `../data`, as seen from a notebook, or in what LARGER_THAN_RAM_DATA names. Raises
    ValueError for another name, or when too little RAM is free for the full scale.
    """
    name = os.environ.get(VARIABLE, "workshop")
    folder = Path(os.environ.get("LARGER_THAN_RAM_DATA", "../data"), name)
    if name == "test":
        return Scale(name, 512 * _MIB, 2 * _GIB, folder, epoch_seconds=8)
    if name == "workshop":
        return Scale(name, _GIB, 4 * _GIB, folder, epoch_seconds=25)
    if name == "full":
        available = available_ram_bytes()
        budget = available - max(2 * _GIB, available // 10)
        if budget < _GIB // 2:
            raise ValueError(
                f"{format_bytes(available)} of RAM are free: too little for the full scale. "
                f"Close other programs, or set {VARIABLE} to workshop"
            )
        return Scale(name, budget, machine_ram_bytes() * 5 // 4, folder, epoch_seconds=40)
    raise ValueError(f"{VARIABLE} is {name!r}: set it to test, workshop or full")
