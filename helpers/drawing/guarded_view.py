"""A view that may fail: what it cannot show is said in one line, and the record comes back."""

import sys
from collections.abc import Sequence

from helpers.drawing.words import one_line, say
from helpers.records import Run, Snapshot, View


class GuardedView:
    """Passes everything on to a view until it fails, and tries its `finish` in any case."""

    def __init__(self, view: View) -> None:
        self._view, self._works, self._said = view, True, False

    def update(self, snapshots: Sequence[Snapshot]) -> None:
        """Let the view show the snapshots."""
        try:
            if self._works:
                self._view.update(snapshots)
        except Exception as error:  # noqa: BLE001 - a view of anybody's, in an experiment that goes on
            self._give_up(error)

    def stop_requested(self) -> bool:
        """Return whether the reader has asked the view to stop."""
        try:
            return self._view.stop_requested()
        except Exception as error:  # noqa: BLE001 - same
            self._give_up(error)
            return False

    def finish(self, run: Run) -> None:
        """Let the view show the record. An interrupt ends the drawing: the run is over."""
        try:
            self._view.finish(run)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - same
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        if not self._said:
            say(f"{not_drawn(error)}. The record comes back all the same.\n", sys.stderr)
        self._works, self._said = False, True


def not_drawn(error: BaseException) -> str:
    """Return why there is no figure, in one line."""
    why = f"{type(error).__name__}: {error}".removesuffix(": ")
    return f"The figure could not be drawn: {one_line(why, 300)}"
