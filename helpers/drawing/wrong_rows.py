"""What wrong rows look like beside the right ones, and what a loss curve tells of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helpers.drawing import figure_style as style
from helpers.drawing.layout import WIDTH, panel_title
from helpers.drawing.pictures import Picture

_MOST_PAIRS = 6
_CURVES: list[dict[str, Any]] = [
    {"color": style.BUDGET, "linestyle": (0, (4, 2)), "linewidth": 2.2},
    {"color": style.RATE, "linewidth": 2.2},
]


def draw_wrong_rows(
    expected: NDArray[Any], received: NDArray[Any], asked: Sequence[str], given: Sequence[str]
) -> Picture:
    """Draw pairs of rows: above what was asked for, below what came. At most six are drawn.

    Both arrays are `(rows, height, width)`. `asked` and `given` are words for the rows
    above and below, of one or two lines. Raises ValueError where their lengths differ or there
    is nothing to draw.
    """
    lengths = {len(expected), len(received), len(asked), len(given)}
    if len(lengths) != 1 or not len(expected):
        raise ValueError(f"there are {sorted(lengths)} rows: pass as many of each, and one or more")
    shown = min(len(expected), _MOST_PAIRS)
    pairs = [f"asked for {asked[i]}, received {given[i]}" for i in range(shown)]
    told = "; ".join(pairs).replace("\n", " ")
    return Picture(_draw_pairs(expected[:shown], received[:shown], asked, given), f"{told}.")


@style.styled
def _draw_pairs(
    expected: NDArray[Any], received: NDArray[Any], asked: Sequence[str], given: Sequence[str]
) -> Any:
    figure = style.new_figure(WIDTH, 390)
    limits: dict[str, Any] = {"vmin": float(expected.min()), "vmax": float(expected.max())}
    for place in range(len(expected)):
        left = 0.115 + place * 0.148
        for bottom, rows in ((0.53, expected), (0.04, received)):
            ax = figure.add_axes((left, bottom, 0.13, 0.33))
            ax.imshow(rows[place], aspect="auto", cmap="viridis", **limits)
            ax.set_xticks([])
            ax.set_yticks([])
            panel_title(ax, (asked if rows is expected else given)[place], 5)
    for y, words in ((0.69, "asked for"), (0.20, "received")):
        figure.text(0.012, y, words, va="center", fontweight="bold")
    return figure


def draw_losses(losses: Mapping[str, Sequence[float]], epochs: int = 1) -> Picture:
    """Draw the loss of one or two trainings over their batches, each smoothed a little.

    A thin line marks the end of each of the `epochs`, which are of the same length. Raises
    ValueError for more than two trainings, for none, and for one without batches.
    """
    if not 1 <= len(losses) <= len(_CURVES) or not all(map(len, losses.values())):
        raise ValueError(f"{len(losses)} trainings: pass one or two, each with its batches")
    ends = [f"{name}: from {loss[0]:.2f} to {loss[-1]:.2f}" for name, loss in losses.items()]
    return Picture(_draw_losses(losses, epochs), f"Training loss. {'; '.join(ends)}.")


@style.styled
def _draw_losses(losses: Mapping[str, Sequence[float]], epochs: int) -> Any:
    figure = style.new_figure(WIDTH, 330)
    ax = figure.add_axes((0.09, 0.19, 0.88, 0.66))
    longest = max(map(len, losses.values()))
    window = max(longest // 40, 1)
    for end in range(1, epochs):
        ax.axvline(end * longest / epochs, color="#999999", linewidth=0.8, linestyle=":")
    for (name, loss), look in zip(losses.items(), _CURVES, strict=False):
        smooth = np.convolve(loss, np.ones(window) / window, "valid")
        ax.plot(np.arange(len(smooth)) + window, smooth, label=name, **look)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("batches" if epochs == 1 else "batches (dotted: an epoch ends)")
    panel_title(ax, f"training loss, mean of {window} batches", 8)
    ax.legend(loc="upper right")
    return figure
