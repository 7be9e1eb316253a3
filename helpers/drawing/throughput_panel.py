"""Samples per second over time, above a strip with the share of time spent waiting for data."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from helpers.drawing import figure_style as style
from helpers.drawing.marks import guessed_rate, mark_end, mark_guess
from helpers.drawing.series import Throughput, band, last_second, thin, throughput_curves
from helpers.records import Run, Snapshot
from helpers.units import format_rate

_STRIP = (0, -0.5, 1, 0.24)  # x, y, width, height, in parts of the panel above it


@style.styled
def draw_throughput(
    seen: Run | Sequence[Snapshot], ax: Axes | None = None, *, top: float = 0, end: float = 0
) -> Axes:
    """Draw samples per second and, in a strip below, the share of time waiting for data.

    Both come from the counters of `track`. Where nothing was counted the panel says so.
    `top` (samples/s) and `end` (seconds) widen the axes, so that several panels can share them.
    """
    ax = style.new_axes() if ax is None else ax
    run, snapshots = (seen, seen.snapshots) if isinstance(seen, Run) else (None, seen)
    curves = throughput_curves(thin(snapshots))
    guess = guessed_rate(run.guess) if run else None
    top = max(top, rate_top(curves, guess))
    strip = frame_throughput(ax, top, max(end, last_second(seen)))
    if snapshots and snapshots[-1].counters.samples:
        RateAndWaiting(ax, strip).show(curves)
    else:
        _say_why_empty(ax, strip, run)
    if guess is not None:
        mark_guess(ax, guess, format_rate(guess))
    if run and run.counters.samples:
        mark_end(ax, run)
        ax.set_title(f"Throughput: {format_rate(run.samples_per_second)}", pad=style.TITLE_PAD)
        name_strip(strip, f"waiting for data: {run.waiting_share:.0%} of the time")
    return ax


def rate_top(curves: Throughput, guess: float | None = None) -> float:
    """Return an upper end of the throughput axis that shows the curve and the guess."""
    return max(1.15 * curves.top, 1.3 * (guess or 0))  # a guess needs room for its words


def frame_throughput(ax: Axes, top: float, end: float) -> Axes:
    """Draw what stands still: the axes of the rate and of the strip. Return the strip."""
    strip = ax.inset_axes(_STRIP)
    strip.set_label("waiting")
    style.scale_rate(ax, top if top > 0 else 1)
    for axes in (ax, strip):
        style.scale_time(axes, max(end, 1e-3))
    ax.tick_params(labelbottom=False)
    ax.set_title("Throughput, samples/s", pad=style.TITLE_PAD)
    strip.set_ylim(0, 1)
    strip.set_yticks([0, 1], ["0", "100 %"])
    name_strip(strip, "share of the time waiting for data")
    return strip


def name_strip(strip: Axes, words: str) -> None:
    """Write above the strip what it shows."""
    strip.set_title(words, fontsize=13, fontweight="normal", pad=4)


class RateAndWaiting:
    """The moving part of a throughput panel: made once, shown anew as often as needed."""

    def __init__(self, ax: Axes, strip: Axes) -> None:
        self.rate = ax.plot([], [], color=style.RATE, linewidth=2.2)[0]
        self.waiting = PolyCollection([], **style.WAITING, linewidth=0)
        strip.add_collection(self.waiting, autolim=False)

    def show(self, curves: Throughput) -> None:
        """Take the shape of these curves."""
        self.rate.set_data(curves.seconds, curves.rate)
        share = np.nan_to_num(curves.waiting)
        self.waiting.set_verts(band(curves.seconds, np.zeros_like(share), share))


def _say_why_empty(ax: Axes, strip: Axes, run: Run | None) -> None:
    """Say in one line why there is no curve, and take the axes' numbers away."""
    ended = run is not None and not run.finished
    words = "No batch came before it ended." if ended else "Its loop does not use track(loader)."
    ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", color=style.FAINT)
    ax.set_yticks([])
    ax.tick_params(labelbottom=True)
    strip.set_visible(False)
