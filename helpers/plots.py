"""Figures of finished runs: one run, before and after, each a Picture. Records in, no measuring.

A Picture shows itself as the last expression of a notebook's cell. One number over several runs
is `sweep`, in drawing/sweeps.py; panels alone are in drawing/memory_panel.py and its neighbour.
"""

from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from helpers.drawing import figure_style as style
from helpers.drawing import pictures
from helpers.drawing.layout import RUN_HEIGHT, WIDTH, run_axes, write_title
from helpers.drawing.memory_panel import draw_memory
from helpers.drawing.pair import draw_pair
from helpers.drawing.pictures import Picture, alt_text
from helpers.drawing.throughput_panel import draw_throughput
from helpers.drawing.words import one_line
from helpers.predictions import as_guess
from helpers.records import Run

_SHORTEST_CURVE = 0.1  # seconds


def draw_run(run: Run) -> Picture:
    """Draw one run: memory on the left, throughput and waiting on the right."""
    return Picture(_draw_one(run), alt_text(run))


def before_after(bad: Run, cured: Run, guess: Any = None) -> Picture:
    """Draw two runs side by side on the same axes.

    `guess` is what the reader expected of the bad one. A guess that a run carries is drawn, too.
    """
    bad = bad if guess is None else replace(bad, guess=as_guess(guess))
    alt = f"Before: {alt_text(bad)} After: {alt_text(cured)}"
    return Picture(draw_pair((bad, cured)), alt)


def mimebundle(run: Run) -> dict[str, Any]:
    """Return a run as a notebook keeps it: words, the figure, and the numbers as JSON."""
    return {**words_and_numbers(run), "text/html": draw_run(run).html()}


def last_words(run: Run) -> dict[str, Any]:
    """Return what a view leaves behind: for a run too short for a curve, words only."""
    return mimebundle(run) if run.seconds >= _SHORTEST_CURVE else words_and_numbers(run)


def words_and_numbers(run: Run) -> dict[str, Any]:
    """Return the same without the figure."""
    return {"text/plain": one_line(repr(run)), pictures.RECORD_TYPE: pictures.numbers(run)}


@style.styled
def _draw_one(run: Run) -> Figure:
    figure = style.new_figure(WIDTH, RUN_HEIGHT)
    left, right = run_axes(figure)
    draw_memory(run, ax=left)
    draw_throughput(run, ax=right)
    ending = f"{one_line(run.ending)}, after {pictures.in_time(run.seconds)}"
    notes = [ending, pictures.warm_words(run), pictures.guess_words(run)]
    write_title(figure, run.title, " | ".join(filter(None, notes)), 0.012, 0.988)
    return figure
