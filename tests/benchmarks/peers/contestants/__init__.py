"""Everybody who takes part. To add one: a function, and a line of the CSV.

It returns a loader; or, where the CSV says what it gives, what reads rows, batches or blocks, and
`common` makes the loader. A peer's own store is made by make_STORE, in the same module.
"""

import csv
from importlib import import_module
from pathlib import Path
from typing import Any

from ..records import Contestant

# What a rate is compared with, taken in the same round.
REFERENCE = {"warm": "limit-fromfile", "cold": "limit-read", "limited": "limit-read"}


def read_everybody() -> tuple[Contestant, ...]:
    with Path(__file__).with_name("everybody.csv").open(newline="") as file:
        _, *lines = csv.reader(file)
    return tuple(Contestant(*line) for line in lines)


def find(function: str) -> Any:
    """Return a contestant's function, or the one that makes a store: 'module.function'."""
    module, name = function.split(".")
    return getattr(import_module(f".{module}", __name__), name)
