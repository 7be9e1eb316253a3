"""The numbers that a sweep can draw."""

from collections.abc import Callable
from dataclasses import dataclass

from helpers.drawing.words import one_line
from helpers.records import Run
from helpers.units import format_bytes, format_rate


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


def find_metric(metric: str | Metric) -> Metric:
    """Return the metric of that name. Raises ValueError when there is none."""
    if isinstance(metric, Metric):
        return metric
    if metric not in METRICS:
        known = ", ".join(repr(name) for name in METRICS)
        raise ValueError(f"{metric!r} is not a metric: use one of {known}, or make a Metric")
    return METRICS[metric]


def metric_words(metric: Metric, value: float | None) -> str:
    """Return the number as people read it."""
    return "nothing counted" if value is None else one_line(metric.words(value), 30)
