"""Which run the cell that runs now has shown: as its last expression it is not drawn again."""

import weakref

from helpers.drawing import front_end
from helpers.records import Run


class Drawn:
    """Remembers which run the cell that runs now has already shown."""

    def __init__(self) -> None:
        self._run: weakref.ref[Run] | None = None
        self._cell: int | None = None

    def note(self, run: Run) -> None:
        """Remember that this cell has shown the run."""
        self._run, self._cell = weakref.ref(run), front_end.execution_count()

    def here(self, run: Run) -> bool:
        """Return whether the run that this cell has shown is this very one."""
        shown = self._run() if self._run is not None else None
        return shown is run and self._cell == front_end.execution_count()


DRAWN = Drawn()
