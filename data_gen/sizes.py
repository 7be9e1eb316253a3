"""How many rows a size means: in bytes, in the RAM that can be had here, or in RAM budgets."""

import re

from data_gen.whole_numbers import whole_number
from helpers.system.ram import machine_ram_bytes
from helpers.units import format_bytes, parse_size

_MULTIPLE = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*x\s*(ram|budget)\s*", re.IGNORECASE)


def size_in_bytes(size: str | int, *, budget: str | int | None = None) -> int:
    """Return bytes: '4 GiB', 4294967296, '1.5x ram', '4x budget' of `budget`.

    "ram" is the machine's, or the lowest limit that a container or a cgroup sets on us.
    """
    size = size if isinstance(size, str) else whole_number("size", size)
    multiple = _MULTIPLE.fullmatch(str(size))
    if multiple is None:
        try:
            return parse_size(size)
        except ValueError as error:
            raise ValueError(f"{error}; '1.5x ram' and '4x budget' are sizes too") from None
    if multiple[2].lower() == "ram":
        unit = machine_ram_bytes()
    elif budget is None:
        raise ValueError(f"{size!r} needs a budget: pass budget='1 GiB', or a size in bytes")
    else:
        unit = parse_size(budget)
    return int(float(multiple[1]) * unit)


def count_rows(
    rows: int | None, size: str | int | None, row_bytes: int, budget: str | int | None
) -> int:
    """Return the number of rows: `rows` itself, or as many whole rows as fit `size`."""
    if (rows is None) == (size is None):
        raise ValueError(f"rows={rows!r} and size={size!r}: pass exactly one of them")
    if size is None:
        return whole_number("rows", rows)
    fitting = size_in_bytes(size, budget=budget) // row_bytes
    if fitting < 1:
        raise ValueError(
            f"size {size!r} is less than one row of {format_bytes(row_bytes)}: pass a larger size"
        )
    return fitting
