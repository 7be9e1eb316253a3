"""Views of a running experiment, and which of them suits the place.

A notebook with someone before it gets a moving figure, a terminal one line that rewrites itself, a
pipe one line at the end. LARGER_THAN_RAM_VIEW chooses another: auto, live, line, end or none.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from helpers.drawing import front_end
from helpers.drawing.front_end import DRAWN, Place
from helpers.drawing.guarded_view import not_drawn
from helpers.drawing.words import one_line, say
from helpers.records import Run, Snapshot, View
from helpers.units import format_bytes, format_rate

VARIABLE = "LARGER_THAN_RAM_VIEW"
CHOICES = ("auto", "live", "line", "end", "none")


def choose_view(
    title: str, budget_bytes: int, enforced_by: str, *, place: Place | None = None
) -> View:
    """Return the view that suits this place, or the one that LARGER_THAN_RAM_VIEW asks for.

    `live` needs a notebook: elsewhere it becomes `line`. Raises ValueError for an unknown choice.
    """
    place = front_end.detect_place() if place is None else place
    choice = wanted_view()
    if choice == "auto":
        seen = place.watched if place.notebook else place.terminal
        choice = "live" if seen else "end"  # where it needs a notebook and has none: a line
    if choice == "live" and place.notebook:
        from helpers.drawing.notebook_view import NotebookView  # needs IPython

        return NotebookView(
            title, budget_bytes, enforced_by, widgets=place.widgets and place.watched
        )
    if choice in ("live", "line"):
        return LineView(title, budget_bytes)
    return EndView(notebook=place.notebook) if choice == "end" else NoView()


def wanted_view() -> str:
    """Return what LARGER_THAN_RAM_VIEW asks for. Raises ValueError for an unknown choice."""
    choice = os.environ.get(VARIABLE, "auto") or "auto"
    if choice not in CHOICES:
        raise ValueError(f"{VARIABLE}={choice!r} is not a view: use one of {', '.join(CHOICES)}")
    return choice


class NoView:
    """Shows nothing."""

    def update(self, snapshots: Sequence[Snapshot]) -> None:
        """Draw nothing."""

    def finish(self, run: Run) -> None:
        """Draw nothing."""

    def stop_requested(self) -> bool:
        """Return False: there is nothing to press."""
        return False


class EndView(NoView):
    """Shows the finished run once: its figure in a notebook, else its one line."""

    def __init__(self, *, notebook: bool, stream: TextIO | None = None) -> None:
        self._notebook = notebook
        self._stream = stream

    def finish(self, run: Run) -> None:
        """Show the finished record."""
        if not self._notebook:
            say(f"{one_line(repr(run))}\n", self._stream or sys.stderr)
            return
        from IPython.display import display

        from helpers.plots import last_words

        display(last_words(run), raw=True)
        DRAWN.note(run)


class LineView(NoView):
    """Keeps one line of a terminal up to date."""

    def __init__(
        self,
        title: str,
        budget_bytes: int,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title, self._budget = one_line(title, 300), format_bytes(budget_bytes)
        self._stream = stream or sys.stderr
        self._clock = clock
        self._next = 0.0
        self._width = 0

    def update(self, snapshots: Sequence[Snapshot]) -> None:
        """Rewrite the line, at most five times a second."""
        if snapshots and self._clock() >= self._next:
            self._next = self._clock() + 0.2
            line = one_line(f"{self._title}: {_progress(snapshots[-1], self._budget)}")
            self._write(line[: shutil.get_terminal_size().columns - 1])  # a full line would wrap

    def finish(self, run: Run) -> None:
        """Replace the line by the run's own."""
        self._write(one_line(repr(run)), "\n")

    def _write(self, words: str, end: str = "") -> None:
        say(f"\r{words.ljust(self._width)}{end}", self._stream)
        self._width = len(words)


def _progress(snapshot: Snapshot, budget: str) -> str:
    counters = snapshot.counters
    seconds = counters.waiting_seconds + counters.working_seconds
    parts = [f"{snapshot.seconds:.0f} s", f"{format_bytes(snapshot.budgeted_bytes)} of {budget}"]
    if counters.samples and seconds:
        parts.append(f"{format_rate(counters.samples / seconds)}")
        parts.append(f"waiting {counters.waiting_seconds / seconds:.0%}")
    if counters.expected_batches:
        parts.append(f"{counters.batches / counters.expected_batches:.0%} of the epoch")
    return ", ".join(parts)


def mimebundle(run: Run) -> dict[str, Any]:
    """Return how a notebook shows a run as a cell's last expression.

    A run whose view has just drawn it in this cell is not drawn a second time.
    """
    from helpers import plots

    if not DRAWN.here(run):
        try:
            return plots.mimebundle(run)
        except Exception as error:  # noqa: BLE001 - a cell that has its record does not fail
            say(f"{not_drawn(error)}\n", sys.stderr)
    return plots.words_and_numbers(run)
