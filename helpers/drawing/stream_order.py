"""In which order a stream's classes come, and what a model learns from it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.drawing import figure_style as style
from helpers.drawing.layout import WIDTH, panel_title
from helpers.drawing.live_picture import LivePicture
from helpers.drawing.pictures import Picture

_COLUMNS = 200  # of a strip: each is a part of the stream
_LOOKS = ("-", (0, (6, 2)), (0, (1, 1)), (0, (5, 1, 1, 1)), "-", (0, (3, 3)), (0, (2, 1)))


def draw_order(strips: Mapping[str, ArrayLike]) -> Picture:
    """Draw one strip for each stream: its labels from the first sample to the last.

    A strip has a line for each class, and is dark where many samples of it come. A sorted stream is
    a staircase, a shuffled one an even grey. `strips` has integer labels as they came, by name.
    Raises ValueError where there is nothing to draw.
    """
    labels = {name: np.asarray(values) for name, values in strips.items()}
    if not labels or not all(len(each) for each in labels.values()):
        raise ValueError("there are no labels: pass at least one stream with samples")
    classes = int(max(each.max() for each in labels.values())) + 1
    told = [
        f"{name}: {_longest_run(each):,} of one class in a row" for name, each in labels.items()
    ]
    return Picture(_draw_strips(labels, classes), f"{'; '.join(told)}.")


def _longest_run(labels: NDArray[Any]) -> int:
    edges = np.flatnonzero(np.diff(labels)) + 1
    return int(np.diff([0, *edges, len(labels)]).max())


@style.styled
def _draw_strips(strips: Mapping[str, NDArray[Any]], classes: int) -> Any:
    each = 118
    figure = style.new_figure(WIDTH, each * len(strips) + 34)
    height = figure.get_size_inches()[1] * figure.dpi
    for number, (name, labels) in enumerate(strips.items()):
        bottom = (34 + (len(strips) - 1 - number) * each) / height
        ax = figure.add_axes((0.09, bottom, 0.88, (each - 38) / height))
        columns = min(_COLUMNS, len(labels))
        share, _, _ = np.histogram2d(
            labels, np.arange(len(labels)), [np.arange(classes + 1), columns]
        )
        share /= share.sum(0).clip(1)
        ax.imshow(share, aspect="auto", cmap="Blues", vmin=0, vmax=min(5 / classes, 1))
        ax.set_xticks([])
        ax.set_yticks([0, classes - 1])
        panel_title(ax, name, 4)
    figure.text(0.09, 8 / height, "first sample", va="bottom")
    figure.text(0.97, 8 / height, "last sample", va="bottom", ha="right")
    figure.text(0.012, 0.5, "class", rotation=90, va="center")
    return figure


class AccuracyCurves(LivePicture):
    """The accuracy of a model while it learns, one curve for each order of its data.

    >>> curves = AccuracyCurves(chance=0.1)
    >>> curves.add("sorted", [0.1, 0.12, 0.15])
    >>> curves
    Accuracy at the end of the epoch. sorted: 0.15.
    """

    def __init__(self, chance: float) -> None:
        self.chance = chance
        self.curves: dict[str, list[float]] = {}

    def add(self, name: str, accuracies: Sequence[float]) -> None:
        """Add a curve, or replace it: accuracies at equal steps, from first batch to last."""
        if not len(accuracies):
            raise ValueError(f"{name!r} has no accuracies: pass at least one")
        self.curves[name] = [float(value) for value in accuracies]
        self._show()

    def final(self, name: str) -> float:
        """Return a curve's accuracy at the end of the epoch."""
        return self.curves[name][-1]

    def picture(self) -> Picture:
        """Return the curves that there are now."""
        return Picture(self._draw(), repr(self))

    @style.styled
    def _draw(self) -> Any:
        figure = style.new_figure(WIDTH, 360)
        ax = figure.add_axes((0.09, 0.17, 0.62, 0.7))
        for number, (name, values) in enumerate(self.curves.items()):
            look: dict[str, Any] = {"linestyle": _LOOKS[number % len(_LOOKS)], "linewidth": 2.2}
            steps = np.linspace(0, 100, len(values))
            ax.plot(steps, values, color=f"C{number}", label=f"{values[-1]:.2f}  {name}", **look)
        ax.axhline(self.chance, color=style.FAINT, linewidth=1)
        ax.text(99, self.chance - 0.015, "chance", color=style.FAINT, ha="right", va="top")
        ax.set_ylim(0, 1)
        ax.set_xlabel("% of the epoch")
        panel_title(ax, "accuracy on samples that it has not seen", 8)
        handles, names = ax.get_legend_handles_labels()
        order = sorted(range(len(names)), key=lambda i: names[i], reverse=True)
        figure.legend(
            [handles[i] for i in order],
            [names[i] for i in order],
            loc="center left",
            bbox_to_anchor=(0.72, 0.53),
            title="at the end",
        )
        return figure

    def __repr__(self) -> str:
        ends = "; ".join(f"{name}: {values[-1]:.2f}" for name, values in self.curves.items())
        return f"Accuracy at the end of the epoch. {ends}."
