"""One number over several runs, as bars."""

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from textwrap import wrap
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from helpers.drawing import figure_style as style
from helpers.drawing.layout import WIDTH, panel_title
from helpers.drawing.pictures import Picture
from helpers.drawing.words import drawable, one_line
from helpers.records import Run
from helpers.units import format_bytes, format_rate

_NAME_LETTERS = 30  # in each of the two lines that a bar's name may take
_LOG_SPREAD = 1000  # between the shortest and longest bar; beyond it the axis is logarithmic


class Metric(NamedTuple):
    """A number that a run has, its name, and how people read it. None where a run lacks it."""

    name: str
    of: Callable[[Run], float | None]
    words: Callable[[float], str]


METRICS = {
    "samples/s": Metric(
        "samples per second",
        lambda run: run.samples_per_second if run.counters.samples else None,
        format_rate,
    ),
    "read amplification": Metric(
        "bytes read from the disk / bytes used",
        lambda run: run.read_amplification,
        "{:,.3g} x".format,
    ),
    "peak memory": Metric(
        "most anonymous memory", lambda run: run.peak_anonymous_bytes, format_bytes
    ),
    "added memory": Metric(
        "most anonymous memory above the baseline",
        lambda run: run.added_anonymous_bytes,
        format_bytes,
    ),
    "largest worker": Metric(
        "anonymous memory of the largest worker",
        lambda run: run.largest_worker_bytes,
        format_bytes,
    ),
    "waiting": Metric(
        "share of the time waiting for data", lambda run: run.waiting_share, "{:.0%}".format
    ),
    "seconds": Metric("seconds", lambda run: run.seconds, "{:,.3g} s".format),
}


def sweep(runs: Sequence[Run], metric: str = "samples/s", *, cures: Sequence[Run] = ()) -> Picture:
    """Draw one number over several runs: a bar for each, the first on top, its value at its end.

    `metric` is a name in METRICS. The axis is logarithmic when the values spread over more than a
    thousand times. Where `cures` names some of the runs, as in `sweep([eager, mapped],
    cures=[mapped])`, their bars are full and say "cure", and other finished runs' are hollow.
    """
    if metric not in METRICS:
        known = ", ".join(map(repr, METRICS))
        raise ValueError(f"{metric!r} is not a metric: use one of {known}")
    for cure in cures:
        if not any(run is cure for run in runs):
            raise ValueError(
                f"{one_line(repr(cure), 200)} is not among the runs: add it, or drop it"
            )
    chosen = METRICS[metric]
    values = [chosen.of(run) for run in runs]
    looks, notes = zip(*(_look(run, cures) for run in runs), strict=True) if runs else ((), ())
    words = ["nothing counted" if value is None else chosen.words(value) for value in values]
    words = [word + note for word, note in zip(words, notes, strict=True)]
    bars = [f"{one_line(run.title, 100)}: {word}" for run, word in zip(runs, words, strict=True)]
    alt = one_line(f"Bars of {chosen.name}. {'; '.join(bars)}.", 5000)
    return Picture(_draw(runs, chosen.name, values, words, looks), alt)


@style.styled
def _draw(
    runs: Sequence[Run],
    name: str,
    values: Sequence[float | None],
    words: Sequence[str],
    looks: Sequence[dict[str, Any]],
) -> Figure:
    height = 110 + 52 * max(len(runs), 1)
    figure = style.new_figure(WIDTH, height)
    ax = figure.add_axes((0.37, 50 / height, 0.61, 1 - 95 / height))
    positive = [value for value in values if value is not None and value > 0]
    log = bool(positive) and max(positive) > _LOG_SPREAD * min(positive)
    start = min(positive) / 3 if log else 0.0
    ax.set_xscale("log" if log else "linear")
    for row, (value, word, look) in enumerate(zip(values, words, looks, strict=True)):
        _draw_bar(ax, row, (start, max(value or 0.0, start)), word, look)
    _finish_axes(ax, runs, start, max(positive, default=1.0), log)
    panel_title(ax, name + (" (logarithmic)" if log else ""), 6)
    return figure


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
