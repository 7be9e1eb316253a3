"""What every lesson keeps to, as functions that return what is wrong with a notebook.

Cells are known by their tags: `failure` and `cure` (code cells that show the two experiments),
`evidence` (assertions), and for each exercise a row of code cells: `exercise` (the stub), `check`,
`solution` (hidden), and the same `check` again. A check that knows the answer is `hidden`, too.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from notebook_tools import code_cells, first_line, output_text, python_source, read, tagged, tags

MOST_LINES = 15
MEDIAN_LINES = 3
EXERCISES = range(2, 5)
_ROW = ("exercise", "check", "solution", "check")
_ABSOLUTE = re.compile(r"(?<![\w./])/(?:home|Users|root|work|tmp)\b|\b[A-Za-z]:\\\w")
_LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")


def style_problems(notebook: Any) -> Iterator[str]:
    """Yield what breaks the rules for the cells of any notebook."""
    lengths = [code_lines(cell) for cell in code_cells(notebook)]
    if lengths and median(lengths) > MEDIAN_LINES:
        yield f"the median code cell has {median(lengths):g} lines: at most {MEDIAN_LINES}"
    for cell in notebook.cells:
        name = f"cell {cell.id} (`{first_line(cell)}`)"
        if found := _ABSOLUTE.search(cell.source):
            yield f"{name} has an absolute path: {found.group()}"
        if cell.cell_type == "code":
            yield from (f"{name} {problem}" for problem in _code_problems(cell))


def code_lines(cell: Any) -> int:
    """Return the lines of a code cell that a reader reads: no blank ones, no %%importable."""
    lines = [line.strip() for line in cell.source.splitlines()]
    return sum(bool(line) and not line.startswith("%%importable") for line in lines)


def _code_problems(cell: Any) -> Iterator[str]:
    if code_lines(cell) > MOST_LINES:
        yield f"has {code_lines(cell)} lines: at most {MOST_LINES}"
    if cell.outputs or cell.execution_count is not None:
        yield "has outputs or a count: clear it"
    if "sys.path" in cell.source:
        yield "touches sys.path"
    for node in ast.walk(ast.parse(python_source(cell))):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            yield f"imports * from {node.module}"


def lesson_problems(notebook: Any) -> Iterator[str]:
    """Yield what a lesson with a failure and a cure (01 and later) lacks."""
    for tag in ("failure", "cure", "evidence"):
        if not tagged(notebook, tag):
            yield f"no cell is tagged {tag}"
    rows = [mark for cell in code_cells(notebook) for mark in tags(cell) & set(_ROW)]
    count = rows.count("exercise")
    if count not in EXERCISES:
        yield f"{count} exercises: from {EXERCISES.start} to {EXERCISES.stop - 1}"
    if rows != list(_ROW) * count:
        yield f"exercises go {', '.join(_ROW)}, and these go {', '.join(rows)}"
    for cell in [*tagged(notebook, "solution"), *tagged(notebook, "hidden")]:
        if not cell.metadata.get("jupyter", {}).get("source_hidden"):
            yield f"cell {cell.id} is not hidden: set jupyter.source_hidden in its metadata"
    for before, after in _checks(notebook):
        if before.source != after.source:
            yield f"check {after.id} is not the same as {before.id}"


def exercise_problems(executed: Any) -> Iterator[str]:
    """Yield the checks of an executed notebook that do not turn from "not yet" to "done"."""
    for before, after in _checks(executed):
        if "not yet" not in output_text(before):
            yield f"check {before.id} passes before the solution: {output_text(before)!r}"
        if "✓ done" not in output_text(after) or "not yet" in output_text(after):
            yield f"check {after.id} fails after the solution: {output_text(after)!r}"


def _checks(notebook: Any) -> list[tuple[Any, Any]]:
    """Return the two checks of each exercise."""
    checks = [cell for cell in code_cells(notebook) if "check" in tags(cell)]
    return list(zip(checks[::2], checks[1::2], strict=False))


def link_problems(notebook: Any, folder: Path) -> Iterator[str]:
    """Yield the links from a notebook in `folder` that lead to no file, or to no heading."""
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        for target, anchor in _LINK.findall(cell.source):
            if ":" in target:  # https://, mailto:
                continue
            path = folder / target
            if target and not path.exists():
                yield f"cell {cell.id} links to {target}, which is not there"
            elif anchor and target.endswith(".ipynb") and anchor[1:] not in anchors(path):
                yield f"cell {cell.id} links to {target}{anchor}, and there is no such heading"


def anchors(path: Path) -> set[str]:
    """Return the anchors that JupyterLab gives to the headings of a notebook."""
    lines = [line for cell in read(path).cells for line in cell.source.splitlines()]
    return {line.lstrip("#").strip().replace(" ", "-") for line in lines if line.startswith("#")}
