"""One number over several runs, as bars."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from helpers.drawing import figure_style as style
from helpers.drawing.pictures import Picture
from helpers.records import Run
from helpers.units import format_bytes, format_rate

_LOG_SPREAD = 1000  # between the shortest and longest bar; beyond it the axis is logarithmic


@dataclass(frozen=True)
class Metric:
    """A number that a run has, its name, and how people read it. None where a run lacks it."""

    name: str
    of: Callable[[Run], float | None]
    words: Callable[[float], str]


def _rate(run: Run) -> float | None:
    return run.samples_per_second if run.counters.samples else None


METRICS = {
    "samples/s": Metric("samples per second", _rate, format_rate),
    "read amplification": Metric(
        "bytes read from the disk / bytes used",
        lambda run: run.read_amplification,
        lambda ratio: f"{ratio:,.3g} x",
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
        "share of the time waiting for data",
        lambda run: run.waiting_share,
        lambda share: f"{share:.0%}",
    ),
    "seconds": Metric("seconds", lambda run: run.seconds, lambda seconds: f"{seconds:,.3g} s"),
}


@style.styled
def draw_sweep(
    runs: Sequence[Run], metric: str | Metric = "samples/s", ax: Axes | None = None
) -> Axes:
    """Draw one bar for each run, the first on top, with its value at the bar's end.

    `metric` is one of METRICS or a Metric of your own. The axis is logarithmic when the values
    spread over more than 30 times.
    """
    chosen = find_metric(metric)
    ax = _new_figure(len(runs)).axes[0] if ax is None else ax
    values = [chosen.of(run) for run in runs]
    positive = [value for value in values if value is not None and value > 0]
    log = bool(positive) and max(positive) > _LOG_SPREAD * min(positive)
    start = min(positive) / 3 if log else 0.0
    ax.set_xscale("log" if log else "linear")
    for row, (run, value) in enumerate(zip(runs, values, strict=True)):
        _draw_bar(ax, row, run, value, start, _words(chosen, value))
    _finish_axes(ax, runs, start, max(positive, default=1.0), log)
    ax.set_title(chosen.name + (" (logarithmic)" if log else ""))
    return ax


def sweep(runs: Sequence[Run], metric: str | Metric = "samples/s") -> Picture:
    """Draw one number over several runs, as a picture with its numbers in words."""
    figure = _new_figure(len(runs))
    draw_sweep(runs, metric, figure.axes[0])
    chosen = find_metric(metric)
    bars = "; ".join(f"{run.title}: {_words(chosen, chosen.of(run))}" for run in runs)
    return Picture(figure, f"Bars of {chosen.name}. {bars}.")


def find_metric(metric: str | Metric) -> Metric:
    """Return the metric of that name. Raises ValueError when there is none."""
    if isinstance(metric, Metric):
        return metric
    if metric not in METRICS:
        known = ", ".join(repr(name) for name in METRICS)
        raise ValueError(f"{metric!r} is not a metric: use one of {known}, or make a Metric")
    return METRICS[metric]


def _words(metric: Metric, value: float | None) -> str:
    return "nothing counted" if value is None else metric.words(value)


def _draw_bar(ax: Axes, row: int, run: Run, value: float | None, start: float, words: str) -> None:
    end = max(value or 0.0, start)
    ax.barh(
        row,
        end - start,
        left=start,
        height=0.62,
        color=style.OUTCOME_COLOURS[run.outcome],
        hatch="" if run.finished else "//",
        edgecolor="white",
        linewidth=0,
    )
    ending = "" if run.finished else f" ({run.outcome})"
    ax.annotate(
        words + ending,
        (end, row),
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
    names = ["\n".join(wrap(run.title, 34, max_lines=2, placeholder="\u2026")) for run in runs]
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
    figure = style.new_figure(style.WIDTH, height)
    figure.add_axes((0.37, 50 / height, 0.61, 1 - 95 / height))
    return figure
