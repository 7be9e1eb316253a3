"""Execute notebooks and read what they show. Shared by `make run` and the tests."""

import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from traitlets.config import Config

from helpers.cells.lesson_folder import sweep

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
RUN_TYPE = "application/vnd.larger-than-ram.run+json"


class NotebookError(Exception):
    """A cell failed. The message names the notebook, the cell, its first line and the exception."""

    def __init__(self, message: str, notebook: Any) -> None:
        super().__init__(message)
        self.notebook = notebook  # with the outputs as far as it came


def all_notebooks() -> list[Path]:
    """Return the lessons in order."""
    return sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def read(path: Path) -> Any:
    """Return a notebook as nbformat reads it."""
    return nbformat.read(path, as_version=4)


def made_up(*cells: Any, **metadata: Any) -> Any:
    """Return a notebook of cells, or of the sources of code cells."""
    made = [nbformat.v4.new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    return nbformat.v4.new_notebook(cells=made, metadata=metadata)


def tags(cell: Any) -> set[str]:
    """Return a cell's tags."""
    return set(cell.metadata.get("tags", ()))


def code_cells(notebook: Any) -> list[Any]:
    """Return the code cells in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tagged(notebook: Any, tag: str) -> list[Any]:
    """Return the cells that carry a tag, in order."""
    return [cell for cell in notebook.cells if tag in tags(cell)]


def execute(
    path: Path,
    *,
    notebook: Any = None,
    scale: str = "test",
    start_method: str | None = None,
    data: Path | None = None,
    timeout: float | None = 600,
) -> Any:
    """Execute a notebook, or a variant of it given as `notebook`, and return it with its outputs.

    The kernel is the Python that runs this, in the notebook's folder. Raises NotebookError.
    """
    notebook = read(path) if notebook is None else notebook
    chosen = {
        "LARGER_THAN_RAM_SCALE": scale,
        "LARGER_THAN_RAM_VIEW": "end",
        "LARGER_THAN_RAM_NOTEBOOK": path.name,
        "LARGER_THAN_RAM_START_METHOD": start_method,
        "LARGER_THAN_RAM_DATA": str(data.resolve()) if data else None,
    }
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
        # No folder of kernels to look in: what is left is the Python that runs this.
        config=Config({"KernelSpecManager": {"kernel_dirs": []}}),
    )
    started: list[int] = [0]
    client.on_cell_start = lambda cell, cell_index: started.append(cell_index)
    with TemporaryDirectory() as settings:  # the reader's own IPython settings stay out of it
        env = os.environ | {name: value for name, value in chosen.items() if value is not None}
        try:
            asyncio.run(client.async_execute(env=env | {"IPYTHONDIR": settings}))
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise NotebookError(_describe(path, notebook, started[-1], error), notebook) from None
        finally:
            sweep()  # a kernel with children is killed before it can tidy up
    return notebook


def _describe(path: Path, notebook: Any, index: int, error: Exception) -> str:
    """Return 'notebook, cell 7 (`first line`): ZeroDivisionError: division by zero'."""
    cell = notebook.cells[index]
    number = sum(cell.cell_type == "code" for cell in notebook.cells[: index + 1])
    if isinstance(error, CellExecutionError):
        reason = f"{error.ename}: {error.evalue}"
    elif isinstance(error, CellTimeoutError):
        reason = str(error).splitlines()[0]
    else:
        reason = f"the kernel died: {error}"
    return f"{path.name}, code cell {number} (`{first_line(cell)}`): {reason}"


def first_line(cell: Any) -> str:
    """Return the first line of a cell that says something."""
    return next((line.strip() for line in cell.source.splitlines() if line.strip()), "")


def output_text(cell: Any) -> str:
    """Return what a cell shows, as plain text: streams, results and displays, in order."""
    texts = []
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            texts.append(output.text)
        elif "data" in output:
            texts.append(output.data.get("text/plain", ""))
    return "\n".join(texts)


def runs_shown(cell: Any) -> list[dict[str, Any]]:
    """Return the records of the experiments that a cell shows, in order."""
    data = [output.data for output in cell.get("outputs", ()) if "data" in output]
    return [dict(part[RUN_TYPE]) for part in data if RUN_TYPE in part]


def python_source(cell: Any) -> str:
    """Return a code cell's Python with its lines in place; those meant for IPython are blank."""
    lines = cell.source.splitlines()
    return "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines)
