"""Samples per second over time, above a strip with the share of time spent waiting for data."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from helpers.drawing import figure_style as style
from helpers.drawing.layout import TITLE_PAD, panel_title
from helpers.drawing.marks import guessed_rate, mark_end, mark_guess, name_end, top_with_guess
from helpers.drawing.series import Throughput, band, thin, throughput_curves
from helpers.drawing.ticks import scale_rate, scale_time
from helpers.records import Run
from helpers.units import format_rate

_STRIP = (0, -0.5, 1, 0.24)  # x, y, width, height, in parts of the panel above it


@style.styled
def draw_throughput(run: Run, ax: Axes | None = None) -> Axes:
    """Draw samples per second and, in a strip below, the share of time waiting for data.

    Both come from the counters of `track`. Where nothing was counted the panel says so.
    """
    ax = style.new_axes() if ax is None else ax
    strip = add_strip(ax, run.seconds)
    curves = fill_rate(ax, run)
    if run.counters.samples:
        ax.tick_params(labelbottom=False)
        Waiting(strip).show(curves)
        name_end(ax, run)
        name_strip(strip, f"waiting for data: {run.waiting_share:.0%} of the time")
    else:
        ax.set_yticks([])
        strip.set_visible(False)
    panel_title(ax, rate_title(run), TITLE_PAD)
    return ax


def fill_rate(ax: Axes, run: Run, top: float = 0, end: float = 0) -> Throughput:
    """Draw all that stands in a panel of rates, but no words around it; return its curves.

    `top` (samples/s) and `end` (seconds) widen the axes, so that several panels can share them.
    """
    curves, guess = throughput_curves(thin(run.snapshots)), guessed_rate(run.guess)
    frame_rate(ax, max(top, rate_top(curves, guess)), max(end, run.seconds))
    if run.counters.samples:
        ax.plot(curves.seconds, curves.rate, **style.RATE_LINE)
    else:
        why = "Its loop does not use track(loader)."
        why = why if run.finished else "No batch came before it ended."
        ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=style.FAINT)
    if guess is not None:
        mark_guess(ax, guess, format_rate(guess))
    if run.counters.samples:
        mark_end(ax, run)
    return curves


def rate_title(run: Run) -> str:
    """Return what stands above a panel of rates."""
    known = f": {format_rate(run.samples_per_second)}" if run.counters.samples else ", samples/s"
    return f"Throughput{known}"


def rate_top(curves: Throughput, guess: float | None = None) -> float:
    """Return an upper end of the throughput axis that shows the curve and the guess."""
    return top_with_guess(1.15 * curves.top or guess or 0, guess, 0.4)


def frame_rate(ax: Axes, top: float, end: float) -> None:
    """Draw what stands still: the axes."""
    scale_rate(ax, top if top > 0 else 1)
    scale_time(ax, max(end, 1e-3))


def add_strip(ax: Axes, end: float) -> Axes:
    """Return new Axes below a panel, for the share of time waiting."""
    strip = ax.inset_axes(_STRIP)
    strip.set_label("waiting")
    scale_time(strip, max(end, 1e-3))
    strip.set_ylim(0, 1)
    strip.set_yticks([0, 1], ["0", "100 %"])
    name_strip(strip, "share of the time waiting for data")
    return strip


def name_strip(strip: Axes, words: str) -> None:
    """Write above the strip what it shows."""
    strip.set_title(words, fontsize=style.TEXT, fontweight="normal", pad=4)


class Waiting:
    """The area in a strip: made once, shown anew as often as needed."""

    def __init__(self, strip: Axes) -> None:
        self.area = PolyCollection([], **style.WAITING, linewidth=0)
        strip.add_collection(self.area, autolim=False)

    def show(self, curves: Throughput) -> None:
        """Take the shape of these curves."""
        share = np.nan_to_num(curves.waiting)
        self.area.set_verts(band(curves.seconds, np.zeros_like(share), share))
