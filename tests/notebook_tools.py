"""Execute notebooks and read what they show. Shared by `make run` and the tests."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from traitlets.config import Config

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
RUN_TYPE = "application/vnd.larger-than-ram.run+json"


class NotebookError(Exception):
    """A cell failed. The message names the notebook, the cell as a reader counts, and the error."""


def all_notebooks() -> list[Path]:
    """Return the lessons in order."""
    return sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def read(path: Path) -> Any:
    """Return a notebook as nbformat reads it."""
    return nbformat.read(path, as_version=4)


def tags(cell: Any) -> set[str]:
    """Return a cell's tags."""
    return set(cell.metadata.get("tags", ()))


def code_cells(notebook: Any) -> list[Any]:
    """Return the code cells in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tagged(notebook: Any, tag: str) -> list[Any]:
    """Return the cells that carry a tag, in order."""
    return [cell for cell in notebook.cells if tag in tags(cell)]


def environment(
    path: Path, *, scale: str, start_method: str | None, view: str, data: Path | None
) -> dict[str, str]:
    """Return what the helpers read from the environment of a notebook's kernel."""
    chosen = {
        "LARGER_THAN_RAM_SCALE": scale,
        "LARGER_THAN_RAM_VIEW": view,
        "LARGER_THAN_RAM_NOTEBOOK": path.name,
        "LARGER_THAN_RAM_START_METHOD": start_method,
        "LARGER_THAN_RAM_DATA": data and str(data),
        "PYTHONDONTWRITEBYTECODE": os.environ.get("PYTHONDONTWRITEBYTECODE"),
    }
    return os.environ | {name: value for name, value in chosen.items() if value}


def execute(
    path: Path,
    *,
    notebook: Any = None,
    scale: str = "test",
    start_method: str | None = None,
    view: str = "end",
    data: Path | None = None,
    folder: Path = NOTEBOOKS,
    timeout: float = 600,
    allow_errors: bool = False,
    on_cell: Callable[[int, int], None] | None = None,
) -> Any:
    """Execute a notebook (or a variant of it) in `folder` and return it with its outputs.

    The kernel is the Python that runs this. Raises NotebookError, which carries the notebook as far
    as it came as `notebook`.
    """
    notebook = read(path) if notebook is None else notebook
    env = environment(path, scale=scale, start_method=start_method, view=view, data=data)
    with client(notebook, folder=folder, timeout=timeout, allow_errors=allow_errors) as (run, more):
        if on_cell is not None:
            run.on_cell_start = lambda cell, cell_index: on_cell(cell_index, len(notebook.cells))
        try:
            run.execute(env=env | more)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            failure = NotebookError(_describe(path, notebook, error))
            failure.notebook = notebook  # type: ignore[attr-defined]
            raise failure from None
    return notebook
