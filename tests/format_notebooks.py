"""Bring notebooks into their one canonical form: `python tests/format_notebooks.py [--check]`.

No outputs, no execution counts, only the metadata that means something, code as ruff formats it,
and the same bytes every time. Then a difference between two versions is what was edited.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from nbformat.notebooknode import from_dict
from nbformat.v4 import reads, writes
from notebook_tools import all_notebooks

_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
_MAGIC = "%%importable"


def canonical(text: str, *, path: Path) -> str:
    """Return a notebook's text in canonical form. `path` tells ruff which settings to use.

    Raises ValueError when it is no notebook, or when a code cell does not parse.
    """
    try:
        notebook = reads(text)
        cells = [cell for cell in map(_cell, notebook.cells) if cell["source"]]
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a notebook of nbformat 4: {error!r}") from None
    metadata = {"kernelspec": _KERNEL, "language_info": {"name": "python"}}
    metadata |= _kept(notebook.metadata, "larger_than_ram")
    formatted = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return _with_code_formatted(from_dict(formatted), path)


def _cell(cell: Any) -> dict[str, Any]:
    """Return a cell with what stays of it."""
    hidden = cell.metadata.get("jupyter", {}).get("source_hidden")
    kept: dict[str, Any] = {
        "cell_type": cell.cell_type,
        "id": cell.id,
        "metadata": {
            **({"jupyter": {"source_hidden": True}} if hidden else {}),
            **_kept(cell.metadata, "tags"),
        },
        "source": cell.source.strip("\n"),
        **_kept(cell, "attachments"),
    }
    if cell.cell_type == "code":
        kept |= {"execution_count": None, "outputs": []}
    return kept


def _kept(mapping: Any, key: str) -> dict[str, Any]:
    return {key: mapping[key]} if mapping.get(key) else {}


def _with_code_formatted(notebook: Any, path: Path) -> str:
    """Let ruff format the code. It skips cells with a magic it does not know: ours steps aside."""
    first_lines = []
    for cell in notebook.cells:
        first, _, rest = cell.source.partition("\n")
        is_ours = cell.cell_type == "code" and first.split()[0] == _MAGIC
        first_lines.append(f"{first.rstrip()}\n" if is_ours else "")
        if is_ours:
            cell.source = rest.strip("\n")
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(path.resolve()), "-"]
    done = subprocess.run(
        command, input=writes(notebook), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ValueError(f"{path}: {done.stderr.strip()}")
    formatted = reads(done.stdout)
    for cell, first_line in zip(formatted.cells, first_lines, strict=True):
        cell.source = first_line + cell.source
    return str(writes(formatted)) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Format the notebooks, or with --check only name those that differ. Return the exit status."""
    parser = argparse.ArgumentParser(description="Bring notebooks into their one canonical form.")
    parser.add_argument("files", nargs="*", type=Path, help="all lessons unless given")
    parser.add_argument("--check", action="store_true", help="change nothing, fail on a difference")
    options = parser.parse_args(arguments)
    different = 0
    for path in options.files or all_notebooks():
        text = path.read_bytes().decode("utf-8")
        try:
            formatted = canonical(text, path=path)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 2
        if formatted != text:
            different += 1
            if options.check:
                print(f"{path}: run python tests/format_notebooks.py")
            else:
                path.write_bytes(formatted.encode("utf-8"))
                print(f"{path}: formatted")
    return int(options.check and different > 0)


if __name__ == "__main__":
    sys.exit(main())
