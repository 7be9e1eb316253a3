"""One picture of a table: bars that can be told apart from the back of a room."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers.drawing import figure_style as style

from .contestants import REFERENCE
from .records import Case
from .report import Line, short

_WIDTH, _ROW, _ABOVE, _BELOW = 1500, 64, 90, 110  # pixels
_LARGE, _LARGER = 19, 26  # points
_LOOKS: dict[str, dict[str, Any]] = {
    "ours": {"facecolor": "#00755a", "label": "ours"},
    "plain": {"facecolor": "#e69f00", "label": "plain code"},
    "peer": {"facecolor": "#56b4e9", "label": "other libraries"},
    "limit": {"color": style.INK, "linewidth": 2.5, "zorder": 0.5},
    "cold": {"marker": "D", "s": 144, "facecolor": "white", "edgecolor": style.INK, "zorder": 3},
    "words": {"xytext": (14, 0), "textcoords": "offset points", "va": "center", "weight": "bold"},
}


@style.styled
def draw(lines: Sequence[Line], cases: Sequence[Case], title: str) -> Figure:
    """Draw the first case as bars, the fastest on top; where there is a cold one too, as diamonds.

    The limits of both are lines from top to bottom. Hatched bars hand out rows hardly mixed.
    """
    bars = cases[0]
    dots = next((c for c in cases if c.cache == "cold" and c.workers == bars.workers), bars)
    readers = [one for one in lines if one.contestant.shown_in == "figure" and bars in one.rates]
    readers.sort(key=lambda line: line.rates[bars])
    height = _ABOVE + _BELOW + _ROW * max(1, len(readers))
    figure = style.new_figure(_WIDTH, height)
    figure.text(0.012, 1 - 18 / height, title, fontsize=_LARGER, weight="bold", va="top")
    axes = figure.add_axes((0.24, _BELOW / height, 0.74, 1 - (_ABOVE + _BELOW) / height))
    for place, line in enumerate(readers):
        _draw_reader(axes, place, line, bars, dots)
    for case, look in {dots: "--", bars: "-"}.items():
        for line in (one for one in lines if one.contestant.name == REFERENCE[case.cache]):
            rate = line.rates.get(Case(case.cache, 0), 0.0)  # a limit is read in one process
            label = f"{line.contestant.title}, {case.cache}"
            axes.axvline(rate, linestyle=look, label=label, **_LOOKS["limit"])
    _finish(axes, [line.contestant.title for line in readers])
    return figure


def _draw_reader(axes: Axes, place: int, line: Line, bars: Case, dots: Case) -> None:
    rate, cold, look = line.rates[bars], line.rates.get(dots, 0.0), _LOOKS[line.contestant.group]
    hatch = "" if line.mixed else "///"
    axes.barh(place, rate, height=0.72, edgecolor=style.INK, hatch=hatch, **look)
    if bars != dots and cold:
        axes.scatter(cold, place, label="from a cold file", **_LOOKS["cold"])
    words = [short(rate), *["not mixed"][line.mixed :], *["WRONG ROWS"][line.right :]]
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    end = max(rate, cold), place
    axes.annotate(", ".join(words), end, bbox=box, fontsize=_LARGE, **_LOOKS["words"])


def _finish(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlim(0, 1.14 * max(axes.dataLim.x1, 1))  # there may be no bar
    axes.xaxis.set_major_formatter(lambda rate, _: short(rate))
    axes.tick_params(labelsize=_LARGE)
    axes.set_xlabel("rows per second", fontsize=_LARGE)
    handles, labels = axes.get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))  # of each label the last: the fastest
    axes.legend(shown.values(), shown, loc="lower right", fontsize=_LARGE, framealpha=1)
