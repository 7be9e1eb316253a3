"""A picture of a table in chunks: what is asked for, and what is read for it."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from helpers.drawing import figure_style as style
from helpers.drawing import sketch
from helpers.drawing.pictures import Picture
from helpers.drawing.words import ratio_words

_MOST, _MOST_DOWN = 8, 16  # chunks drawn across, and down; there may be more
_LEFT, _TOP, _WIDE, _HIGH, _STEP = 20, 78, 280, 132, 340
_ASKED: dict[str, Any] = {"facecolor": style.BUDGET, "linewidth": 0}


class Grid(NamedTuple):
    """The part of a table that is drawn: so many chunks down and across."""

    down: int
    across: int

    @property
    def chunk(self) -> tuple[float, float]:
        """Return how wide and high a chunk is drawn, in pixels."""
        return _WIDE / self.across, _HIGH / self.down


def draw_chunk_grid(
    shape: Sequence[int],
    chunks: Sequence[int],
    ratios: Mapping[str, float],
    *,
    drawn_rows: int | None = None,
) -> Picture:
    """Draw three ways to read a table of `shape` (rows, columns) that lies in `chunks`.

    `ratios` has the bytes read for each byte asked, for "rows in order", "rows shuffled" and
    "columns", those that are known. Drawn are the first `drawn_rows`, or eight chunks. Raises
    ValueError for chunks that do not fit the table.
    """
    _check(shape, chunks)
    rows = min(shape[0], drawn_rows or _MOST * chunks[0])
    down, across = min(-(-rows // chunks[0]), _MOST_DOWN), min(-(-shape[1] // chunks[1]), _MOST)
    grid = Grid(down, across)
    figure, ax = sketch.new_sketch(250)
    size = " x ".join(f"{chunk:,}" for chunk in chunks)
    sketch.heading(ax, f"Asked for (red) and read (blue), in chunks of {size}")
    told = []
    for number, way in enumerate(_ASKED_CELLS):
        left = _LEFT + number * _STEP
        words = f"{way}: {_times(ratios[way])}" if way in ratios else way
        sketch.write(ax, (left, 48), words, fontweight="bold")
        _draw_table(ax, left, grid, way)
        told.append(words)
    whole = down * chunks[0] >= shape[0] and across * chunks[1] >= shape[1]
    part = "" if whole else "a part of "
    note = f"Drawn is {part}a table of {shape[0]:,} rows and {shape[1]:,} columns."
    sketch.write(ax, (_LEFT, 222), note, fontsize=style.SMALL)
    alt = f"A table of {shape[0]:,} x {shape[1]:,} in chunks of {size}. {'; '.join(told)}."
    return Picture(figure, alt)


# For each way the places that are asked for, in shares of the drawn table: left, top, wide, high.
_ASKED_CELLS: dict[str, list[tuple[float, float, float, float]]] = {
    "rows in order": [(0, 0, 1, 0.25)],
    "rows shuffled": [(0, top, 1, 0) for top in (0.08, 0.44, 0.82)],
    "columns": [(0.3, 0, 0, 1)],
}


def _draw_table(ax: Axes, left: float, grid: Grid, way: str) -> None:
    wide, high = grid.chunk
    for row in range(grid.down):
        for column in range(grid.across):
            touched = any(_touches(cell, grid, row, column) for cell in _ASKED_CELLS[way])
            look = sketch.PAGE_CACHE if touched else sketch.PLAIN
            sketch.box(ax, (left + column * wide, _TOP + row * high), (wide, high), look=look)
    for x, y, across, down in _ASKED_CELLS[way]:
        size = (max(across * _WIDE, 4), max(down * _HIGH, 4))
        sketch.box(ax, (left + x * _WIDE, _TOP + y * _HIGH), size, look=_ASKED)


def _touches(cell: tuple[float, float, float, float], grid: Grid, row: int, column: int) -> bool:
    """Return whether what is asked for lies in a chunk, at least in part."""
    x, y, across, down = cell
    return _overlap(x, across, grid.across, column) and _overlap(y, down, grid.down, row)


def _overlap(start: float, length: float, chunks: int, number: int) -> bool:
    first, end = start * chunks, (start + max(length, 0.001)) * chunks
    return first < number + 1 and end > number


def _times(ratio: float) -> str:
    return f"{ratio_words(ratio)} x" if isfinite(ratio) else "unknown"


def _check(shape: Sequence[int], chunks: Sequence[int]) -> None:
    fits = len(shape) == len(chunks) == 2
    if not fits or not all(1 <= c <= s for s, c in zip(shape, chunks, strict=True)):
        raise ValueError(
            f"chunks {tuple(chunks)} do not fit a table of shape {tuple(shape)}: "
            "pass two numbers, from 1 up to the table's own"
        )
