"""One picture of a table: bars that can be told apart from the back of a room."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers import figure_style as style

from .records import Case, Group
from .summary import Line, Rate

_WIDTH, _BAR_HEIGHT, _MARGINS = 1400, 62, 250  # pixels
_COLOURS: dict[Group, str] = {
    "ours": "#00755a",
    "plain": "#e69f00",
    "peer": "#0072b2",
    "limit": style.FAINT,
}
_WORDS: dict[Group, str] = {"ours": "ours", "plain": "plain loops", "peer": "other libraries"}
_UNMIXED = "//"


@style.styled
def draw(lines: Sequence[Line], cases: Sequence[Case], title: str) -> Figure:
    """Draw the first case as bars, the fastest on top, and the case that is its cold twin as dots.

    The limits are lines from top to bottom. Hatched bars hand out rows that are hardly mixed.
    """
    first, second = _two(cases)
    shown = sorted(
        (line for line in lines if first in line.rates and line.contestant.group != "limit"),
        key=lambda line: line.rates[first].median,
    )
    figure = style.new_figure(_WIDTH, _MARGINS + _BAR_HEIGHT * max(1, len(shown)))
    height = 1 - _MARGINS / (_MARGINS + _BAR_HEIGHT * max(1, len(shown)))
    axes = figure.add_axes((0.27, 0.6 * (1 - height), 0.62, height))
    for place, line in enumerate(shown):
        _draw_line(axes, place, line, line.rates[first], line.rates.get(second))
    return figure
