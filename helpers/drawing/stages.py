"""A loader as a row of stages, each as wide as it was measured."""

from collections.abc import Mapping

from matplotlib.axes import Axes

from helpers.drawing import figure_style as style
from helpers.drawing import sketch
from helpers.drawing.pictures import Picture

_LEFT, _WIDTH, _NARROW, _LINE = 20, 960, 120, 24  # pixels


def draw_stages(rows: Mapping[str, Mapping[str, float]]) -> Picture:
    """Draw what one batch passes through, for each loader in a row of its own.

    `rows` has the seconds of each stage, in their order, by loader. All rows have one scale. The
    longest stage of a row is blue. Raises ValueError where there is no stage that takes time.
    """
    for name, stages in rows.items():
        if not stages or min(stages.values()) < 0 or not sum(stages.values()):
            raise ValueError(f"{name!r} has the stages {dict(stages)}: give each its seconds")
    if not rows:
        raise ValueError("there are no rows: give at least one loader with its stages")
    lines = max(map(len, rows.values()))
    each = 84 + _LINE * lines
    figure, ax = sketch.new_sketch(46 + each * len(rows))
    sketch.heading(ax, "What one batch passes through, each stage as wide as it was measured")
    longest = max(sum(stages.values()) for stages in rows.values())
    told = []
    for number, (name, stages) in enumerate(rows.items()):
        top = 46 + number * each
        sketch.write(ax, (_LEFT, top), f"{name}: {_time(sum(stages.values()))}")
        _draw_row(ax, stages, top + 24, _WIDTH / longest)
        parts = ", ".join(f"{stage} {_time(seconds)}" for stage, seconds in stages.items())
        told.append(f"{name}: {parts}.")
    return Picture(figure, " ".join(told))


def _draw_row(ax: Axes, stages: Mapping[str, float], top: float, scale: float) -> None:
    """Draw a row of boxes; the words of those that are too narrow stand below."""
    slowest, x, below = max(stages, key=lambda stage: stages[stage]), float(_LEFT), 0
    for stage, seconds in stages.items():
        wide, words = max(seconds * scale, 2), f"{stage}\n{_time(seconds)}"
        look = sketch.ANONYMOUS if stage == slowest else sketch.PLAIN
        sketch.box(ax, (x, top), (wide, 46), words if wide > _NARROW else "", look)
        if wide <= _NARROW:
            at = (min(x, _LEFT + _WIDTH - 260), top + 50 + below * (_LINE - 4))
            words = words.replace("\n", " ")
            sketch.write(ax, at, f"\u2191 {words}", fontsize=style.SMALL)
            below += 1
        x += wide


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:,.3g} ms"
