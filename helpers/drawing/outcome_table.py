"""How many rows were wrong, or what was raised, for every pair of a row and a column: a table.

In a notebook with someone before it the table stands there from its first row on and fills while
the experiments run. Headless it is drawn once, as the last expression of its cell.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from helpers.drawing import figure_style as style
from helpers.drawing import sketch
from helpers.drawing.live_picture import LivePicture
from helpers.drawing.pictures import Picture
from helpers.records import Outcome

Found = int | str | None  # wrong rows; the name of an error; None where it was not tried

_LEFT, _TOP, _HEIGHT, _GAP = 400, 84, 40, 6  # pixels
_RIGHT: dict[str, Any] = {"facecolor": "#cfeee4"}
_WRONG: dict[str, Any] = {"facecolor": style.OUTCOME_COLOURS[Outcome.KILLED]}
_RAISED: dict[str, Any] = {"facecolor": "#f3dfc4", "hatch": "//", "edgecolor": "#a6611a"}


class OutcomeTable(LivePicture):
    """A table that is filled row by row.

    >>> table = OutcomeTable("wrong rows", ["fork", "spawn"])
    >>> table.add("one handle for all", [93, "TypeError"])
    >>> table
    wrong rows. one handle for all: fork 93 wrong, spawn TypeError.
    """

    def __init__(self, title: str, columns: Sequence[str]) -> None:
        self.title, self.columns = title, list(columns)
        self.rows: dict[str, list[Found]] = {}

    def add(self, name: str, found: Sequence[Found]) -> None:
        """Add a row, or replace it. Raises ValueError where its squares are not the columns."""
        if len(found) != len(self.columns):
            columns = ", ".join(self.columns)
            raise ValueError(f"{name!r} has {len(found)} squares: pass one for each of {columns}")
        self.rows[name] = list(found)
        self._show()

    def column(self, name: str) -> list[Found]:
        """Return the squares of a column, from the first row to the last."""
        return [found[self.columns.index(name)] for found in self.rows.values()]

    def picture(self) -> Picture:
        """Return the table as it is now."""
        height = _TOP + max(len(self.rows), 1) * (_HEIGHT + _GAP) + 10
        figure, ax = sketch.new_sketch(height)
        sketch.heading(ax, self.title)
        wide = (1000 - 20 - _LEFT) / len(self.columns)
        for column, name in enumerate(self.columns):
            middle = _LEFT + (column + 0.5) * wide
            sketch.write(ax, (middle, _TOP - 28), name, ha="center", fontweight="bold")
        for row, (name, squares) in enumerate(self.rows.items()):
            top = _TOP + row * (_HEIGHT + _GAP)
            sketch.write(ax, (20, top + _HEIGHT / 2), name, va="center")
            for column, found in enumerate(squares):
                _draw_square(ax, (_LEFT + column * wide, top), wide - _GAP, found)
        return Picture(figure, repr(self))

    def __repr__(self) -> str:
        told = []
        for name, squares in self.rows.items():
            pairs = zip(self.columns, squares, strict=True)
            told.append(
                f"{name}: {', '.join(f'{method} {_words(found)}' for method, found in pairs)}."
            )
        return " ".join([f"{self.title}.", *told])


def _words(found: Found) -> str:
    if found is None:
        return "not tried"
    return found if isinstance(found, str) else f"{found:,} wrong"


def _draw_square(ax: Axes, at: tuple[float, float], wide: float, found: Found) -> None:
    """Draw one square: its colour says what its mark and words say."""
    if found is None:
        mark, look = "", sketch.PLAIN
    elif isinstance(found, str):
        mark, look = "! ", _RAISED
    else:
        mark, look = ("\u2717 ", _WRONG) if found else ("\u2713 ", _RIGHT)
    sketch.box(ax, at, (wide, _HEIGHT), look=look)
    middle = (at[0] + wide / 2, at[1] + _HEIGHT / 2)
    colour = "white" if look is _WRONG else style.INK
    words = f"{mark}{_words(found)}"
    sketch.write(ax, middle, words, ha="center", va="center", color=colour, fontweight="bold")
