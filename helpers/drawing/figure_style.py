"""One look for every figure: colours, type and axes that a room can read. No drawing of records.

Nothing here changes matplotlib's global settings, and nothing uses pyplot: a notebook's own
figures stay as they are. Colours come in pairs with a hatch, a line style or words, so that
nothing is told by colour alone.
"""

import io
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from helpers.records import Outcome

P = ParamSpec("P")
T = TypeVar("T")

DOTS_PER_INCH = 100
WIDTH, ROW_HEIGHT = 1000, 450  # pixels of a figure, and of each row in it
TITLE_PAD = 24  # points between a panel and its title: the outcome is written there
INK = "#222222"
FAINT = "#666666"
BUDGET = "#b2182b"
GUESS = "#6a3d9a"
RATE = "#00755a"

# Kinds of memory in the order in which they are stacked: what no reclaim can free comes first.
KINDS: dict[str, dict[str, Any]] = {
    "anonymous": {"facecolor": "#0072b2"},
    "shared": {"facecolor": "#e69f00", "edgecolor": "#7a5400", "hatch": "xx"},
    "file-backed": {"facecolor": "#b5dcf3", "edgecolor": "#4d94bd", "hatch": "//"},
}
WAITING: dict[str, Any] = {"facecolor": "#e3a9cb", "edgecolor": "#8f4874", "hatch": ".."}

BUDGET_LINE: dict[str, Any] = {"color": BUDGET, "linewidth": 2, "dashes": (6, 2), "zorder": 4}
LINES: dict[str, dict[str, Any]] = {
    "RSS, summed": {"color": INK, "linewidth": 1.6, "linestyle": (0, (4, 2))},
    "charged by the kernel": {"color": INK, "linewidth": 1.8, "linestyle": (0, (1, 1.2))},
}

OUTCOME_COLOURS = {
    Outcome.FINISHED: RATE,
    Outcome.KILLED: BUDGET,
    Outcome.RAISED: "#a6611a",
    Outcome.CRASHED: INK,
    Outcome.TIMED_OUT: "#8c6d00",
    Outcome.STOPPED: FAINT,
}

_SETTINGS: dict[str, Any] = {
    "axes.edgecolor": FAINT,
    "axes.facecolor": "white",
    "axes.grid": False,
    "axes.labelcolor": INK,
    "axes.labelsize": 13,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 14,
    "axes.titleweight": "bold",
    "axes.unicode_minus": False,
    "figure.facecolor": "white",
    "font.family": ["DejaVu Sans"],
    "font.size": 13,
    "hatch.linewidth": 0.8,
    "legend.fontsize": 12,
    "legend.frameon": False,
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": 12,
    "ytick.color": INK,
    "ytick.labelsize": 12,
}

_TIME_STEPS = (
    *(base * 10**power for power in range(-3, 1) for base in (1, 2, 5)),
    *(10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400),
)


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Run a drawing function under the workshop's settings and put the caller's back."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> T:
        with rc_context(_SETTINGS):
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: int, height: int) -> Figure:
    """Return an empty white figure of so many pixels, with its own canvas and no window."""
    figure = Figure((width / DOTS_PER_INCH, height / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
    FigureCanvasAgg(figure)
    return figure


@styled
def new_axes(width: int = 560, height: int = 400) -> Axes:
    """Return Axes of their own, with room for the labels and a legend below."""
    figure = new_figure(width, height)
    return figure.add_axes((0.16, 0.24, 0.8, 0.66))


def row_axes(figure: Figure, row: int, rows: int) -> tuple[Axes, Axes]:
    """Return the two panels of a row, the first row on top. Places are fixed: nothing jumps."""
    bottom, height = 1 - (row + 1) / rows, 1 / rows
    left = figure.add_axes((0.085, bottom + 0.17 * height, 0.425, 0.555 * height))
    right = figure.add_axes((0.595, bottom + 0.41 * height, 0.37, 0.315 * height))
    return left, right


def row_title(figure: Figure, row: int, rows: int, title: str, subtitle: str) -> None:
    """Write a row's title and, below it, how it ended, each on one line."""
    top, height = 1 - row / rows, 1 / rows
    _write_line(figure, top - 0.03 * height, title, fontsize=17, weight="bold")
    _write_line(figure, top - 0.1 * height, subtitle, color=FAINT)


def _write_line(figure: Figure, y: float, words: str, **look: Any) -> None:
    """Write words across a figure, and cut what does not fit."""
    words = " ".join(words.split())
    text = figure.text(0.012, y, words, va="top", **look)
    room = 0.976 * figure.bbox.width
    while (width := text.get_window_extent().width) > room:
        fitting = int(len(text.get_text()) * room / width) - 1
        text.set_text(words[:fitting].rstrip() + "\u2026")


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file."""
    canvas: Any = figure.canvas  # new_figure gave it one that draws pixels
    stream = io.BytesIO()
    canvas.print_png(stream)
    return stream.getvalue()


def pixels(figure: Figure) -> tuple[int, int]:
    """Return a figure's width and height in pixels."""
    width, height = figure.get_size_inches()
    return round(width * figure.dpi), round(height * figure.dpi)


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


def scale_bytes(ax: Axes, top: float) -> None:
    """Give the y axis the range 0 to `top` bytes, with ticks at powers of two."""
    step = 1
    while top / step > 5:
        step *= 2
    _scale(ax.yaxis, top, step, tick_bytes)
    ax.set_ylim(0, top)


def scale_time(ax: Axes, end: float) -> None:
    """Give the x axis the range 0 to `end` seconds, with ticks that a clock would have."""
    step = next((step for step in _TIME_STEPS if end / step <= 6), _TIME_STEPS[-1])
    while end / step > 6:
        step *= 2
    _scale(ax.xaxis, end, step, tick_time)
    ax.set_xlim(0, end)


def scale_rate(ax: Axes, top: float) -> None:
    """Give the y axis the range 0 to `top` samples per second, with ticks at 1, 2, 5, 10."""
    step = next(
        base * 10.0**power
        for power in range(-9, 30)
        for base in (1, 2, 5)
        if top / (base * 10.0**power) <= 5
    )
    _scale(ax.yaxis, top, step, lambda rate: f"{rate:,.10g}")
    ax.set_ylim(0, top)


def _scale(axis: Any, end: float, step: float, label: Callable[[float], str]) -> None:
    axis.set_major_locator(FixedLocator([step * n for n in range(int(end / step) + 1)]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: label(value)))
