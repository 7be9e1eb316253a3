"""Memory over time, stacked by kind, against its budget line.

What stands still while an experiment runs (`frame_*`) is apart from what moves, because the live
view draws the first once and the second twice a second.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from helpers import figure_style as style
from helpers.marks import guessed_bytes, label, mark_end, mark_guess
from helpers.records import Run, Sample
from helpers.series import Memory, last_second, memory_curves, thin
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
    curves = memory_curves(thin(samples))
    guess = guessed_bytes(run.guess) if run else None
    end = max(end, last_second(seen))
    free_side = 0 if last_second(seen) > end / 2 else 1  # where the curves leave room for words
    frame_memory(ax, budget, max(top, memory_top(curves, budget, guess)), end, free_side)
    _, lines = draw_stack(ax, curves)
    if samples:
        _mark_baseline(ax, samples[0].anonymous_bytes)
    if guess is not None:
        mark_guess(ax, guess, format_bytes(guess), 1 - free_side)
    if run:
        mark_end(ax, run, height=curves.stack[-1] if samples else None)
    name_kinds(ax, list(lines))
    ax.set_title(_title(run) if run else "Memory", pad=style.TITLE_PAD)
    return ax


def _title(run: Run) -> str:
    measure = "" if run.measure == "PSS" else f" ({run.measure})"
    return f"Memory{measure}: at most {format_bytes(run.peak_anonymous_bytes)} anonymous"


def memory_top(curves: Memory, budget_bytes: int, guess_bytes: float | None = None) -> float:
    """Return an upper end of the memory axis that shows curves, budget and guess."""
    highest = max([curves.top, *(float(np.nanmax(line)) for line in _lines(curves).values())])
    return max(highest * 1.06, budget_bytes * 1.14, (guess_bytes or 0) * 1.12, 1)


def frame_memory(
    ax: Axes, budget_bytes: int, top: float, end: float, side: float = 0
) -> list[Artist]:
    """Draw what stands still: the axes and the budget line, which is returned with its label."""
    style.scale_bytes(ax, top)
    style.scale_time(ax, max(end, 1e-3))
    line = ax.axhline(
        budget_bytes, color=style.BUDGET, linewidth=2, linestyle=(0, (6, 2)), zorder=4
    )
    words = f"budget {format_bytes(budget_bytes)}"
    return [line, label(ax, words, (side, budget_bytes), style.BUDGET)]


def draw_stack(ax: Axes, curves: Memory) -> tuple[list[Artist], dict[str, Artist]]:
    """Draw the stack of kinds and, over it, the thin lines. Return both, the lines by name."""
    floor = 0 * curves.seconds
    stack = []
    for kind, height in curves.by_kind().items():
        fill = ax.fill_between(
            curves.seconds, floor, floor + height, **style.KINDS[kind], linewidth=0, zorder=2
        )
        stack.append(fill)
        floor = floor + height
    lines = {
        name: ax.plot(curves.seconds, values, **style.LINES[name], zorder=3)[0]
        for name, values in _lines(curves).items()
    }
    return stack, lines


def _lines(curves: Memory) -> dict[str, Any]:
    """Return what deserves a line: the RSS sum where it misleads, what the cgroup charges."""
    lines = {}
    if curves.rss.size and curves.rss.max() > 1.1 * curves.top:
        lines["RSS, summed"] = curves.rss
    if curves.charged is not None:
        lines["charged by the kernel"] = curves.charged
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
