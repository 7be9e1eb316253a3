"""Figures of finished runs: one run, before and after, a sweep. Records in, no measuring.

`draw_memory`, `draw_throughput` and `draw_sweep` draw on Axes and return them; the others return a
Picture, which shows itself as the last expression of a notebook's cell.
"""

from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from helpers.drawing import figure_style as style
from helpers.drawing.marks import guessed_bytes, guessed_rate
from helpers.drawing.memory_panel import draw_memory, memory_top
from helpers.drawing.pictures import RECORD_TYPE, Picture, alt_text, guess_words, in_time, numbers
from helpers.drawing.series import last_second, memory_curves, thin, throughput_curves
from helpers.drawing.sweeps import draw_sweep, sweep
from helpers.drawing.throughput_panel import draw_throughput, rate_top
from helpers.records import Guess, Run

__all__ = [
    "Picture",
    "alt_text",
    "before_after",
    "draw_memory",
    "draw_run",
    "draw_sweep",
    "draw_throughput",
    "last_words",
    "mimebundle",
    "sweep",
    "words_and_numbers",
]

_SHORTEST_CURVE = 0.1  # seconds


def draw_run(run: Run) -> Picture:
    """Draw one run: memory on the left, throughput and waiting on the right."""
    return Picture(_draw_rows([run]), alt_text(run))


def before_after(bad: Run, cured: Run, guess: Guess | None = None) -> Picture:
    """Draw two runs one above the other on the same axes.

    `guess` is what the reader expected of the bad one. A guess that a run carries is drawn, too.
    """
    bad = bad if guess is None else replace(bad, guess=guess)
    alt = f"Before: {alt_text(bad)} After: {alt_text(cured)}"
    return Picture(_draw_rows([bad, cured]), alt)


def mimebundle(run: Run) -> dict[str, Any]:
    """Return a run as a notebook keeps it: words, the figure, and the numbers as JSON."""
    return {**words_and_numbers(run), "text/html": draw_run(run).html()}


def last_words(run: Run) -> dict[str, Any]:
    """Return what a view leaves behind: for a run too short for a curve, words only."""
    return mimebundle(run) if run.seconds >= _SHORTEST_CURVE else words_and_numbers(run)


def words_and_numbers(run: Run) -> dict[str, Any]:
    """Return the same without the figure."""
    return {"text/plain": repr(run), RECORD_TYPE: numbers(run)}


@style.styled
def _draw_rows(runs: list[Run]) -> Figure:
    """Draw each run as a row of two panels. Panels of a kind share their limits."""
    figure = style.new_figure(style.WIDTH, len(runs) * style.ROW_HEIGHT)
    end = max(last_second(run) for run in runs)
    memory = max(_memory_top(run) for run in runs)
    rate = max(_rate_top(run) for run in runs)
    for row, run in enumerate(runs):
        left, right = style.row_axes(figure, row, len(runs))
        draw_memory(run, ax=left, top=memory, end=end)
        draw_throughput(run, ax=right, top=rate, end=end)
        style.row_title(figure, row, len(runs), run.title, _subtitle(run))
    return figure


def _memory_top(run: Run) -> float:
    curves = memory_curves(thin(run.snapshots))
    return memory_top(curves, run.budget_bytes, guessed_bytes(run.guess))


def _rate_top(run: Run) -> float:
    return rate_top(throughput_curves(thin(run.snapshots)), guessed_rate(run.guess))


def _subtitle(run: Run) -> str:
    return " | ".join(
        filter(None, [f"{run.ending}, after {in_time(run.seconds)}", guess_words(run)])
    )
