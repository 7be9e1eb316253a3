"""One picture of a table: bars that can be told apart from the back of a room."""

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from helpers.drawing import figure_style as style

from .contestants import REFERENCE
from .records import Case, Group
from .summary import Line

_WIDTH, _ROW, _ABOVE, _BELOW = 1500, 64, 90, 110  # pixels
_COLOURS: dict[Group, str] = {"ours": "#00755a", "plain": "#e69f00", "peer": "#56b4e9"}
_WORDS: dict[Group, str] = {"ours": "ours", "plain": "plain code", "peer": "other libraries"}
_UNMIXED = "///"
_DIAMOND: dict[str, Any] = {
    "linestyle": "",
    "marker": "D",
    "markersize": 12,
    "color": "white",
    "markeredgecolor": style.INK,
}
_LARGE, _LARGER = 19, 26  # points


@style.styled
def draw(lines: Sequence[Line], cases: Sequence[Case], title: str) -> Figure:
    """Draw the first case as bars, the fastest on top; where there is a cold one too, as diamonds.

    The limits of both are lines from top to bottom. Hatched bars hand out rows hardly mixed.
    """
    bars = cases[0]
    dots = next((c for c in cases if c.cache == "cold" and c.workers == bars.workers), bars)
    readers = [line for line in lines if line.contestant.drawn and bars in line.rates]
    readers.sort(key=lambda line: line.rates[bars].median)
    axes = _axes(len(readers))
    for place, line in enumerate(readers):
        _draw_reader(axes, place, line, bars, dots)
    limits = [_draw_limit(axes, lines, bars, "-")]
    if dots != bars:
        limits.append(_draw_limit(axes, lines, dots, "--"))
    _finish(axes, [line.contestant.title for line in readers], title)
    _legend(axes, [limit for limit in limits if limit], dots != bars)
    return axes.figure  # type: ignore[return-value]


def _axes(rows: int) -> Axes:
    height = _ABOVE + _BELOW + _ROW * max(1, rows)
    figure = style.new_figure(_WIDTH, height)
    return figure.add_axes((0.24, _BELOW / height, 0.74, 1 - (_ABOVE + _BELOW) / height))


def _draw_reader(axes: Axes, place: int, line: Line, bars: Case, dots: Case) -> None:
    rate = line.rates[bars].median
    axes.barh(
        place,
        rate,
        height=0.72,
        facecolor=_COLOURS[line.contestant.group],
        edgecolor=style.INK,
        hatch="" if line.mixed else _UNMIXED,
    )
    right = rate
    if dots != bars and dots in line.rates:
        axes.plot(line.rates[dots].median, place, **_DIAMOND)
        right = max(rate, line.rates[dots].median)
    axes.annotate(
        _short(rate)
        + ("" if line.mixed else ", not mixed")
        + ("" if line.right else ", WRONG ROWS"),
        (right, place),
        xytext=(14, 0),
        textcoords="offset points",
        fontsize=_LARGE,
        va="center",
        weight="bold",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )


def _draw_limit(axes: Axes, lines: Sequence[Line], case: Case, look: str) -> Line2D | None:
    """Draw what a case is compared with. It is read in one process, whatever the case has."""
    wanted = Case(case.cache, 0)
    for line in lines:
        if line.contestant.name == REFERENCE[case.cache] and wanted in line.rates:
            words = f"{line.contestant.title}, {case.cache}"
            return axes.axvline(
                line.rates[wanted].median,
                color=style.INK,
                linestyle=look,
                linewidth=2.5,
                zorder=0.5,
                label=words,
            )
    return None


def _finish(axes: Axes, names: list[str], title: str) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=_LARGE)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlim(0, 1.14 * max(axes.dataLim.x1, 1))  # there may be no bar
    axes.xaxis.set_major_formatter(lambda rate, _: _short(rate) if rate else "0")
    axes.tick_params(axis="x", labelsize=_LARGE)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("rows per second", fontsize=_LARGE)
    figure = axes.figure
    figure.text(
        0.012, 1 - 18 / figure.bbox.height, title, fontsize=_LARGER, weight="bold", va="top"
    )


def _legend(axes: Axes, limits: list[Line2D], cold: bool) -> None:
    shown: list[Artist] = [
        Patch(facecolor=_COLOURS[group], edgecolor=style.INK, label=words)
        for group, words in _WORDS.items()
    ]
    shown.append(Patch(facecolor="white", edgecolor=style.INK, hatch=_UNMIXED, label="not mixed"))
    if cold:
        shown.append(Line2D([], [], label="from a cold file", **_DIAMOND))
    axes.legend(
        handles=[*shown, *limits], loc="lower right", fontsize=_LARGE, frameon=True, framealpha=1
    )


def _short(rate: float) -> str:
    """Return a rate as a bar's label: 1390000 -> '1.39 M', 82000 -> '82 k', 850 -> '850'."""
    if rate >= 1e6:
        return f"{rate / 1e6:.3g} M"
    return f"{rate / 1000:.3g} k" if rate >= 1000 else f"{rate:.3g}"
