"""Axes of bytes, seconds and rates: a few exact ticks, as many as there is room for."""

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter

_TIME_STEPS = (
    *(base * 10**power for power in range(-3, 1) for base in (1, 2, 5)),
    *(10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400),
)


def tick_bytes(size: float) -> str:
    """Return an axis label without rounding: 1342177280 -> '1.25 GiB'."""
    for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB")):
        if size < 1024 ** (power + 1) or unit == "TiB":
            break
    return f"{size / 1024**power:g} {unit}" if size else "0"


def tick_time(seconds: float) -> str:
    """Return an axis label: 0.5 -> '0.5 s', 90 -> '1.5 min', 7200 -> '2 h'."""
    if seconds < 60:
        return f"{seconds:g} s" if seconds else "0"
    return f"{seconds / 60:g} min" if seconds < 3600 else f"{seconds / 3600:g} h"


def tick_rate(samples_per_second: float) -> str:
    """Return an axis label: 1500 -> '1,500', 25000000 -> '25 M'."""
    if samples_per_second < 1e6:
        return f"{samples_per_second:,.10g}"
    return f"{samples_per_second / 1e6:,.10g} M"


def scale_bytes(ax: Axes, top: float) -> None:
    """Give the y axis the range 0 to `top` bytes, with ticks at powers of two."""
    step = 1
    while top / step > _room(ax.bbox.height, 48):
        step *= 2
    _scale(ax.yaxis, top, step, tick_bytes)
    ax.set_ylim(0, top)


def scale_time(ax: Axes, end: float) -> None:
    """Give the x axis the range 0 to `end` seconds, with ticks that a clock would have."""
    most = _room(ax.bbox.width, 80)
    step = next((step for step in _TIME_STEPS if end / step <= most), _TIME_STEPS[-1])
    while end / step > most:
        step *= 2
    _scale(ax.xaxis, end, step, tick_time)
    ax.set_xlim(0, end)


def scale_rate(ax: Axes, top: float) -> None:
    """Give the y axis the range 0 to `top` samples per second, with ticks at 1, 2, 5, 10."""
    most = _room(ax.bbox.height, 40)
    step = next(
        base * 10.0**power
        for power in range(-9, 30)
        for base in (1, 2, 5)
        if top / (base * 10.0**power) <= most
    )
    _scale(ax.yaxis, top, step, tick_rate)
    ax.set_ylim(0, top)


def _room(pixels: float, each: float) -> int:
    """Return how many steps an axis of so many pixels has room for: three at least."""
    return max(int(pixels // each), 3)


def _scale(axis: Any, end: float, step: float, label: Callable[[float], str]) -> None:
    axis.set_major_locator(FixedLocator([step * n for n in range(int(end / step) + 1)]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: label(value)))
