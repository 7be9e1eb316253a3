"""Where the reader sits: a notebook with someone before it, a terminal, or nobody at all.

IPython, ipykernel and ipywidgets are asked for only here and only when they are there: the helpers
are a library for scripts as well.
"""

import sys
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
    kernel = _kernel()
    return Place(
        notebook=kernel is not None,
        # A front end that executes headless (nbclient, nbconvert) forbids input(): no one is there.
        watched=kernel is not None and bool(getattr(kernel, "_allow_stdin", True)),
        terminal=sys.stderr is not None and sys.stderr.isatty(),  # None: Python without a console
        widgets=kernel is not None and find_spec("ipywidgets") is not None,
    )


def _kernel() -> Any:
    """Return the running Jupyter kernel, or None outside one."""
    shell = _shell()
    return None if shell is None else getattr(shell, "kernel", None)


def _shell() -> Any:
    """Return the running IPython, or None. What has not been imported does not run."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def execution_count() -> int | None:
    """Return the number of the cell that runs now, or None outside IPython."""
    shell = _shell()
    return None if shell is None else int(shell.execution_count)


def click_reaches_a_busy_kernel() -> bool:
    """Return whether a widget's click arrives while a cell runs: ipykernel 7.0 to 7.3.

    They carry it over a subshell, in a thread of its own; 7.4.0 hands it back to the busy shell.
    """
    try:
        numbers = version("ipykernel").split(".")
        return int(numbers[0]) == 7 and int(numbers[1]) <= 3
    except (PackageNotFoundError, ValueError, IndexError):
        return False
