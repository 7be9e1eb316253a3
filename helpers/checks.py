"""Checks of behaviour for the exercises: "done", or "not yet" with a hint at the likely mistake.

A check never raises for a mistake of the reader's, an exception in their code included, so that Run
All goes on. It returns a small record that is true or false, which a child process can return too.

    check_value("your estimate", 4_294_967_296, data.nbytes)
    check_dataset(YourDataset, data)                        # every property below
    check_dataset(YourDataset, data, rows_are_right, pickles_small)
    check("your order", lambda: "it repeats indices" if len(set(order)) < len(order) else None)
"""

import html
import math
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from helpers import dataset_properties
from helpers.dataset_properties import ALL_PROPERTIES, DatasetProperty

_UNITS = {1024.0: "KiB", 1024.0**2: "MiB", 1024.0**3: "GiB"}


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


def check(title: str, find_mistake: Callable[[], str | None]) -> Check:
    """Check whatever `find_mistake` looks at: it returns a hint, or None if all is well."""
    try:
        return Check(title, find_mistake() or "")
    except NotImplementedError as stub:
        return Check(title, f"fill in {stub}" if str(stub) else "fill in what the stub leaves open")
    except Exception as error:  # noqa: BLE001 - the reader's code may raise whatever it likes
        return Check(title, _describe(error))


def check_value(
    title: str,
    answer: Any,
    expected: float,
    *,
    tolerance: float = 0.05,
    hints: Mapping[float, str] | None = None,
) -> Check:
    """Check a number, or a function without arguments that returns it.

    `tolerance` is relative. `hints` tells typical wrong answers and what to say to each.
    """

    def find_mistake() -> str | None:
        value = answer() if callable(answer) else answer
        if value is None or value is ...:
            return "fill in your answer"
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            return f"{value!r} is a {type(value).__name__}: give a number"
        number = float(value)
        if _near(number, expected, tolerance):
            return None
        for wrong, hint in (hints or {}).items():
            if _near(number, wrong, tolerance):
                return hint
        return _hint_at_unit(number, expected, tolerance) or _hint_at_size(number, expected)

    return check(title, find_mistake)


def check_dataset(dataset_class: Any, data: Any, *properties: DatasetProperty) -> Check:
    """Check a dataset class on generated data, all properties or the given ones.

    `data` is what `data_gen.ensure` returns; `dataset_class(data.rows_path)` must make a dataset
    whose items are a row, or a tuple with the row in it. Stops at the first mistake.
    """
    title = getattr(dataset_class, "__name__", repr(dataset_class))

    def find_mistake() -> str | None:
        if not callable(dataset_class):
            return "fill in the class"
        for find in properties or ALL_PROPERTIES:
            hint = find(dataset_class, data)
            if hint:
                return hint
        return None

    return check(title, find_mistake)


def _near(number: float, other: float, tolerance: float) -> bool:
    return math.isclose(number, other, rel_tol=tolerance, abs_tol=1e-12)


def _hint_at_unit(number: float, expected: float, tolerance: float) -> str | None:
    for factor, unit in _UNITS.items():
        if _near(number * factor, expected, tolerance):
            return f"the figure is right in {unit}: give it in the unit that is asked for"
        if _near(number, expected * factor, tolerance):
            return f"{number:g} is {factor:,.0f} times too large: look at the unit"
    return None


def _hint_at_size(number: float, expected: float) -> str:
    if not math.isfinite(number):
        return f"{number} is not a finite number"
    return f"{number:g} is too {'large' if number > expected else 'small'}"


def _describe(error: Exception) -> str:
    """Return 'IndexError: ...' with the last line of the reader's own code that was running."""
    ours = (__file__, dataset_properties.__file__)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename not in ours]
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    if not frames:
        return said
    theirs = [frame for frame in frames if frame.filename == frames[0].filename][-1]
    return f"{said}, in {theirs.name}: `{theirs.line}`"
