"""A shuffle buffer that slides over a stream: how far a sample can travel."""

import math

import numpy as np

from helpers.drawing import sketch
from helpers.drawing.pictures import Picture

REACH = 2 / math.e  # of the buffer's size, on average
_LEFT, _WIDE = 20, 960


def draw_shuffle_buffer(buffer_size: int, run_length: int, samples: int) -> Picture:
    """Draw a stream of `samples` in runs of one class, and the buffer upon it.

    Raises ValueError for numbers below one, and for a buffer or a run longer than the stream.
    """
    sketch.check_above_zero(buffer_size=buffer_size, run_length=run_length, samples=samples)
    for name, length in (("buffer_size", buffer_size), ("run_length", run_length)):
        if length > samples:
            raise ValueError(f"{name} is {length:,}, of a stream of {samples:,}: pass less")
    figure, ax = sketch.new_sketch(250)
    sketch.heading(ax, "The buffer slides over the stream; a sample leaves it somewhere near")
    scale = _WIDE / samples
    for number, start in enumerate(range(0, samples, run_length)):
        wide = (min(start + run_length, samples) - start) * scale
        words = f"{number}" if wide > 24 else ""
        look = sketch.PAGE_CACHE if number % 2 else sketch.PLAIN
        sketch.box(ax, (_LEFT + start * scale, 60), (wide, 40), words, look)
    left, wide = _LEFT + _WIDE * 0.4, max(buffer_size * scale, 3)
    sketch.box(ax, (left, 48), (min(wide, _LEFT + _WIDE - left), 64), look=_FRAME)
    sketch.write(ax, (left, 118), f"buffer: {buffer_size:,} samples", linespacing=1.2)
    # After it is filled, a sample stays for a time that halves again and again.
    times = np.linspace(0, 4, 60)
    x = left + times * buffer_size * scale
    inside = x < _LEFT + _WIDE
    ax.plot(x[inside], (208 - 60 * np.exp(-times))[inside], color="#0072b2", linewidth=2.4)
    reach = REACH * buffer_size
    told = (
        f"A sample is moved by {reach:,.0f} places on average, and a run of one class is "
        f"{run_length:,} long."
    )
    sketch.write(ax, (_LEFT, 236), told, va="center", fontweight="bold")
    sketch.write(
        ax, (left - 10, 176), "where the buffer's first sample\ncomes out", ha="right", va="center"
    )
    return Picture(figure, f"A shuffle buffer over a stream sorted by class. {told}")


_FRAME = {"facecolor": "none", "edgecolor": "#b2182b", "linewidth": 2.6}
