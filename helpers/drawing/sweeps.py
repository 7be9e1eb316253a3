"""One number over several runs, as bars."""

from collections.abc import Sequence
from math import ceil, floor, log10
from textwrap import wrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from helpers.drawing import figure_style as style
from helpers.drawing.layout import WIDTH, panel_title
from helpers.drawing.metrics import Metric, find_metric, metric_words
from helpers.drawing.pictures import Picture
from helpers.drawing.words import drawable, one_line
from helpers.records import Run

_NAME_LETTERS = 30  # in each of the two lines that a bar's name may take
_LOG_SPREAD = 1000  # between the shortest and longest bar; beyond it the axis is logarithmic


@style.styled
def draw_sweep(
    runs: Sequence[Run],
    metric: str | Metric = "samples/s",
    ax: Axes | None = None,
    *,
    cures: Sequence[Run] = (),
) -> Axes:
    """Draw one bar for each run, the first on top, with its value at the bar's end.

    `metric` is one of METRICS or a Metric of your own. The axis is logarithmic when the values
    spread over more than a thousand times. Where `cures` names some of the runs, their bars are
    full and say "cure", and those of other finished runs are hollow.
    """
    _check_cures(runs, cures)
    chosen = find_metric(metric)
    ax = _new_figure(len(runs)).axes[0] if ax is None else ax
    values = [chosen.of(run) for run in runs]
    positive = [value for value in values if value is not None and value > 0]
    log = bool(positive) and max(positive) > _LOG_SPREAD * min(positive)
    start = min(positive) / 3 if log else 0.0
    ax.set_xscale("log" if log else "linear")
    for row, (run, value) in enumerate(zip(runs, values, strict=True)):
        looks, note = _look(run, cures)
        words = drawable(metric_words(chosen, value)) + note
        _draw_bar(ax, row, (start, max(value or 0.0, start)), words, looks)
    _finish_axes(ax, runs, start, max(positive, default=1.0), log)
    panel_title(ax, drawable(chosen.name, 60) + (" (logarithmic)" if log else ""), 6)
    return ax


def sweep(
    runs: Sequence[Run], metric: str | Metric = "samples/s", *, cures: Sequence[Run] = ()
) -> Picture:
    """Draw one number over several runs, as a picture with its numbers in words.

    `cures` are those of the runs that are to stand out: `sweep([eager, mapped], cures=[mapped])`.
    """
    figure = _new_figure(len(runs))
    draw_sweep(runs, metric, figure.axes[0], cures=cures)
    chosen = find_metric(metric)
    bars = [
        f"{one_line(run.title, 100)}: {metric_words(chosen, chosen.of(run))}{_look(run, cures)[1]}"
        for run in runs
    ]
    return Picture(
        figure, one_line(f"Bars of {one_line(chosen.name, 60)}. {'; '.join(bars)}.", 5000)
    )


def _check_cures(runs: Sequence[Run], cures: Sequence[Run]) -> None:
    for cure in cures:
        if not any(run is cure for run in runs):
            raise ValueError(
                f"{one_line(repr(cure), 200)} is not among the runs: add it, or drop it"
            )


def _look(run: Run, cures: Sequence[Run]) -> tuple[dict[str, Any], str]:
    """Return how a run's bar looks, and what is noted at its end."""
    colour = style.OUTCOME_COLOURS[run.outcome]
    cure = any(run is one for one in cures)
    note = " (cure)" if cure else "" if run.finished else f" ({run.outcome})"
    if run.finished and cures and not cure:
        return {"color": "white", "edgecolor": colour, "linewidth": 2}, note
    hatch = "" if run.finished else "//"
    return {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}, note


def _draw_bar(
    ax: Axes, row: int, ends: tuple[float, float], words: str, look: dict[str, Any]
) -> None:
    ax.barh(row, ends[1] - ends[0], left=ends[0], height=0.62, **look)
    ax.annotate(
        words,
        (ends[1], row),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        fontweight="bold",
        annotation_clip=False,  # it has its size before the axis has its limits
    )


def _finish_axes(ax: Axes, runs: Sequence[Run], start: float, longest: float, log: bool) -> None:
    """Name the bars, and leave room at the right for the words at the end of the longest."""
    room = max([text.get_window_extent().width for text in ax.texts], default=0) + 10
    part = 1 - min(room / ax.bbox.width, 0.7)  # of the axis, for the bars
    ax.set_xlim(start, start * (longest / start) ** (1 / part) if log else longest / part)
    ax.set_ylim(max(len(runs), 1) - 0.4, -0.6)
    names = [
        "\n".join(wrap(drawable(run.title), _NAME_LETTERS, max_lines=2, placeholder="\u2026"))
        for run in runs
    ]
    ax.set_yticks(range(len(runs)), names)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_minor_locator(NullLocator())
    if log:
        powers = range(ceil(log10(start)), floor(log10(ax.get_xlim()[1])) + 1)
        ticks = [10.0**power for power in powers[:: 1 + len(powers) // 6]]
        ax.set_xticks(ticks, [f"{tick:,.15g}" for tick in ticks])
    else:
        ax.set_xticks([])  # every bar carries its value
        ax.spines["bottom"].set_visible(False)


@style.styled
def _new_figure(bars: int) -> Figure:
    """Return a figure with one panel that leaves room for so many bars and their names."""
    height = 110 + 52 * max(bars, 1)
    figure = style.new_figure(WIDTH, height)
    figure.add_axes((0.37, 50 / height, 0.61, 1 - 95 / height))
    return figure
