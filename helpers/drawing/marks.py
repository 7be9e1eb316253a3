"""What is written into a panel: labels of lines, the reader's guess, how a run ended."""

from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation

from helpers.drawing import figure_style as style
from helpers.records import Guess, Run

_BYTES_IN = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def guessed_bytes(guess: Guess | None) -> float | None:
    """Return a guess that belongs to the memory axis, in bytes, else None."""
    if guess is None or guess.value is None or guess.unit not in _BYTES_IN:
        return None
    return guess.value * _BYTES_IN[guess.unit]


def guessed_rate(guess: Guess | None) -> float | None:
    """Return a guess that belongs to the throughput axis, in samples per second, else None."""
    return guess.value if guess is not None and guess.unit == "samples/s" else None


def label(
    ax: Axes,
    words: str,
    at: tuple[float, float],
    colour: str,
    *,
    above: bool = True,
    discreet: bool = False,
) -> Annotation:
    """Write words beside a horizontal line: `at` is its end (0 left, 1 right) and its value."""
    right = at[0] > 0.5
    return ax.annotate(
        words,
        at,
        xycoords=("axes fraction", "data"),
        xytext=(-5 if right else 6, 4 if above else -4),
        textcoords="offset points",
        ha="right" if right else "left",
        va="bottom" if above else "top",
        color=colour,
        fontweight="normal" if discreet else "bold",
        fontsize=11 if discreet else 13,
        path_effects=[withStroke(linewidth=3, foreground="white")],
        zorder=6,
    )


def mark_guess(ax: Axes, value: float, words: str, side: float = 1) -> None:
    """Draw the reader's guess as a line of its own."""
    ax.axhline(value, color=style.GUESS, linewidth=2, linestyle="-.", zorder=4)
    label(ax, f"you said {words}", (side, value), style.GUESS)


def mark_end(ax: Axes, run: Run, height: float | None = None) -> None:
    """Mark when and how a run ended; a run that did not finish gets a cross at `height`."""
    colour = style.OUTCOME_COLOURS[run.outcome]
    part = run.seconds / ax.get_xlim()[1]
    ax.axvline(run.seconds, color=colour, linewidth=1.5, zorder=3)
    ax.annotate(
        str(run.outcome),
        (run.seconds, 1),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="left" if part < 0.1 else "right" if part > 0.9 else "center",
        va="bottom",
        color=colour,
        fontweight="bold",
        path_effects=[withStroke(linewidth=3, foreground="white")],
        zorder=6,
    )
    if height is not None:
        mark_cross(ax, run, height)


def mark_cross(ax: Axes, run: Run, height: float) -> None:
    """Put a cross where a run ended that did not finish."""
    if not run.finished:
        colour = style.OUTCOME_COLOURS[run.outcome]
        ax.plot([run.seconds], [height], "X", color=colour, markersize=12, zorder=6, clip_on=False)
