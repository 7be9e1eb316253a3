"""Settings as Python's own values: a number of numpy or torch is a number, and is saved as one."""

import operator
from typing import Any

import numpy as np


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """Return a whole number of Python, numpy or torch as an int.

    Raises TypeError for anything else, also a float such as 256.0, and ValueError below `least`.
    """
    try:
        if isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool"):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        what = f"{name}={value!r} is of type {type(value).__name__}"
        raise TypeError(f"{what}: pass a whole number, as {least or 0}") from None
    if least is not None and number < least:
        raise ValueError(f"{name}={number}: pass {least} or more")
    return number


def yes_or_no(name: str, value: Any) -> bool:
    """Return a truth value of Python or numpy as a bool. Raises TypeError for anything else."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r}: pass True or False")
    return bool(value)
