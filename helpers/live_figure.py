"""The figure that moves: axes drawn once, and curves drawn over them twice a second.

Drawing a whole figure costs several times what copying a saved background and drawing the curves
over it costs. The background is drawn again only when an axis has to grow, and it grows in steps.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from helpers import figure_style as style
from helpers.memory_panel import draw_stack, frame_memory, memory_top, name_kinds
from helpers.png import encode_png
from helpers.records import Sample
from helpers.series import Memory, Thinned, Throughput, memory_curves, throughput_curves
from helpers.throughput_panel import draw_rate, frame_throughput, rate_top
from helpers.units import format_bytes, format_rate

_FIRST_END = 10.0  # seconds on the time axis at first
_GROWTH = 1.5  # an axis that has become too short gets so many times what is needed


class LiveFigure:
    """Draws a running experiment, frame by frame, each as a PNG file."""

    size = (style.WIDTH, style.ROW_HEIGHT)  # pixels of every frame

    def __init__(self, title: str, budget_bytes: int, enforced_by: str) -> None:
        self._title, self._budget = title, budget_bytes
        self._subtitle = f"running; its budget is held by the {enforced_by}"
        self._thinned, self._seen = Thinned(), 0
        self._end = self._memory_top = self._rate_top = 0.0
        self.backgrounds_drawn = 0

    @style.styled
    def frame(self, samples: Sequence[Sample]) -> bytes:
        """Return a picture of all samples so far. Reads only those that are new since last time."""
        self._thinned.add(samples[self._seen :])
        self._seen = len(samples)
        memory = memory_curves(self._thinned.samples)
        throughput = throughput_curves(self._thinned.samples)
        if self._grow(memory, throughput):
            self._draw_background(with_charged=memory.charged is not None)
        self._canvas.restore_region(self._background)
        self._draw_memory(memory)
        self._draw_throughput(throughput, samples[-1] if samples else None)
        return encode_png(np.asarray(self._canvas.buffer_rgba()))

    def _grow(self, memory: Memory, throughput: Throughput) -> bool:
        """Make axes longer that have become too short, and say whether any was."""
        end = float(memory.seconds[-1]) if memory.seconds.size else 0.0
        top, rate = memory_top(memory, self._budget), rate_top(throughput)
        before = (self._end, self._memory_top, self._rate_top)
        if end > self._end or not self._end:
            self._end = max(_FIRST_END, _GROWTH * end)
        if top > self._memory_top:
            self._memory_top = top if not self._memory_top else _GROWTH * top
        if rate > self._rate_top:
            self._rate_top = _GROWTH * rate
        return before != (self._end, self._memory_top, self._rate_top)

    def _draw_background(self, *, with_charged: bool) -> None:
        """Draw all that stands still, and keep its pixels."""
        figure = style.new_figure(*self.size)
        self._left, self._right = style.row_axes(figure, 0, 1)
        style.row_title(figure, 0, 1, self._title, self._subtitle)
        self._budget_marks = frame_memory(self._left, self._budget, self._memory_top, self._end)
        self._strip = frame_throughput(self._right, self._rate_top, self._end)
        name_kinds(self._left, ["charged by the kernel"] if with_charged else [])
        self._memory_words = _title_to_fill(self._left)
        self._rate_words = _title_to_fill(self._right)
        self._canvas: Any = figure.canvas
        self._canvas.draw()
        self._background = self._canvas.copy_from_bbox(figure.bbox)
        self.backgrounds_drawn += 1

    def _draw_memory(self, memory: Memory) -> None:
        stack, lines = draw_stack(self._left, memory)
        self._memory_words.set_text(
            f"Memory: {format_bytes(memory.anonymous[-1])} anonymous" if memory.seconds.size else "Memory"
        )
        _draw_over(self._left, [*stack, *self._budget_marks, *lines.values(), self._memory_words])
        _remove([*stack, *lines.values()])

    def _draw_throughput(self, throughput: Throughput, last: Sample | None) -> None:
        counted = last is not None and last.counters.samples > 0
        self._rate_words.set_text(
            f"Throughput: {format_rate(throughput.rate[-1])}" if counted else "No batch yet"
        )
        _draw_over(self._right, [self._rate_words])
        if counted:
            line, fill = draw_rate(self._right, self._strip, throughput)
            _draw_over(self._right, [line])
            _draw_over(self._strip, [fill])
            _remove([line, fill])


def _title_to_fill(ax: Axes) -> Any:
    """Return the panel's title, empty and left out of the background."""
    ax.set_title("", pad=style.TITLE_PAD)
    title = ax._left_title
    title.set_animated(True)
    return title


def _draw_over(ax: Axes, artists: list[Any]) -> None:
    for artist in artists:
        ax.draw_artist(artist)


def _remove(artists: list[Any]) -> None:
    for artist in artists:
        artist.remove()
