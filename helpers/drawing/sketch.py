"""What pictures of a mechanism are made of: boxes, arrows and words, in pixels.

A sketch is 1000 pixels wide; y runs downwards, as one reads. The looks are those of the figures:
blue is anonymous memory, pale and hatched is page cache.
"""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from helpers.drawing import figure_style as style
from helpers.drawing.layout import WIDTH
from helpers.drawing.words import drawable

ANONYMOUS, PAGE_CACHE = style.KINDS["anonymous"], style.KINDS["file-backed"]
PLAIN: dict[str, Any] = {"facecolor": "white"}
Place = tuple[float, float]


@style.styled
def new_sketch(height: int) -> tuple[Figure, Axes]:
    """Return an empty sketch of so many pixels."""
    figure = style.new_figure(WIDTH, height)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_xlim(0, WIDTH)
    ax.set_ylim(height, 0)
    ax.set_axis_off()
    return figure, ax


@style.styled
def write(ax: Axes, at: Place, words: str, **look: Any) -> None:
    """Write words in one line or more, from their upper left corner unless told otherwise."""
    edge = [withStroke(linewidth=3, foreground="white")] if look.get("color") != "white" else []
    lines = "\n".join(drawable(line) for line in words.splitlines())
    ax.text(*at, lines, **({"ha": "left", "va": "top", "path_effects": edge} | look))


@style.styled
def box(ax: Axes, at: Place, size: Place, words: str = "", look: dict[str, Any] = PLAIN) -> None:
    """Draw a box with words in its middle. `at` is its upper left corner."""
    edge: dict[str, Any] = {"edgecolor": style.INK, "linewidth": 1.2}
    ax.add_patch(Rectangle(at, *size, **(edge | look)))
    colour = "white" if look is ANONYMOUS else style.INK
    middle = (at[0] + size[0] / 2, at[1] + size[1] / 2)
    write(ax, middle, words, ha="center", va="center", color=colour, linespacing=1.3)


@style.styled
def arrow(ax: Axes, start: Place, end: Place) -> None:
    """Draw an arrow."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": style.INK, "lw": 1.6})


@style.styled
def span(ax: Axes, left: float, right: float, y: float, words: str) -> None:
    """Draw a line with two ends, and words below its middle: how far something reaches."""
    arrowprops = {"arrowstyle": "|-|, widthA=0.4, widthB=0.4", "color": style.INK, "lw": 1.6}
    ax.annotate("", (right, y), (left, y), arrowprops={**arrowprops, "shrinkA": 0, "shrinkB": 0})
    write(ax, ((left + right) / 2, y + 8), words, ha="center")


def heading(ax: Axes, words: str, x: float = 20) -> None:
    """Write what a sketch, or a half of it, shows."""
    write(ax, (x, 12), words, fontweight="bold", fontsize=15)


def check_above_zero(**numbers: int) -> None:
    """Raise ValueError for a number, named, of which there must be one or more."""
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} is {number}: pass a number above zero")
