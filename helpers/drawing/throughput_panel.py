"""Samples per second over time, above a strip with the share of time spent waiting for data."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D

from helpers.drawing import figure_style as style
from helpers.drawing.layout import TITLE_PAD, panel_title
from helpers.drawing.marks import guessed_rate, mark_end, mark_guess, name_end, top_with_guess
from helpers.drawing.series import Throughput, band, last_second, thin, throughput_curves
from helpers.drawing.ticks import scale_rate, scale_time
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
    strip = add_strip(ax, max(end, last_second(seen)))
    curves = fill_rate(ax, seen, top, end)
    if curves is None:
        ax.set_yticks([])
        strip.set_visible(False)
    else:
        ax.tick_params(labelbottom=False)
        Waiting(strip).show(curves)
    if isinstance(seen, Run) and seen.counters.samples:
        name_end(ax, seen)
        name_strip(strip, f"waiting for data: {seen.waiting_share:.0%} of the time")
    panel_title(ax, rate_title(seen), TITLE_PAD)
    return ax


def fill_rate(
    ax: Axes, seen: Run | Sequence[Snapshot], top: float, end: float
) -> Throughput | None:
    """Draw all that stands in a panel of rates, but no words around it. None: nothing counted."""
    run, snapshots = (seen, seen.snapshots) if isinstance(seen, Run) else (None, seen)
    curves = throughput_curves(thin(snapshots))
    guess = guessed_rate(run.guess) if run else None
    frame_rate(ax, max(top, rate_top(curves, guess)), max(end, last_second(seen)))
    counted = bool(snapshots) and snapshots[-1].counters.samples > 0
    if counted:
        new_curve(ax).set_data(curves.seconds, curves.rate)
    else:
        ended = run is not None and not run.finished
        why = "No batch came before it ended." if ended else "Its loop does not use track(loader)."
        ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=style.FAINT)
    if guess is not None:
        mark_guess(ax, guess, format_rate(guess))
    if run and counted:
        mark_end(ax, run)
    return curves if counted else None


def rate_title(seen: Run | Sequence[Snapshot]) -> str:
    """Return what stands above a panel of rates."""
    if isinstance(seen, Run) and seen.counters.samples:
        return f"Throughput: {format_rate(seen.samples_per_second)}"
    return "Throughput, samples/s"


def rate_top(curves: Throughput, guess: float | None = None) -> float:
    """Return an upper end of the throughput axis that shows the curve and the guess."""
    return top_with_guess(1.15 * curves.top or guess or 0, guess, 0.4)


def frame_rate(ax: Axes, top: float, end: float) -> None:
    """Draw what stands still: the axes."""
    scale_rate(ax, top if top > 0 else 1)
    scale_time(ax, max(end, 1e-3))


def new_curve(ax: Axes) -> Line2D:
    """Return the curve of the rate, still empty."""
    curve: Line2D = ax.plot([], [], color=style.RATE, linewidth=2.2)[0]
    return curve


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
