"""One picture of a table: bars that can be told apart from the back of a room."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from helpers import figure_style as style

from .contestants import REFERENCE
from .records import Case, Group
from .summary import Line

_WIDTH, _ROW, _ABOVE, _BELOW = 1500, 64, 130, 170  # pixels
_COLOURS: dict[Group, str] = {"ours": "#00755a", "plain": "#e69f00", "peer": "#56b4e9"}
_WORDS: dict[Group, str] = {"ours": "ours", "plain": "plain loops", "peer": "other libraries"}
_UNMIXED = "///"
_LARGE, _LARGER = 19, 26  # points


@style.styled
def draw(lines: Sequence[Line], cases: Sequence[Case], title: str) -> Figure:
    """Draw the first case as bars, the fastest on top; where there is a cold one too, as diamonds.

    The limits of both are lines from top to bottom. Hatched bars hand out rows hardly mixed.
    """
    bars = cases[0]
    dots = next((c for c in cases if c.cache == "cold" and c.workers == bars.workers), bars)
    readers = [line for line in lines if line.contestant.group != "limit" and bars in line.rates]
    readers.sort(key=lambda line: line.rates[bars].median)
    axes = _axes(len(readers))
    for place, line in enumerate(readers):
        _draw_reader(axes, place, line, bars, dots)
    for case, look in ((bars, "-"), *([(dots, "--")] if dots != bars else [])):
        _draw_limit(axes, lines, case, look)
    _finish(axes, [line.contestant.title for line in readers], title)
    _legend(axes, bars, dots)
    return axes.figure  # type: ignore[return-value]


def _axes(rows: int) -> Axes:
    height = _ABOVE + _BELOW + _ROW * max(1, rows)
    figure = style.new_figure(_WIDTH, height)
    return figure.add_axes((0.24, _BELOW / height, 0.7, 1 - (_ABOVE + _BELOW) / height))


def _draw_reader(axes: Axes, place: int, line: Line, bars: Case, dots: Case) -> None:
    rate = line.rates[bars]
    axes.barh(
        place,
        rate.median,
        height=0.72,
        facecolor=_COLOURS[line.contestant.group],
        edgecolor=style.INK,
        hatch="" if line.mixed else _UNMIXED,
    )
    right = rate.median
    if dots != bars and dots in line.rates:
        cold = line.rates[dots].median
        axes.plot(cold, place, "D", markersize=12, color="white", markeredgecolor=style.INK)
        right = max(right, cold)
    said = f"  {rate.median:,.0f}" if rate.median < 10_000 else f"  {rate.median / 1000:,.0f} k"
    said += "" if line.right else "  WRONG ROWS"
    axes.text(right, place, said, fontsize=_LARGE, va="center", weight="bold")


def _draw_limit(axes: Axes, lines: Sequence[Line], case: Case, look: str) -> None:
    """Draw the limit that is read without workers, whatever the case has."""
    wanted = Case(case.cache, 0)
    for line in lines:
        if line.contestant.name == REFERENCE[case.cache] and wanted in line.rates:
            rate = line.rates[wanted].median
            axes.axvline(rate, color=style.INK, linestyle=look, linewidth=2.5)
            said = f"{line.contestant.title}, {case.cache}"
            side = "left" if case.cache == "warm" else "right"
            axes.annotate(
                f" {said} ",
                (rate, 1),
                xycoords=axes.get_xaxis_transform(),
                ha="right" if side == "right" else "center",
                va="bottom",
                fontsize=_LARGE - 3,
            )


def _finish(axes: Axes, names: list[str], title: str) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=_LARGE)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlim(left=0)
    axes.margins(x=0.12)
    axes.xaxis.set_major_formatter(lambda rate, _: f"{rate / 1e6:g} M" if rate else "0")
    axes.tick_params(axis="x", labelsize=_LARGE)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("rows per second", fontsize=_LARGE)
    axes.figure.text(0.015, 0.99, title, fontsize=_LARGER, weight="bold", va="top")


def _legend(axes: Axes, bars: Case, dots: Case) -> None:
    shown: list[Artist] = [
        Patch(facecolor=_COLOURS[group], edgecolor=style.INK, label=words)
        for group, words in _WORDS.items()
    ]
    shown.append(Patch(facecolor="white", edgecolor=style.INK, hatch=_UNMIXED, label="not mixed"))
    if dots != bars:
        shown.append(
            Line2D([], [], linestyle="", marker="D", markersize=12, color="white",
                   markeredgecolor=style.INK, label="from a cold file")
        )  # fmt: skip
    axes.legend(handles=shown, loc="lower right", fontsize=_LARGE, frameon=True, edgecolor="white")
