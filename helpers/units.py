"""Bytes and rates as people read and write them. Binary units only: 1 KiB is 1024 bytes."""

import re
from fractions import Fraction

_STEPS = ("B", "KiB", "MiB", "GiB", "TiB")
_SIZE = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(?:([KMGT])i?)?B?\s*", re.IGNORECASE)


def format_bytes(size: float) -> str:
    """Return a size with its binary unit: 1536 -> '1.5 KiB', 2**30 -> '1 GiB'."""
    if size < 0:
        return f"-{format_bytes(-size)}"
    step = 0
    while size >= 1023.5 and step < len(_STEPS) - 1:
        size /= 1024
        step += 1
    digits = f"{size:.0f}" if step == 0 or size >= 100 else f"{size:.1f}".removesuffix(".0")
    return f"{digits} {_STEPS[step]}"


def format_rate(samples_per_second: float) -> str:
    """Return a rate in samples per second: 12345.6 -> '12,346 samples/s'."""
    return f"{samples_per_second:,.{1 if samples_per_second < 10 else 0}f} samples/s"


def parse_size(size: str | int) -> int:
    """Return a positive number of bytes: '1.5 GiB', '512MiB', '4 GB' (read as GiB), 1048576.

    Raises ValueError, naming the value, when it does not parse or is not positive.
    """
    match = _SIZE.fullmatch(str(size)) if not isinstance(size, bool) else None
    count = Fraction(match[1]) * 1024 ** " KMGT".index((match[2] or " ").upper()) if match else 0
    if count < 1:
        raise ValueError(f"{size!r} is not a size: write it as '512 MiB' or '4 GiB', above zero")
    return int(count)
