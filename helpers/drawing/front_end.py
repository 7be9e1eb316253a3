"""Where the reader sits: a notebook with someone before it, a terminal, or nobody at all.

IPython, ipykernel and ipywidgets are asked for only here and only when they are there: the helpers
are a library for scripts as well.
"""

import sys
import weakref
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True)
class Place:
    """What can be shown here."""

    notebook: bool = False  # Jupyter runs us: figures and display updates
    watched: bool = False  # by a person: not a headless execution
    terminal: bool = False  # standard error can rewrite its line
    widgets: bool = False  # ipywidgets can be imported


def detect_place() -> Place:
    """Return what can be shown here and now."""
    kernel = getattr(_shell(), "kernel", None)
    return Place(
        notebook=kernel is not None,
        # A front end that executes headless (nbclient, nbconvert) forbids input(): no one is there.
        watched=kernel is not None and bool(getattr(kernel, "_allow_stdin", True)),
        terminal=sys.stderr is not None and sys.stderr.isatty(),  # None: Python without a console
        widgets=kernel is not None and find_spec("ipywidgets") is not None,
    )


def _shell() -> Any:
    """Return the running IPython, or None. What has not been imported does not run."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def execution_count() -> int | None:
    """Return the number of the cell that runs now, or None outside IPython."""
    shell = _shell()
    return None if shell is None else int(shell.execution_count)


class Drawn:
    """Remembers which run a cell has shown: as its last expression it is not drawn again."""

    def __init__(self) -> None:
        self._shown: tuple[weakref.ref[Any], int | None] | None = None

    def note(self, run: Any) -> None:
        """Remember that the cell that runs now has shown the run."""
        self._shown = weakref.ref(run), execution_count()

    def here(self, run: Any) -> bool:
        """Return whether it has shown this very one."""
        of, cell = self._shown or (lambda: None, None)
        return of() is run and cell == execution_count()


DRAWN = Drawn()


def click_reaches_a_busy_kernel() -> bool:
    """Return whether a widget's click arrives while a cell runs: ipykernel 7.0 to 7.3.

    They carry it over a subshell, in a thread of its own; 7.4.0 hands it back to the busy shell.
    """
    try:
        numbers = version("ipykernel").split(".")
        return int(numbers[0]) == 7 and int(numbers[1]) <= 3
    except (PackageNotFoundError, ValueError, IndexError):
        return False
