"""One look for every figure: colours and type that a room can read. No drawing of records.

Nothing here changes matplotlib's global settings, and nothing uses pyplot: a notebook's own
figures stay as they are. Colours come in pairs with a hatch, a line style or words, so that
nothing is told by colour alone.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from helpers.records import Outcome

P = ParamSpec("P")
T = TypeVar("T")

DOTS_PER_INCH = 100
TEXT, SMALL = 14, 12  # points: read from the last row, where a figure is shown at two thirds
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

BUDGET_LINE: dict[str, Any] = {"color": BUDGET, "linewidth": 2, "dashes": (6, 2), "zorder": 4.5}
RATE_LINE: dict[str, Any] = {"color": RATE, "linewidth": 2.2}
LINES: dict[str, dict[str, Any]] = {
    "RSS, summed": {"color": INK, "linewidth": 1.6, "linestyle": (0, (4, 2))},
    "charged by the kernel": {"color": INK, "linewidth": 1.8, "linestyle": (0, (1, 1.2))},
}

OUTCOME_COLOURS = {
    Outcome.FINISHED: RATE,
    Outcome.KILLED: BUDGET,
    Outcome.REFUSED: BUDGET,
    Outcome.RAISED: "#a6611a",
    Outcome.CRASHED: INK,
    Outcome.TIMED_OUT: "#8c6d00",
    Outcome.STOPPED: FAINT,
}

_SETTINGS: dict[str, Any] = {
    **dict.fromkeys(["axes.facecolor", "figure.facecolor"], "white"),
    **dict.fromkeys(["axes.labelcolor", "axes.titlecolor", "text.color"], INK),
    **dict.fromkeys(["xtick.color", "ytick.color"], INK),
    **dict.fromkeys(["axes.labelsize", "axes.titlesize", "font.size"], TEXT),
    **dict.fromkeys(["legend.fontsize", "xtick.labelsize", "ytick.labelsize"], 13),
    **dict.fromkeys(["axes.grid", "axes.spines.right", "axes.spines.top"], False),
    **dict.fromkeys(["axes.unicode_minus", "legend.frameon", "text.usetex"], False),
    "text.parse_math": False,  # a $ in a title is a dollar
    "axes.edgecolor": FAINT,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "font.family": ["DejaVu Sans"],
    "hatch.linewidth": 0.8,
}


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
    return figure.add_axes((0.18, 0.26, 0.78, 0.62))


def pixels(figure: Figure) -> tuple[int, int]:
    """Return a figure's width and height in pixels."""
    width, height = figure.get_size_inches()
    return round(width * figure.dpi), round(height * figure.dpi)
