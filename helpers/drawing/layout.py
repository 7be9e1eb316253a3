"""Where panels and titles stand in a figure. Places are fixed, so that nothing jumps."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers.drawing import figure_style as style
from helpers.drawing.words import drawable

WIDTH, RUN_HEIGHT, PAIR_HEIGHT = 1000, 450, 520  # pixels of a figure of one run, and of two
TITLE_PAD = 24  # points between a panel and its title: the outcome is written there


def run_axes(figure: Figure) -> tuple[Axes, Axes]:
    """Return the two panels of a run: memory on the left, throughput on the right."""
    return figure.add_axes((0.095, 0.19, 0.415, 0.535)), figure.add_axes((0.595, 0.41, 0.37, 0.315))


def pair_axes(figure: Figure, column: int) -> tuple[Axes, Axes]:
    """Return the two panels of one of two runs side by side: memory above, throughput below."""
    left = (0.095, 0.555)[column]
    return figure.add_axes((left, 0.44, 0.41, 0.385)), figure.add_axes((left, 0.18, 0.41, 0.18))


def panel_title(ax: Axes, words: str, pad: float) -> None:
    """Write above a panel what it shows, smaller where it is too long. `pad` is in points."""
    title = ax.set_title(words, pad=pad)
    while title.get_window_extent().width > ax.bbox.width + 20:
        title.set_fontsize(0.96 * float(title.get_fontsize()))


def write_title(figure: Figure, title: str, subtitle: str, left: float, right: float) -> None:
    """Write a run's title and, below it, how it ended, from `left` to `right` (0 to 1)."""
    look: dict[str, Any] = {"fontsize": 17, "weight": "bold"}
    for down, words in ((12, title), (44, subtitle)):
        y = 1 - down / figure.bbox.height
        _write_line(figure, words, left, y, right - left, look)
        look = {"color": style.FAINT}


def _write_line(
    figure: Figure, words: str, x: float, y: float, room: float, look: dict[str, Any]
) -> None:
    """Write words in one line, and cut what does not fit."""
    words = drawable(words)  # cut before it is measured
    text = figure.text(x, y, words, va="top", **look)
    most = room * figure.bbox.width
    while (width := text.get_window_extent().width) > most:
        fitting = max(int(len(text.get_text()) * most / width) - 1, 0)
        text.set_text(words[:fitting].rstrip() + "\u2026")
