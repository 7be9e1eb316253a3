"""One number over several runs, or over the rungs of a ladder, as bars."""

from collections.abc import Callable, Mapping, Sequence
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
from helpers.records import Outcome, Run
from helpers.units import format_bytes, format_rate

_NAME_LETTERS = 30  # in each of the two lines that a bar's name may take
_LOG_SPREAD = 1000  # between the shortest and longest bar; beyond it the axis is logarithmic


# What a bar can show: what it is called, the attribute of a Run, and how people read it.
METRICS: dict[str, tuple[str, str, Callable[[float], str]]] = {
    "samples/s": ("samples per second", "samples_per_second", format_rate),
    "read amplification": (
        "bytes read from the disk / bytes used",
        "read_amplification",
        "{:,.3g} x".format,
    ),
    "largest worker": (
        "anonymous memory of the largest worker",
        "largest_worker_bytes",
        format_bytes,
    ),
    "waiting": ("share of the time waiting for data", "waiting_share", "{:.0%}".format),
}


class Bar(NamedTuple):
    """One run's: its name, how long it is, what stands at its end, and its look."""

    title: str
    value: float
    words: str
    look: dict[str, Any]


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
    name, attribute, say = METRICS[metric]
    bars = []
    for run in runs:
        uncounted = attribute == "samples_per_second" and not run.counters.samples
        value = None if uncounted else getattr(run, attribute)
        look, note = _look(run, cures)
        words = ("nothing counted" if value is None else say(value)) + note
        bars.append(Bar(run.title, value or 0.0, words, look))
    told = "; ".join(f"{one_line(bar.title, 100)}: {bar.words}" for bar in bars)
    return Picture(_draw(name, bars), one_line(f"Bars of {name}. {told}.", 5000))


def draw_rungs(rates: Mapping[str, float], what: str) -> Picture:
    """Draw samples per second under several names: a bar for each, the first on top.

    At the end of each stands its rate, and how many times that of the bar above it. `what` is what
    the bars show. Raises ValueError for a rate that is not above zero.
    """
    bars: list[Bar] = []
    for title, rate in rates.items():
        if not rate > 0:
            raise ValueError(f"{title!r} has a rate of {rate}: measure it for longer")
        gain = rate / bars[-1].value if bars else 1
        times = f" ({gain:{'.1f' if gain >= 1 else '.2g'}} times)" if bars else ""
        look = {"color": style.OUTCOME_COLOURS[Outcome.FINISHED], "linewidth": 0}
        bars.append(Bar(title, rate, format_rate(rate) + times, look))
    told = "; ".join(f"{bar.title}: {bar.words}" for bar in bars)
    return Picture(_draw(what, bars), f"Bars of {what}. {told}.")


@style.styled
def _draw(name: str, bars: Sequence[Bar]) -> Figure:
    height = 110 + 52 * max(len(bars), 1)
    figure = style.new_figure(WIDTH, height)
    ax = figure.add_axes((0.37, 50 / height, 0.61, 1 - 95 / height))
    positive = [bar.value for bar in bars if bar.value > 0]
    log = bool(positive) and max(positive) > _LOG_SPREAD * min(positive)
    start = min(positive) / 3 if log else 0.0
    ax.set_xscale("log" if log else "linear")
    for row, bar in enumerate(bars):
        _draw_bar(ax, row, (start, max(bar.value, start)), bar)
    _finish_axes(ax, bars, start, max(positive, default=1.0), log)
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


def _draw_bar(ax: Axes, row: int, ends: tuple[float, float], bar: Bar) -> None:
    ax.barh(row, ends[1] - ends[0], left=ends[0], height=0.62, **bar.look)
    ax.annotate(
        bar.words,
        (ends[1], row),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        fontweight="bold",
        annotation_clip=False,  # it has its size before the axis has its limits
    )


def _finish_axes(ax: Axes, bars: Sequence[Bar], start: float, longest: float, log: bool) -> None:
    """Name the bars, and leave room at the right for the words at the end of the longest."""
    room = max([text.get_window_extent().width for text in ax.texts], default=0) + 10
    part = 1 - min(room / ax.bbox.width, 0.7)  # of the axis, for the bars
    ax.set_xlim(start, start * (longest / start) ** (1 / part) if log else longest / part)
    ax.set_ylim(max(len(bars), 1) - 0.4, -0.6)
    names = [
        "\n".join(wrap(drawable(bar.title), _NAME_LETTERS, max_lines=2, placeholder="\u2026"))
        for bar in bars
    ]
    ax.set_yticks(range(len(bars)), names)
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
