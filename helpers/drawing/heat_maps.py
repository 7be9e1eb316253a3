"""Tables of ratios as heat maps side by side: one square for each number, which stands in it."""

from collections.abc import Mapping, Sequence
from math import isfinite, log10
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from helpers.drawing import figure_style as style
from helpers.drawing.layout import WIDTH, panel_title
from helpers.drawing.pictures import Picture
from helpers.drawing.words import drawable, ratio_words

Table = Sequence[Sequence[float]]
_DARK = 0.55  # share of the colour scale from which on the words are white


@style.styled
def draw_heat_maps(
    tables: Mapping[str, Table], *, rows: Sequence[str], columns: Sequence[str], what: str
) -> Picture:
    """Draw tables of numbers above zero side by side, on one logarithmic scale of colours.

    `tables` names each table; each has a list of `len(columns)` numbers for each of `rows`. A nan
    is a square with a question mark. Raises ValueError where a table has another shape.
    """
    for name, table in tables.items():
        if [len(line) for line in table] != [len(columns)] * len(rows):
            raise ValueError(
                f"table {name!r} has lines of {[len(line) for line in table]} numbers: "
                f"pass {len(rows)} lines of {len(columns)}"
            )
    height = 128 + 58 * len(rows)
    figure = style.new_figure(WIDTH, height)
    wide = 0.8 / len(tables)
    numbers = [n for table in tables.values() for line in table for n in line if isfinite(n)]
    top = max(log10(max(numbers, default=1.0)), 1.0)
    for place, (name, table) in enumerate(tables.items()):
        left = 0.18 + place * wide
        ax = figure.add_axes((left, 46 / height, wide - 0.015, 58 * len(rows) / height))
        _draw_table(ax, table, top)
        ax.set_xticks(range(len(columns)), list(map(drawable, columns)))
        ax.set_yticks(range(len(rows)), list(map(drawable, rows)))
        ax.tick_params(length=0, labelleft=place == 0)
        panel_title(ax, name, 6)
    figure.text(0.012, 1 - 12 / height, drawable(what), va="top", fontsize=15, weight="bold")
    return Picture(figure, _alt(tables, rows, columns, what))


def _draw_table(ax: Axes, table: Table, top: float) -> None:
    for row, line in enumerate(table):
        for column, number in enumerate(line):
            depth = max(log10(number), 0.0) / top if isfinite(number) else 0.0
            shade = colormaps["Blues"](0.05 + 0.85 * depth)
            edge: dict[str, Any] = {"facecolor": shade, "edgecolor": "white", "linewidth": 3}
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **edge))
            colour = "white" if depth > _DARK else style.INK
            look: dict[str, Any] = {"color": colour, "weight": "bold", "fontsize": 16}
            ax.text(column, row, ratio_words(number), ha="center", va="center", **look)
    ax.set_xlim(-0.5, len(table[0]) - 0.5)
    ax.set_ylim(len(table) - 0.5, -0.5)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _alt(
    tables: Mapping[str, Table], rows: Sequence[str], columns: Sequence[str], what: str
) -> str:
    told = []
    for name, table in tables.items():
        for row, line in zip(rows, table, strict=True):
            pairs = zip(columns, map(ratio_words, line), strict=True)
            told.append(f"{name}, {row}: " + ", ".join(f"{way} {said}" for way, said in pairs))
    return f"{what}. {'; '.join(told)}."
