"""Memory over time, stacked by kind, against its budget line.

What stands still while an experiment runs (`frame_*`) is apart from what moves, because the live
view draws the first once and the second twice a second.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from helpers import figure_style as style
from helpers.marks import guessed_bytes, label, mark_end, mark_guess
from helpers.records import Run, Sample
from helpers.series import Floats, Memory, band, last_second, memory_curves, thin
from helpers.units import format_bytes


@style.styled
def draw_memory(
    seen: Run | Sequence[Sample],
    budget_bytes: int | None = None,
    ax: Axes | None = None,
    *,
    top: float = 0,
    end: float = 0,
) -> Axes:
    """Draw memory over time, stacked by kind, against the budget line.

    Takes a Run (its own budget, ending and guess are drawn) or samples with a budget in bytes.
    `top` (bytes) and `end` (seconds) widen the axes, so that several panels can share them.
    """
    ax = style.new_axes() if ax is None else ax
    run, samples = (seen, seen.samples) if isinstance(seen, Run) else (None, seen)
    budget = budget_bytes or (run.budget_bytes if run else 0)
    curves = memory_curves(thin(samples), last_second(seen))
    guess = guessed_bytes(run.guess) if run else None
    end = max(end, last_second(seen))
    free_side = 0 if last_second(seen) > end / 2 else 1  # where the curves leave room for words
    frame_memory(ax, budget, max(top, memory_top(curves, budget, guess)), end, free_side)
    Stack(ax, line_names(curves)).show(curves)
    if samples:
        _mark_baseline(ax, samples[0].anonymous_bytes)
    if guess is not None:
        mark_guess(ax, guess, format_bytes(guess), 1 - free_side)
    if run:
        mark_end(ax, run, height=curves.stack[-1] if samples else None)
    name_kinds(ax, line_names(curves))
    ax.set_title(_title(run) if run else "Memory", pad=style.TITLE_PAD)
    return ax


def _title(run: Run) -> str:
    measure = "" if run.measure == "PSS" else f" ({run.measure})"
    if not run.samples:
        return f"Memory{measure}: nothing sampled"
    return f"Memory{measure}: at most {format_bytes(run.peak_anonymous_bytes)} anonymous"


def memory_top(curves: Memory, budget_bytes: int, guess_bytes: float | None = None) -> float:
    """Return an upper end of the memory axis that shows curves, budget and guess."""
    highest = max([curves.top, *(float(np.nanmax(line)) for line in _lines(curves).values())])
    return max(highest * 1.06, budget_bytes * 1.14, (guess_bytes or 0) * 1.12, 1)


def frame_memory(ax: Axes, budget_bytes: int, top: float, end: float, side: float = 0) -> Line2D:
    """Draw what stands still: the axes, and the budget line, which is returned."""
    style.scale_bytes(ax, top)
    style.scale_time(ax, max(end, 1e-3))
    label(ax, f"budget {format_bytes(budget_bytes)}", (side, budget_bytes), style.BUDGET)
    return ax.axhline(
        budget_bytes, color=style.BUDGET, linewidth=2, linestyle=(0, (6, 2)), zorder=4
    )


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
        for name, line in self.lines.items():
            line.set_data(curves.seconds, _lines(curves).get(name, np.full_like(floor, np.nan)))


def line_names(curves: Memory) -> list[str]:
    """Return which thin lines these curves deserve."""
    return list(_lines(curves))


def _lines(curves: Memory) -> dict[str, Floats]:
    """Return the RSS sum where it misleads, and what the cgroup charges where there is one."""
    lines = {}
    if curves.charged is not None:
        lines["charged by the kernel"] = curves.charged
    if curves.rss_misleads:
        lines["RSS, summed"] = curves.rss
    return lines


def name_kinds(ax: Axes, lines: Sequence[str]) -> None:
    """Name below the panel the kinds, in the order in which they are stacked, and the lines."""
    kinds = [Patch(**look, linewidth=0, label=kind) for kind, look in style.KINDS.items()]
    ax.legend(
        handles=[*kinds, *(Line2D([], [], **style.LINES[name], label=name) for name in lines)],
        loc="upper left",
        bbox_to_anchor=(-0.02, -0.1),
        ncols=5 if _room(ax) > 800 else 3,
        handlelength=1.4,
        columnspacing=1.2,
        borderpad=0.2,
    )


def _room(ax: Axes) -> float:
    """Return the pixels from the panel's left edge to the figure's right."""
    return float(ax.figure.bbox.width - ax.bbox.x0)


def _mark_baseline(ax: Axes, baseline_bytes: int) -> None:
    if baseline_bytes < 0.03 * ax.get_ylim()[1]:
        return  # too low to tell apart from the axis
    ax.axhline(baseline_bytes, color="white", linewidth=1.2, linestyle=":", zorder=3)
    label(ax, "Python and torch", (0, baseline_bytes), style.INK, above=False)
