"""One setting of a loader, moved: throughput, and the wait for the first batch beside it."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from helpers.drawing import figure_style as style
from helpers.drawing.layout import WIDTH, panel_title
from helpers.drawing.pictures import Picture
from helpers.units import format_rate

Points = Mapping[Any, tuple[float, float]]  # samples per second and seconds, by the setting's value

_LOOKS: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (1, 1)), (0, (5, 1, 1, 1)))
_MARKS = "osD^"
_LOG_SPREAD = 20  # between the highest and lowest rate


def draw_setting(
    setting: str, curves: Mapping[str, Points], *, limit: float | None = None
) -> Picture:
    """Draw what a setting does to one loader or several.

    Left, samples per second once a loader runs; right, seconds to its first batch. `curves` has
    both by the setting's value, by loader. `limit` is what the disk gives, in samples per second:
    rows that come faster come out of RAM. Raises ValueError for a rate that is not above zero.
    """
    if not curves or not all(curves.values()):
        raise ValueError("there are no points: pass at least one loader, measured once")
    for name, points in curves.items():
        for value, (rate, _) in points.items():
            if not rate > 0:
                raise ValueError(f"{name!r} at {value} has a rate of {rate}: measure it for longer")
    return Picture(_draw(setting, curves, limit), _told(setting, curves, limit))


@style.styled
def _draw(setting: str, curves: Mapping[str, Points], limit: float | None) -> Any:
    figure = style.new_figure(WIDTH, 410)
    left = figure.add_axes((0.1, 0.32, 0.5, 0.58))
    right = figure.add_axes((0.71, 0.32, 0.27, 0.58))
    for part, ax in enumerate((left, right)):
        _draw_lines(ax, setting, curves, part)
    _scale_rates(left, _rates(curves), limit)
    right.set_ylim(bottom=0)
    panel_title(left, "samples per second, once it runs", 8)
    panel_title(right, "seconds to the first batch", 8)
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc="lower left", ncols=3, bbox_to_anchor=(0.02, -0.01))
    return figure


def _draw_lines(ax: Axes, setting: str, curves: Mapping[str, Points], part: int) -> None:
    values = list(dict.fromkeys(value for points in curves.values() for value in points))
    for number, (name, points) in enumerate(curves.items()):
        x = [values.index(value) for value in points]
        y = [point[part] for point in points.values()]
        look: dict[str, Any] = {"linestyle": _LOOKS[number % 4], "marker": _MARKS[number % 4]}
        ax.plot(x, y, color=f"C{number}", label=name, linewidth=2.2, markersize=8, **look)
    ax.set_xticks(range(len(values)), [str(value) for value in values])
    ax.set_xlim(-0.4, len(values) - 0.6)
    ax.set_xlabel(setting)


def _scale_rates(ax: Axes, rates: list[float], limit: float | None) -> None:
    if limit is not None:
        words = f"this disk, in order (the best has {max(rates) / limit:.0%} of it)"
        ax.axhline(limit, color=style.BUDGET, dashes=(6, 2), label=words)
        rates = [*rates, limit]
    if max(rates) > _LOG_SPREAD * min(rates):
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(FuncFormatter(_short))
    ax.yaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))


def _rates(curves: Mapping[str, Points]) -> list[float]:
    return [rate for points in curves.values() for rate, _ in points.values()]


def _told(setting: str, curves: Mapping[str, Points], limit: float | None) -> str:
    told = [f"{setting}."]
    for name, points in curves.items():
        each = (f"{value} {format_rate(rate)}" for value, (rate, _) in points.items())
        told.append(f"{name}: {', '.join(each)}.")
    if limit is not None:
        told.append(f"This disk, in order: {format_rate(limit)}.")
    return " ".join(told)


def _short(rate: float, _: Any) -> str:
    """Return a rate as an axis says it: 1500000 -> '1.5 M', 20000 -> '20 k'."""
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if rate >= size:
            return f"{rate / size:g}{letter}"
    return f"{rate:g}"
