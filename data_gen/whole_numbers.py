"""Whole numbers as they come: Python's own, numpy's, torch's, and floats without a fraction."""

import operator
from collections.abc import Iterable
from typing import Any


def whole_number(name: str, value: Any) -> int:
    """Return a value as a plain int: 5, np.int64(5), torch.tensor(5) and 5.0 are 5.

    Raises ValueError, naming the argument and the value, for 2.5, '5' and all that is no number.
    """
    number = value.item() if getattr(value, "shape", None) == () else value
    if isinstance(number, float) and number.is_integer():
        return int(number)
    try:
        return operator.index(number)
    except TypeError:
        raise ValueError(f"{name}={value!r}: pass a whole number") from None


def whole_numbers(name: str, values: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of plain ints. Raises ValueError as `whole_number` does."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{name}={values!r}: pass a shape, such as (64, 64)")
    return tuple(whole_number(name, value) for value in values)
