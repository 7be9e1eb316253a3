"""A view that may fail: what it cannot show is said in one line, and the record comes back."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from helpers.drawing.words import one_line, say
from helpers.records import Run, Snapshot, View

Failures = type[Exception] | tuple[type[BaseException], ...]


class GuardedView:
    """Passes everything on to a view until it fails, and tries its `finish` in any case."""

    def __init__(self, view: View) -> None:
        self._view, self._works = view, True

    def update(self, snapshots: Sequence[Snapshot]) -> None:
        """Let the view show the snapshots."""
        if self._works:
            self._try(lambda: self._view.update(snapshots))

    def stop_requested(self) -> bool:
        """Return whether the reader has asked the view to stop."""
        return bool(self._try(lambda: self._view.stop_requested()))

    def finish(self, run: Run) -> None:
        """Let the view show the record. An interrupt ends the drawing: the run is over."""
        self._try(lambda: self._view.finish(run), (Exception, KeyboardInterrupt))

    def _try(self, act: Callable[[], Any], failures: Failures = Exception) -> Any:
        try:
            return act()
        except failures as error:  # a view of anybody's, in an experiment that goes on
            if self._works:
                say(f"{not_drawn(error)}. The record comes back all the same.\n", sys.stderr)
            self._works = False
            return None


def not_drawn(error: BaseException) -> str:
    """Return why there is no figure, in one line."""
    why = f"{type(error).__name__}: {error}".removesuffix(": ")
    return f"The figure could not be drawn: {one_line(why, 300)}"
