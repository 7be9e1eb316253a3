"""Two processes and the one position of a file that they share, step by step."""

from matplotlib.axes import Axes

from helpers.drawing import sketch
from helpers.drawing.pictures import Picture

_TIMES = (170, 370, 570, 770)  # pixels: where the four steps stand
_WIDE = 190


def draw_shared_position(first: int, second: int, row_bytes: int, *, start: int = 0) -> Picture:
    """Draw how one worker asks for row `first` and is given another one.

    Both read rows of `row_bytes` through one position; the rows begin at byte `start` of the file.
    Raises ValueError for a number that cannot be, and where both ask for the same row: then nothing
    goes wrong.
    """
    for name, number, least in (
        ("first", first, 0),
        ("second", second, 0),
        ("row_bytes", row_bytes, 1),
        ("start", start, 0),
    ):
        if number < least:
            raise ValueError(f"{name} is {number}: pass {least} or more")
    if first == second:
        raise ValueError(f"both ask for row {first}: pass two different rows")
    rows = (first, second, second + 1, second + 2)
    positions = [f"{start + row * row_bytes:,}" for row in rows]
    figure, ax = sketch.new_sketch(260)
    sketch.heading(ax, "One file position for two processes: time goes from left to right")
    for y, name in ((50, "worker 1"), (106, "position"), (162, "worker 2")):
        sketch.write(ax, (20, y + 20), name, va="center", fontweight="bold")
    steps = [
        f"go to {positions[0]}",
        f"go to {positions[1]}",
        f"reads row {second:,}",
        f"reads row {second + 1:,}",
    ]
    for step, words in enumerate(steps):
        _draw_step(ax, step, words)
    for x, position in zip(_TIMES, positions, strict=True):
        sketch.box(ax, (x, 106), (_WIDE, 40), position, sketch.PAGE_CACHE)
    ends = (
        f"Worker 1 asked for row {first:,} and has row {second:,}; worker 2 has the one after it."
    )
    sketch.write(ax, (20, 230), f"{ends} Nothing says so.", va="center")
    return Picture(figure, f"Two processes share one file position. {ends}")


def _draw_step(ax: Axes, step: int, words: str) -> None:
    """Draw a step in its worker's lane, and an arrow to the position that it moves."""
    x, above = _TIMES[step], step in (0, 2)
    top = 50 if above else 162
    look = sketch.ANONYMOUS if step == 2 else sketch.PLAIN
    sketch.box(ax, (x, top), (_WIDE, 40), words, look)
    start, end = (90, 106) if above else (162, 146)
    sketch.arrow(ax, (x + _WIDE / 2, start), (x + _WIDE / 2, end))
