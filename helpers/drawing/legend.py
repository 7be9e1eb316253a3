"""The legend of memory's kinds, which also tells what counts against the budget."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from helpers.drawing import figure_style as style

_LETTER, _HANDLE = 9.6, 52  # pixels: a letter, and what else an entry takes
_PAGE_CACHE = {"kernel": " (counts until taken back)", "watcher": " (does not count)"}
_LOOK: dict[str, Any] = {
    "loc": "upper left",
    "handlelength": 1.4,
    "columnspacing": 1.2,
    "borderpad": 0.1,
    "borderaxespad": 0,
    "labelspacing": 0.2,
}


def name_kinds(ax: Axes, lines: Sequence[str], enforced_by: str) -> None:
    """Name below a panel the kinds, in the order in which they are stacked, and the lines."""
    room = ax.figure.bbox.width - ax.bbox.x0
    below = (-0.02, -30 / ax.bbox.height)
    ax.legend(**_entries(lines, enforced_by, room), bbox_to_anchor=below, **_LOOK)


def name_kinds_below(figure: Figure, lines: Sequence[str], enforced_by: str, top: float) -> None:
    """Name the same for all panels of a figure, from `top` (0 to 1) down."""
    room = 0.95 * figure.bbox.width
    figure.legend(**_entries(lines, enforced_by, room), bbox_to_anchor=(0.01, top), **_LOOK)


def _entries(lines: Sequence[str], enforced_by: str, room: float) -> dict[str, Any]:
    """Return the entries, in as many columns as so many pixels have room for."""
    counts = _PAGE_CACHE.get(enforced_by.split()[0], "") if enforced_by else ""
    names = {kind: kind for kind in style.KINDS} | {"file-backed": f"file-backed{counts}"}
    handles: list[Any] = [
        Patch(**look, linewidth=0, label=names[kind]) for kind, look in style.KINDS.items()
    ]
    handles += [Line2D([], [], **style.LINES[name], label=name) for name in lines]
    lengths = [len(handle.get_label()) for handle in handles]
    columns = len(handles)
    while columns > 1 and room < sum(  # an entry's column is as wide as its longest
        _HANDLE + _LETTER * max(column) for column in np.array_split(lengths, columns)
    ):
        columns -= 1
    return {"handles": handles, "ncols": columns}
