"""A small plain picture of what one read of a row touches when its HDF5 file is opened for it."""

from collections.abc import Mapping

from matplotlib.axes import Axes

from helpers.drawing import figure_style as style
from helpers.drawing import sketch
from helpers.drawing.pictures import Picture

PARTS = {  # in the order in which they are touched, and what each says in its box
    "path": "path\nthe folders,\nby name",
    "superblock": "superblock\nwhere the\nfile begins",
    "name": "name\nof the dataset,\nits header",
    "chunk": "chunk\nits index, into\nan empty cache",
    "row": "row\ncopied out of\nthe chunk",
}
_LEFT, _WIDTH, _GAP = 20, 960, 30
_NARROW = 70  # pixels: a number with its unit would not fit
_DIGIT = 14  # pixels from one number to the next


def draw_open(seconds: Mapping[str, float]) -> Picture:
    """Draw the parts of one read with an open of its own, and how long each takes.

    `seconds` has one number for each of PARTS. What is kept with an open dataset is white, the
    row itself is blue. Returns a Picture of 1000 x 280 pixels. Raises ValueError for a part that
    is missing or unknown, or that takes no time.
    """
    if seconds.keys() != PARTS.keys():
        given = ", ".join(seconds) or "nothing"
        raise ValueError(f"the parts are {given}: give the seconds of {', '.join(PARTS)}")
    for part, time in seconds.items():
        if not time > 0:
            raise ValueError(f"{part} takes {time} s: measure it again, over more reads")
    figure, ax = sketch.new_sketch(280)
    sketch.heading(ax, "One row, with an open of its own")
    _draw_boxes(ax, seconds)
    _draw_strip(ax, seconds)
    times = "; ".join(f"{part} {_microseconds(seconds[part])}" for part in PARTS)
    largest = max(PARTS, key=lambda part: seconds[part])
    return Picture(figure, f"What one row touches: {times}. The largest part: {largest}.")


def _draw_boxes(ax: Axes, seconds: Mapping[str, float]) -> None:
    wide = (_WIDTH - _GAP * (len(PARTS) - 1)) / len(PARTS)
    for number, (part, words) in enumerate(PARTS.items(), 1):
        x = _LEFT + (number - 1) * (wide + _GAP)
        sketch.box(ax, (x, 46), (wide, 80), f"{number} \u00b7 {words}", _look(part))
        sketch.write(ax, (x + wide / 2, 130), _microseconds(seconds[part]), ha="center")
        if number > 1:
            sketch.arrow(ax, (x - _GAP, 86), (x, 86))


def _draw_strip(ax: Axes, seconds: Mapping[str, float]) -> None:
    """Draw all parts end to end, each as long as it takes. Narrow ones have their number above."""
    whole, x, said = sum(seconds.values()), float(_LEFT), 0.0
    for number, part in enumerate(PARTS, 1):
        wide = _WIDTH * seconds[part] / whole
        words = f"{number}: {seconds[part] / whole:.0%}" if wide > _NARROW else ""
        sketch.box(ax, (x, 184), (wide, 40), words, _look(part))
        if not words:
            said = max(x + wide / 2, said + _DIGIT)  # beside the one before, not on it
            sketch.write(ax, (said, 181), str(number), ha="center", va="bottom")
        x += wide
    kept = f"With the dataset kept, most rows take only part {len(PARTS)}, the blue one."
    below = f"{_microseconds(whole)} in all. {kept}"
    sketch.write(ax, (_LEFT, 238), below, fontsize=style.SMALL)


def _look(part: str) -> dict[str, str]:
    return sketch.ANONYMOUS if part == "row" else sketch.PLAIN


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.3g} \u00b5s"
