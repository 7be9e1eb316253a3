"""Memory over time, stacked by kind, against its budget line.

What stands still while an experiment runs (`frame_*`) is apart from what moves, because the live
view draws the first once and the second twice a second.
"""

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D

from helpers.drawing import figure_style as style
from helpers.drawing.layout import TITLE_PAD, panel_title
from helpers.drawing.legend import name_kinds
from helpers.drawing.marks import (
    guessed_bytes,
    label,
    mark_end,
    mark_guess,
    name_end,
    top_with_guess,
)
from helpers.drawing.series import Floats, Memory, band, memory_curves, thin
from helpers.drawing.ticks import scale_bytes, scale_time
from helpers.records import Run
from helpers.units import format_bytes

_TOO_SHORT = 0.12  # a run that fills less than this part of the time axis is drawn enlarged as well


@style.styled
def draw_memory(run: Run, ax: Axes | None = None) -> Axes:
    """Draw memory over time, stacked by kind, against the budget line, with ending and guess."""
    ax = style.new_axes() if ax is None else ax
    curves = fill_memory(ax, run)
    name_end(ax, run)
    name_kinds(ax, list(thin_lines(curves)), run.enforced_by)
    panel_title(ax, memory_title(run), TITLE_PAD)
    return ax


def fill_memory(ax: Axes, run: Run, top: float = 0, end: float = 0) -> Memory:
    """Draw all that stands in a memory panel, but no words around it; return its curves.

    `top` (bytes) and `end` (seconds) widen the axes, so that several panels can share them.
    """
    curves, guess = memory_curves(thin(run.snapshots), run.seconds), guessed_bytes(run.guess)
    end = max(end, run.seconds)
    free_side = 0 if run.seconds > end / 2 else 1  # where the curves leave room for words
    top = max(top, memory_top(curves, run.budget_bytes, guess))
    frame_memory(ax, run.budget_bytes, run.enforced_by, top, end, free_side)
    Stack(ax, thin_lines(curves)).show(curves)
    mark_end(ax, run, height=curves.last)
    if run.snapshots and run.seconds < _TOO_SHORT * end:
        _enlarge(ax, run, curves)
    if guess is not None:
        mark_guess(ax, guess, format_bytes(guess), free_side)
    if run.baseline_anonymous_bytes >= 0.03 * top:  # lower it cannot be told from the axis
        ax.axhline(
            run.baseline_anonymous_bytes, color="white", linewidth=1.2, linestyle=":", zorder=3
        )
        label(ax, "Python and torch", run.baseline_anonymous_bytes, style.INK, discreet=True)
    return curves


def memory_title(run: Run) -> str:
    """Return what stands above a run's memory panel."""
    measure = "" if run.measure == "PSS" else f" ({run.measure})"
    if not run.snapshots:
        return f"Memory{measure}: nothing sampled"
    return f"Memory{measure}: at most {format_bytes(run.peak_anonymous_bytes)} anonymous"


def memory_top(curves: Memory, budget_bytes: int, guess_bytes: float | None = None) -> float:
    """Return an upper end of the memory axis: it shows curves, budget and guess."""
    charged = 0 if curves.charged is None else float(np.nanmax(curves.charged))
    top = max(1.06 * max(curves.top, charged), 1.2 * budget_bytes, 1)  # room for its words
    top = top_with_guess(top, guess_bytes, 0.18)
    # A sum of RSS may be many times the memory that there is: it may leave the panel.
    return max(top, min(1.06 * curves.rss.max(), 1.3 * top)) if curves.rss_misleads else top


def frame_memory(
    ax: Axes, budget_bytes: int, enforced_by: str, top: float, end: float, side: float = 0
) -> Line2D:
    """Draw what stands still: the axes, and the budget line, which is returned."""
    scale_bytes(ax, top)
    scale_time(ax, max(end, 1e-3))
    holder = f" ({enforced_by.split()[0]})" if enforced_by else ""  # the kernel, or the watcher
    label(ax, f"budget {format_bytes(budget_bytes)}{holder}", budget_bytes, style.BUDGET, side=side)
    return ax.axhline(budget_bytes, **style.BUDGET_LINE)


class Stack:
    """The moving part of a memory panel: made once, shown anew as often as there are new curves."""

    def __init__(self, ax: Axes, lines: Iterable[str]) -> None:
        self.kinds = [PolyCollection([], **look, linewidth=0) for look in style.KINDS.values()]
        for kind in self.kinds:
            ax.add_collection(kind, autolim=False)
        self.lines = {name: ax.plot([], [], **style.LINES[name])[0] for name in lines}

    def show(self, curves: Memory) -> None:
        """Take the shape of these curves."""
        floor = np.zeros_like(curves.seconds)
        for kind, height in zip(self.kinds, curves.kinds, strict=True):
            kind.set_verts(band(curves.seconds, floor, floor + height))
            floor = floor + height
        now, nothing = thin_lines(curves), np.full_like(floor, np.nan)
        for name, line in self.lines.items():
            line.set_data(curves.seconds, now.get(name, nothing))


def thin_lines(curves: Memory) -> dict[str, Floats]:
    """Return the RSS sum where it misleads, and what the cgroup charges where there is one."""
    lines = {}
    if curves.charged is not None:
        lines["charged by the kernel"] = curves.charged
    if curves.rss_misleads:
        lines["RSS, summed"] = curves.rss
    return lines


def _enlarge(ax: Axes, run: Run, curves: Memory) -> None:
    """Draw a run again in a corner of its panel: beside a long one it would be a mere stroke."""
    title, ticks = 24 / ax.bbox.height, 30 / ax.bbox.height  # what stands above and below it
    budget = run.budget_bytes / ax.get_ylim()[1]  # the corner lies on the roomier side of its line
    low, high = (ticks, budget - title) if budget > 0.55 else (budget + title + ticks, 1 - title)
    corner = ax.inset_axes((0.5, low, 0.42, high - low), zorder=5)
    scale_bytes(corner, memory_top(curves, run.budget_bytes))
    scale_time(corner, run.seconds)
    Stack(corner, ()).show(curves)
    corner.axhline(run.budget_bytes, **style.BUDGET_LINE)
    mark_end(corner, run, curves.last)
    corner.set_title("the same, enlarged", fontsize=style.SMALL, fontweight="normal", pad=3)
    corner.tick_params(labelsize=style.SMALL)
    corner.set_yticks([])
    corner.spines[:].set_visible(True)
