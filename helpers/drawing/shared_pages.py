"""What a reference count does to a page that processes share, and which sums of memory see it.

All return a Picture of at most 1000 x 480 pixels, made from a lesson's own numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from helpers.drawing import figure_style as style
from helpers.drawing import sketch
from helpers.drawing.layout import WIDTH, panel_title
from helpers.drawing.pictures import Picture
from helpers.drawing.series import Floats
from helpers.drawing.ticks import scale_bytes, scale_time
from helpers.forked_reads import ForkedRead
from helpers.records import Run, Snapshot
from helpers.units import format_bytes

_MOST_OBJECTS = 24  # drawn in a page; there may be more
_BAR = 42  # pixels from one bar to the next
_SUMS: dict[str, dict[str, Any]] = {  # RSS looks as in the live figure; red is for budgets
    "sum of RSS": style.LINES["RSS, summed"],
    "sum of PSS": {"color": "#0072b2", "linestyle": "-"},
    "anonymous,\nmean of the workers": {"color": "#a6611a", "linestyle": "-."},
}


def draw_touched_page(
    objects: int, page_bytes: int, counts: tuple[int, int] = (1, 2), note: str = ""
) -> Picture:
    """Draw one page with its objects: before one of them is touched by a worker, and after.

    `objects` lie on the page; `counts` are the reference count of one of them before and after;
    `note` is written below. Raises ValueError for a number that is not above zero.
    """
    sketch.check_above_zero(objects=objects, page_bytes=page_bytes)
    size, many = format_bytes(page_bytes), f"{objects:,} objects" if objects > 1 else "1 object"
    before, after = counts
    if objects > _MOST_OBJECTS:
        many += f" ({_MOST_OBJECTS} drawn)"
    figure, ax = sketch.new_sketch(290 if note else 260)
    sketch.heading(ax, "Before: one page, shared")
    sketch.heading(ax, "After a look at one object: two pages", 500)
    _draw_processes(ax, 60, ("main", "worker"))
    _draw_page(ax, (20, 130), min(objects, _MOST_OBJECTS), before)
    sketch.arrow(ax, (130, 84), (200, 128))
    sketch.arrow(ax, (350, 84), (280, 128))
    _draw_processes(ax, 530, ("main", "worker"))
    for x, count in ((500, before), (750, after)):
        _draw_page(ax, (x, 130), min(objects, _MOST_OBJECTS), count, wide=230)
        sketch.arrow(ax, (x + 100, 84), (x + 115, 128))
    shared = f"{size} hold {many}"
    copied = f"the count becomes {after}: {size} are copied"
    sketch.write(ax, (20, 226), shared, fontsize=style.SMALL)
    sketch.write(ax, (500, 226), copied, fontsize=style.SMALL)
    if note:
        sketch.write(ax, (20, 256), f"({note})", fontsize=style.SMALL)
    shown = f"{shared}, one with count {before}"
    alt = f"A page that main and a worker share: {shown}. The worker looks at it: {copied}."
    return Picture(figure, alt)


def _draw_processes(ax: Axes, left: float, names: tuple[str, str]) -> None:
    for number, name in enumerate(names):
        sketch.box(ax, (left + number * 220, 48), (140, 36), name)


def _draw_page(ax: Axes, at: sketch.Place, objects: int, count: int, *, wide: float = 440) -> None:
    """Draw a page as a row of objects; the one in the middle shows its reference count."""
    each = wide / objects
    for number in range(objects):
        marked = number == objects // 2
        look = sketch.ANONYMOUS if marked else sketch.PLAIN
        sketch.box(ax, (at[0] + number * each, at[1]), (each, 50), look=look)
    middle = at[0] + (objects // 2 + 0.5) * each
    sketch.write(ax, (middle, at[1] + 56), f"count {count}", ha="center", fontweight="bold")


@style.styled
def draw_sums(run: Run) -> Picture:
    """Draw three sums of one run's memory over time: RSS, PSS, and the mean of its workers.

    Only exact readings are drawn, and only while there are workers: a cheap reading does not see
    a page that stops being shared.
    """
    seen = run.worked_snapshots
    figure = style.new_figure(WIDTH, 380)
    ax = figure.add_axes((0.1, 0.15, 0.58, 0.72))
    panel_title(ax, f"{run.title}: three sums of the same memory", 8)
    if not seen:
        return Picture(figure, f"{run.title}: no worker was seen.")
    seconds = np.array([each.seconds for each in seen])
    curves = dict(zip(_SUMS, _sums(seen), strict=True))
    scale_bytes(ax, 1.1 * max(curve.max() for curve in curves.values()))
    scale_time(ax, max(float(seconds[-1]), 1e-3))
    places: list[float] = []
    told = []
    for name, curve in curves.items():
        look = _SUMS[name] | {"linewidth": 2.4}
        ax.plot(seconds, curve, marker="o", markersize=4, clip_on=False, **look)
        change = f"{format_bytes(curve[0])} to {format_bytes(curve[-1])}"
        told.append(f"{' '.join(name.split())}: {change}")
        _name_curve(ax, places, float(curve[-1]), f"{name}\n{change}", _SUMS[name]["color"])
    return Picture(figure, f"{run.title}. " + "; ".join(told) + ".")


@style.styled
def draw_copied(reads: Mapping[str, ForkedRead]) -> Picture:
    """Draw containers as bars, the smallest first: their size, and what reading them copied.

    `reads` are named; raises ValueError where there are none.
    """
    if not reads:
        raise ValueError("no container to draw: pass a dict of what read_in_a_fork returned")
    ordered = sorted(reads.items(), key=lambda each: each[1].size_bytes)
    figure, ax = sketch.new_sketch(80 + _BAR * len(ordered))
    sketch.heading(ax, "Size of a container, and what a forked reader copied of it (filled)")
    scale = 420 / max(ordered[-1][1].size_bytes, 1)
    sketch.write(ax, (985, 44), "one access", ha="right", fontsize=style.SMALL)
    for number, (name, read) in enumerate(ordered):
        top = 66 + number * _BAR
        sketch.write(ax, (215, top + 14), name, ha="right", va="center")
        size, copied = (scale * max(each, 0) for each in (read.size_bytes, read.copied_bytes))
        sketch.box(ax, (230, top), (size, 28))
        sketch.box(ax, (230, top), (min(copied, size), 28), look=sketch.ANONYMOUS)
        told = f"{read.size_words}, {read.copied_words} copied"
        sketch.write(ax, (240 + size, top + 14), told, va="center", fontsize=style.SMALL)
        look: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": style.SMALL}
        sketch.write(ax, (985, top + 14), read.time_words, **look)
    return Picture(figure, "; ".join(f"{name}: {read}" for name, read in ordered) + ".")


def _sums(seen: Sequence[Snapshot]) -> tuple[Floats, Floats, Floats]:
    workers = max(seen[0].processes - 1, 1)
    return (
        np.array([each.rss_bytes for each in seen], float),
        np.array([each.pss_bytes for each in seen], float),
        np.array([each.workers_bytes / workers for each in seen], float),
    )


def _name_curve(ax: Axes, places: list[float], height: float, words: str, colour: str) -> None:
    """Write a curve's name at its right end, below the names that stand there already."""
    bottom, top = ax.get_ylim()
    step = 0.25 * (top - bottom)
    place = min([height, *(other - step for other in places)])
    places.append(place)
    ax.annotate(
        words,
        (1, place),
        xycoords=("axes fraction", "data"),
        xytext=(10, 0),
        textcoords="offset points",
        va="center",
        color=colour,
        fontweight="bold",
        annotation_clip=False,
    )
