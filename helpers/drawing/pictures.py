"""Finished figures as a notebook shows them: an image with alternative text, and its numbers.

The image travels as an HTML `img` because JupyterLab's renderer of `image/png` reads width and
height from the metadata but no alternative text (jupyter/enhancement-proposals issue 120 is open).
"""

import base64
import html
import io
from dataclasses import asdict, dataclass
from typing import Any

from matplotlib.figure import Figure

from helpers.drawing.figure_style import pixels
from helpers.drawing.words import one_line
from helpers.records import Run
from helpers.units import format_bytes, format_rate

BYTES_IN = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
RECORD_TYPE = "application/vnd.larger-than-ram.run+json"
_NUMBERS = """
seconds budget_bytes enforced_by measure start_method baseline_anonymous_bytes peak_anonymous_bytes
read_bytes samples_per_second waiting_share
"""


@dataclass(frozen=True)
class Picture:
    """A finished figure and the words that stand for it where it cannot be seen."""

    figure: Figure
    alt: str

    def png(self) -> bytes:
        """Return the figure as a PNG file."""
        canvas: Any = self.figure.canvas  # new_figure gave it one that draws pixels
        stream = io.BytesIO()
        canvas.print_png(stream)
        return stream.getvalue()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        del include, exclude  # IPython filters by them itself
        return {"text/plain": self.alt, "text/html": self.html()}

    def html(self) -> str:
        """Return the figure as an `img` that needs no other file."""
        width, height = pixels(self.figure)
        png = base64.b64encode(self.png()).decode()
        return (
            f'<img alt="{html.escape(self.alt)}" width="{width}" height="{height}" '
            f'style="max-width: 100%; height: auto" src="data:image/png;base64,{png}">'
        )

    def __repr__(self) -> str:
        return self.alt


def alt_text(run: Run) -> str:
    """Return what the figure of a run shows, in two sentences with its numbers.

    'np.load in __init__: killed: over its 1 GiB budget, by the watcher, after 2.1 s. Anonymous
    memory rose from 180 MiB to 1 GiB; no batch was counted.'
    """
    memory = (
        f"Anonymous memory rose from {format_bytes(run.baseline_anonymous_bytes)} "
        f"to {format_bytes(run.peak_anonymous_bytes)} of a {format_bytes(run.budget_bytes)} budget"
        if run.snapshots
        else "No memory was sampled"
    )
    loop = (
        f"{run.counters.samples:,} samples came at {format_rate(run.samples_per_second)}, "
        f"{run.waiting_share:.0%} of the time spent waiting for data"
        if run.counters.samples
        else "no batch was counted"
    )
    notes = [warm_words(run), guess_words(run)]
    more = "".join(f" {note[0].upper()}{note[1:]}." for note in notes if note)
    ending = f"{one_line(run.title, 300)}: {one_line(run.ending, 300)}"
    return f"{ending}, after {in_time(run.seconds)}. {memory}; {loop}.{more}"


def in_time(seconds: float) -> str:
    """Return a time as people say it: 0.0213 -> '0.021 s', 14 -> '14.0 s', 99 -> '1.6 min'."""
    if seconds < 1:
        return f"{seconds:.2g} s"
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def warm_words(run: Run) -> str:
    """Return why a run that was to read from the disk did not, or nothing."""
    if run.why_not_cold:
        return f"started warm: {one_line(run.why_not_cold, 300)}"
    return one_line(run.why_in_ram, 300)


def guess_words(run: Run) -> str:
    """Return the reader's guess beside what was measured, or nothing where there is no guess."""
    guess = run.guess
    if guess is None or guess.value is None:
        return ""
    said = f"you said {guess.value:,g} {one_line(guess.unit, 40)}"
    measured = _measured(run, guess.unit)
    return f"{said}, measured {measured}" if measured else said


def _measured(run: Run, unit: str) -> str:
    if unit in BYTES_IN:
        return format_bytes(run.peak_anonymous_bytes)
    if unit == "samples/s":
        return format_rate(run.samples_per_second)
    if unit in ("s", "seconds"):
        return f"{run.seconds:.1f} {unit}"
    counted = {"samples": run.counters.samples, "batches": run.counters.batches}
    return f"{counted[unit]:,} {unit}" if unit in counted else ""


def numbers(run: Run) -> dict[str, Any]:
    """Return a run's numbers as JSON can hold them, so that a saved notebook carries its record."""
    return {
        "title": one_line(run.title),
        "outcome": run.outcome.value,
        "ending": one_line(run.ending),
        "why_not_cold": one_line(run.why_not_cold),
        "why_in_ram": one_line(run.why_in_ram),
        **{name: getattr(run, name) for name in _NUMBERS.split()},
        "counters": asdict(run.counters),
    }
