"""Checks of behaviour for the exercises: "done", or "not yet" with a hint at the likely mistake.

A check never raises for a mistake of the reader's, so that Run All goes on. The reader's functions
and classes run in a child, with little RAM and time: they may loop or crash. It returns a small
record that is true or false.

    check_value("your estimate", 4_294_967_296, data.nbytes)
    check_dataset(YourDataset, data)                        # all properties
    check_dataset(YourDataset, data, rows_are_right, pickles_small)
    check("your order", find_mistake, your_order)           # find_mistake(your_order) in a child
"""

import html
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from helpers.dataset_properties import ALL_PROPERTIES, DatasetProperty, first_mistake
from helpers.experiment import run
from helpers.hints import Mistake, hint_of
from helpers.live import NoView
from helpers.ragged_data import PART_BYTES
from helpers.records import Outcome, Run
from helpers.units import format_bytes

RAM_BUDGET = 2**30  # what importing torch takes differs; an attempt is judged by what it adds
SECONDS = 15.0
_UNITS = {"bits": 1 / 8, "B": 1.0} | {
    f"{prefix}{letter}B": float(base) ** power
    for letter, base in (("", 1000), ("i", 1024))
    for power, prefix in enumerate("KMGT", start=1)
}
_WITH_UNIT = re.compile(rf"\s*([\d.,_]+)\s*({'|'.join(_UNITS)}|bytes)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Check:
    """What a check found. `hint` is empty when all is well."""

    title: str
    hint: str = ""

    def __bool__(self) -> bool:
        return not self.hint

    def __repr__(self) -> str:
        return f"not yet: {self.title}: {self.hint}" if self.hint else f"✓ done: {self.title}"

    def _repr_html_(self) -> str:
        colour, word = ("#0072b2", "✓ done") if self else ("#d55e00", "not yet")
        text = html.escape(f"{self.title}: {self.hint}" if self.hint else self.title)
        style = f"border-left: 4px solid {colour}; padding: 4px 10px; white-space: pre-wrap"
        return f'<div style="{style}"><b>{word}</b>: {text}</div>'


def check(title: str, find_mistake: Callable[..., str | None], *attempt: Any) -> Check:
    """Check whatever `find_mistake` looks at: it returns a hint, or None if all is well.

    With an `attempt` of the reader's, `find_mistake(*attempt)` is called in a child, and both must
    come from %%importable cells or modules. Without, it is called here.
    """
    return Check(title, (_hint_of_a_child if attempt else hint_of)(find_mistake, *attempt))


def check_dataset(dataset_class: Any, data: Any, *properties: DatasetProperty) -> Check:
    """Check a dataset class on generated data in a child: all properties, or the given ones.

    `data` is what `data_gen.ensure` returns; `dataset_class(data.rows_path)` must make a dataset
    whose items are a row, or a tuple with the row in it. Stops at the first mistake. That the
    dataset reads little is always a property. The child reads a part of npy data, made for it.
    """
    title = getattr(dataset_class, "__name__", type(dataset_class).__name__)
    if not callable(dataset_class):
        given = hasattr(dataset_class, "__getitem__")
        return Check(title, "give the class itself, uncalled" if given else "fill in the class")
    wanted = properties or ALL_PROPERTIES
    return Check(title, _hint_of_a_child(first_mistake, dataset_class, data, wanted))


def check_value(
    title: str,
    answer: Any,
    expected: float,
    *,
    unit: str | None = None,
    tolerance: float = 0.05,
    hints: Mapping[float, str] | None = None,
) -> Check:
    """Check a number, or a function without arguments that returns it.

    `unit` of `expected` is "B", "MiB", "GB" ... for bytes; the answer may be text, as "1.5 GiB",
    then. `tolerance` is relative. `hints` tells typical wrong answers and what to say to each.
    """

    def find_mistake() -> str | None:
        number = _number(answer() if callable(answer) else answer, unit)
        if _near(number, expected, tolerance):
            return None
        for wrong, hint in (hints or {}).items():
            if _near(number, wrong, tolerance):
                return hint
        return _hint_at_unit(number, expected, unit, tolerance) or _hint_at_size(number, expected)

    return check(title, find_mistake)


def _hint_of_a_child(find_mistake: Callable[..., str | None], *attempt: Any) -> str:
    """Return the hint of `find_mistake(*attempt)`, or what the child's end says."""
    try:
        tried = run(
            hint_of, find_mistake, *attempt, ram_budget=RAM_BUDGET, timeout=SECONDS, view=NoView()
        )
    except (TypeError, ValueError, RuntimeError) as error:  # it cannot be sent, or no child starts
        return str(error)
    if not tried.finished:
        return _hint_at_ending(tried)
    # Where a system does not tell what the process read, this is what loading everything leaves.
    if not tried.value and tried.added_anonymous_bytes > PART_BYTES // 2:
        return f"it takes {format_bytes(tried.added_anonymous_bytes)} of memory: does it load all?"
    return str(tried.value)


def _hint_at_ending(tried: Run) -> str:
    hints = {
        Outcome.KILLED: "which line computes with more than it needs?",
        Outcome.TIMED_OUT: "is there a loop that never ends?",
        Outcome.CRASHED: "a write into a read-only map ends a process like this, and so does exit",
        Outcome.RAISED: "it must be found in a cell that begins with %%importable",
    }
    return f"{tried.ending}: {hints.get(tried.outcome, 'run the check again')}"


def _number(value: Any, unit: str | None) -> float:
    """Return an answer as a number in `unit`. Raises Mistake where it is none."""
    if value is None or value is ...:
        raise Mistake("fill in your answer")
    if unit and isinstance(value, str) and (found := _WITH_UNIT.fullmatch(value)):
        units = {name.lower(): size for name, size in _UNITS.items()} | {"bytes": 1.0}
        return float(found[1].replace(",", "")) * units[found[2].lower()] / _UNITS[unit]
    if isinstance(value, bool | str) or not hasattr(value, "__float__") or np.ndim(value):
        raise Mistake(f"{value!r} is a {type(value).__name__}: give a number")
    return float(value)


def _near(number: float, other: float, tolerance: float) -> bool:
    return math.isclose(number, other, rel_tol=tolerance, abs_tol=1e-12)


def _hint_at_unit(number: float, expected: float, unit: str | None, tolerance: float) -> str | None:
    """Return a hint when the number is right in another unit; the nearest, if it is in several."""
    if unit is None or not number > 0:
        return None
    wanted = expected * _UNITS[unit]
    off = {name: abs(math.log(number * size / wanted)) for name, size in _UNITS.items()}
    name = min(off, key=lambda name: off[name])
    if not _near(number * _UNITS[name], wanted, tolerance):
        return None
    decimal = "decimal " if name[0] in "KMGT" and "i" not in name else ""
    return f"{number:g} is right in {decimal}{name}: give it in {unit}"


def _hint_at_size(number: float, expected: float) -> str:
    if not math.isfinite(number):
        return f"{number} is not a finite number"
    return f"{number:g} is too {'large' if number > expected else 'small'}"
