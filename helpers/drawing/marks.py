"""What is written into a panel: labels of lines, the reader's guess, how a run ended.

No words may stand over others: a label is moved until its place is free.
"""

from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation

from helpers.drawing import figure_style as style
from helpers.drawing.pictures import BYTES_IN
from helpers.records import Guess, Run

_REACH = 1.4  # times a panel's upper end: a guess above it is an arrow
_WHITE_EDGE = [withStroke(linewidth=3, foreground="white")]


def guessed_bytes(guess: Guess | None) -> float | None:
    """Return a guess that belongs to the memory axis, in bytes, else None."""
    if guess is None or guess.value is None or guess.unit not in BYTES_IN:
        return None
    return guess.value * BYTES_IN[guess.unit]


def guessed_rate(guess: Guess | None) -> float | None:
    """Return a guess that belongs to the throughput axis, in samples per second, else None."""
    return guess.value if guess is not None and guess.unit == "samples/s" else None


def label(
    ax: Axes, words: str, value: float, colour: str, *, side: float = 0, discreet: bool = False
) -> None:
    """Write words beside a horizontal line at `value`, where no others stand.

    `side` (0 left, 1 right) is tried first, and above the line before below (for discreet words
    below before above). Where no place is free, discreet words are left out.
    """
    places = [(at, above) for at in (side, 0.5, 1 - side) for above in (not discreet, discreet)]
    for at, above in places:
        text = _write(ax, words, (at, value), colour, above, discreet)
        if _is_free(ax, text):
            return
        text.remove()
    if not discreet:
        _write(ax, words, (side, value), colour, True, False)


def _write(
    ax: Axes, words: str, at: tuple[float, float], colour: str, above: bool, discreet: bool
) -> Annotation:
    align = {0: "left", 0.5: "center", 1: "right"}[at[0]]
    return ax.annotate(
        words,
        at,
        xycoords=("axes fraction", "data"),
        xytext=({"left": 6, "center": 0, "right": -5}[align], 4 if above else -4),
        textcoords="offset points",
        ha=align,
        va="bottom" if above else "top",
        color=colour,
        fontweight="normal" if discreet else "bold",
        fontsize=style.SMALL if discreet else style.TEXT,
        path_effects=_WHITE_EDGE,
        zorder=6,
    )


def _is_free(ax: Axes, text: Annotation) -> bool:
    """Return whether words stand inside their panel, and neither over words nor over a corner."""
    place = text.get_window_extent()
    taken = [other.get_window_extent() for other in ax.texts if other is not text]
    taken += [box for corner in ax.child_axes if (box := corner.get_tightbbox())]
    inside = ax.bbox.y0 <= place.y0 and place.y1 <= ax.bbox.y1
    return inside and not any(place.overlaps(other) for other in taken)


def top_with_guess(top: float, guess: float | None, room: float) -> float:
    """Return a panel's upper end with room for a guess, or for an arrow to one far above.

    A guess of many times the budget would leave the curves no room. Its words take the part
    `room` of what is below them.
    """
    if guess is None:
        return top
    return max(top, (1 + room) * guess) if guess <= _REACH * top else (1 + room) * top


def mark_guess(ax: Axes, value: float, words: str, side: float = 1) -> None:
    """Draw the reader's guess as a line of its own, or an arrow to where it is out of the panel."""
    top = ax.get_ylim()[1]
    if value > top:
        label(ax, f"\u2191 you said {words}", top, style.GUESS, side=side)
        return
    ax.axhline(value, color="white", linewidth=5, zorder=4)  # purple on blue is blue to some
    ax.axhline(value, color=style.GUESS, linewidth=2.2, linestyle="-.", zorder=4)
    label(ax, f"you said {words}", value, style.GUESS, side=side)


def mark_end(ax: Axes, run: Run, height: float | None = None) -> None:
    """Mark when a run ended; a run that did not finish gets a cross at `height`."""
    colour = style.OUTCOME_COLOURS[run.outcome]
    ax.axvline(run.seconds, color=colour, linewidth=1.5, zorder=3)
    if height is not None and not run.finished:
        ax.plot([run.seconds], [height], "X", color=colour, markersize=12, zorder=6, clip_on=False)


def name_end(ax: Axes, run: Run) -> None:
    """Write above the panel how a run ended, where its line is."""
    part = run.seconds / ax.get_xlim()[1]
    ax.annotate(
        str(run.outcome),
        (run.seconds, 1),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="left" if part < 0.1 else "right" if part > 0.9 else "center",
        va="bottom",
        color=style.OUTCOME_COLOURS[run.outcome],
        fontweight="bold",
        path_effects=_WHITE_EDGE,
        zorder=6,
    )
