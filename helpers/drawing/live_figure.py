"""The figure that moves: axes drawn once, and curves drawn over them twice a second.

Drawing a whole figure costs many times what copying a saved background and drawing the curves over
it costs. The background is drawn again only when an axis has to grow, and it grows in steps.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from helpers.drawing import figure_style as style
from helpers.drawing.layout import RUN_HEIGHT, TITLE_PAD, WIDTH, run_axes, write_title
from helpers.drawing.legend import name_kinds
from helpers.drawing.memory_panel import Stack, frame_memory, memory_top, thin_lines
from helpers.drawing.png import encode_png
from helpers.drawing.series import Memory, Thinned, Throughput, memory_curves, throughput_curves
from helpers.drawing.throughput_panel import Waiting, add_strip, frame_rate, rate_top
from helpers.records import Snapshot
from helpers.units import format_bytes, format_rate

_FIRST_END = 10.0  # seconds on the time axis at first
_LONGER, _HIGHER = 1.8, 1.2  # an axis that has become too short gets so many times what is needed


class LiveFigure:
    """Draws a running experiment, frame by frame, each as a PNG file."""

    size = (WIDTH, RUN_HEIGHT)  # pixels of every frame

    def __init__(self, title: str, budget_bytes: int, enforced_by: str) -> None:
        self._title, self._budget, self._holder = title, budget_bytes, enforced_by
        self._subtitle = f"running; its budget is held by the {enforced_by}"
        self._thinned, self._seen = Thinned(), 0
        self._end, self._rate_top = _FIRST_END, 0.0
        self._memory_top = memory_top(memory_curves([]), budget_bytes)
        self._lines: set[str] = set()
        self._background: Any = None
        self.backgrounds_drawn = 0

    def frame(self, snapshots: Sequence[Snapshot]) -> bytes:
        """Return a picture of all snapshots so far; only the new ones are read."""
        new = snapshots[self._seen :]  # another thread may append while we draw
        self._thinned.add(new)
        self._seen += len(new)
        memory = memory_curves(self._thinned.snapshots)
        throughput = throughput_curves(self._thinned.snapshots)
        if self._outgrown_by(memory, throughput):
            self._draw_background()
        self._canvas.restore_region(self._background)
        self._draw_memory(memory)
        self._draw_throughput(throughput)
        return encode_png(np.asarray(self._canvas.buffer_rgba()))

    def _outgrown_by(self, memory: Memory, throughput: Throughput) -> bool:
        """Make room for these curves, and say whether the background has to be drawn again."""
        before = (self._end, self._memory_top, self._rate_top, self._lines)
        end = float(memory.seconds[-1]) if memory.seconds.size else 0.0
        if end > self._end:
            self._end = _LONGER * end
        if memory_top(memory, self._budget) > self._memory_top:
            self._memory_top = _HIGHER * memory_top(memory, self._budget)
        if rate_top(throughput) > self._rate_top:
            self._rate_top = _LONGER * rate_top(throughput)
        self._lines = self._lines | set(thin_lines(memory))
        after = (self._end, self._memory_top, self._rate_top, self._lines)
        return before != after or self._background is None

    @style.styled
    def _draw_background(self) -> None:
        """Draw all that stands still, keep its pixels, and make what moves."""
        figure = style.new_figure(*self.size)
        canvas: Any = figure.canvas
        self._left, self._right = run_axes(figure)
        write_title(figure, self._title, self._subtitle, 0.012, 0.988)
        self._budget_line = frame_memory(
            self._left, self._budget, self._holder, self._memory_top, self._end
        )
        name_kinds(self._left, sorted(self._lines), self._holder)
        frame_rate(self._right, self._rate_top, self._end)
        self._right.tick_params(labelbottom=False)
        self._strip = add_strip(self._right, self._end)
        self._memory_title, self._rate_title = _moving_title(self._left), _moving_title(self._right)
        canvas.draw()
        self._canvas, self._background = canvas, canvas.copy_from_bbox(figure.bbox)
        self._stack = Stack(self._left, sorted(self._lines))
        self._rate = self._right.plot([], [], **style.RATE_LINE)[0]
        self._waiting = Waiting(self._strip)
        self.backgrounds_drawn += 1

    def _draw_memory(self, memory: Memory) -> None:
        self._stack.show(memory)
        now = f": {format_bytes(memory.kinds[0][-1])} anonymous" if memory.seconds.size else ""
        self._memory_title.set_text(f"Memory{now}")
        for artist in (*self._stack.kinds, self._budget_line, *self._stack.lines.values()):
            self._left.draw_artist(artist)
        self._left.draw_artist(self._memory_title)

    def _draw_throughput(self, throughput: Throughput) -> None:
        drawn = self._thinned.snapshots  # not the caller's: they may be more by now
        counted = throughput.rate.size and drawn[-1].counters.samples
        self._rate_title.set_text(
            f"Throughput: {format_rate(throughput.rate[-1])}" if counted else "No batch yet"
        )
        self._right.draw_artist(self._rate_title)
        if counted:
            self._rate.set_data(throughput.seconds, throughput.rate)
            self._waiting.show(throughput)
            self._right.draw_artist(self._rate)
            self._strip.draw_artist(self._waiting.area)


def _moving_title(ax: Any) -> Any:
    """Return the panel's title, which the background leaves out."""
    title = ax.set_title("", pad=TITLE_PAD)
    title.set_animated(True)
    return title
