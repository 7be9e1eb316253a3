"""The evidence swap: with the cure in the bad one's place, the evidence must fail.

A lesson names its swaps in the notebook's metadata, and which claims each must break:

    {"larger_than_ram": {"swaps": [
        {"bad": "LoadsEverything", "cured": "OpensLazily", "breaks": ["np.load dies"]}]}}

A cell tagged `evidence` says its claims with `shown("np.load dies", ...)`. A claim that no swap
breaks must hold for both. All swaps are made in one variant of the notebook, so that it runs once.
"""

import ast
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from definition_swap import SwapError, pieces_of, replace_definition, top_level
from notebook_tools import execute, python_source, read, tags

_LEFT_OUT = {"exercise", "check", "solution"}
_UNSHOWN = "not shown on this machine"
_ANY_ERROR = "raises-exception"  # nbclient goes on after a cell with this tag


@dataclass(frozen=True)
class Statement:
    """One statement of an evidence cell. `swaps` are the bad names whose swap must break it."""

    text: str
    claim: str = ""  # of `shown`; "" where it only prepares
    swaps: frozenset[str] = frozenset()

    def problem(self, error: str | None) -> str | None:
        """Return what is wrong with it, given the type of error that it ended with."""
        line = self.claim or self.text.splitlines()[0]
        if error == _UNSHOWN:
            return None
        if self.swaps and error is None:
            return f"vacuous: `{line}` holds with the cure in place of {', '.join(self.swaps)}"
        if self.swaps and error != "AssertionError":
            return f"`{line}` ended with {error}: it should be false, and not break"
        if not self.swaps and error is not None:
            return f"`{line}` should hold for both, and ended with {error}"
        return None


def swap_problems(path: Path, *, notebook: Any = None, **options: Any) -> list[str]:
    """Execute the swapped variant of a lesson and return what its evidence failed to show.

    `options` go to `execute`. Raises SwapError before anything runs if a name is not there.
    """
    notebook = read(path) if notebook is None else notebook
    variant, statements = swapped(notebook)
    execute(path, notebook=variant, **options)
    shown = [cell for cell in variant.cells if "evidence" in tags(cell)]
    found = (s.problem(_error(cell)) for s, cell in zip(statements, shown, strict=True))
    return [problem for problem in found if problem]


def swapped(notebook: Any) -> tuple[Any, list[Statement]]:
    """Return a notebook with every swap made and one cell for each statement of the evidence."""
    swaps = notebook.metadata.get("larger_than_ram", {}).get("swaps", [])
    if not swaps:
        raise SwapError('no swaps: write {"larger_than_ram": {"swaps": [...]}} into the metadata')
    variant = deepcopy(notebook)
    last = max((i for i, cell in enumerate(variant.cells) if "evidence" in tags(cell)), default=-1)
    variant.cells = [c for c in variant.cells[: last + 1] if not _LEFT_OUT & tags(c)]
    originals = [pieces_of(cell) for cell in variant.cells]
    for swap in swaps:
        replace_definition(variant.cells, originals, bad=swap["bad"], cured=swap["cured"])
    statements: list[Statement] = []
    cells: list[Any] = []
    for cell in variant.cells:
        if "evidence" in tags(cell):
            new = evidence_statements(cell, swaps)
            statements += new
            cells += [_statement_cell(statement) for statement in new]
        else:
            cells.append(_may_have_nothing_to_show(cell))
    variant.cells = cells
    _check_coverage(statements, swaps)
    return variant, statements


def evidence_statements(cell: Any, swaps: Sequence[Any]) -> list[Statement]:
    """Return the statements of an evidence cell, each with the swaps that must break it."""
    statements = []
    for node, text in top_level(cell):
        if isinstance(node, ast.Assert):
            raise SwapError(f"`{text}` says nothing when it holds: write shown(claim, ...)")
        claim = _claim(node)
        breaking = frozenset(swap["bad"] for swap in swaps if claim in swap["breaks"])
        statements.append(Statement(text, claim, breaking))
    return statements


def _claim(node: ast.stmt) -> str:
    """Return the claim of a call of `shown`, else ''."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return ""
    function, (first, *_) = node.value.func, (*node.value.args, None)
    if not isinstance(function, ast.Name) or function.id != "shown":
        return ""
    if not isinstance(first, ast.Constant):
        raise SwapError(f"`{ast.unparse(node)}` needs its claim as a plain string")
    return str(first.value)


def _check_coverage(statements: Sequence[Statement], swaps: Sequence[Any]) -> None:
    claims = {statement.claim for statement in statements}
    for swap in swaps:
        if not swap["breaks"]:
            raise SwapError(f"no claim is to fail when {swap['bad']} is swapped: add one")
        for claim in swap["breaks"]:
            if claim not in claims:
                raise SwapError(f"{swap['bad']} breaks {claim!r}, which the evidence does not say")


def _statement_cell(statement: Statement) -> Any:
    marks = ["evidence", _ANY_ERROR] if statement.claim else ["evidence"]
    return nbformat.v4.new_code_cell(statement.text, metadata={"tags": marks})


def _may_have_nothing_to_show(cell: Any) -> Any:
    """Let a cell fail that only looks at a value: in the variant there may be nothing to see."""
    if cell.cell_type == "code" and not cell.source.startswith("%"):
        nodes = ast.parse(python_source(cell)).body
        if all(isinstance(node, ast.Expr) for node in nodes):
            cell.metadata["tags"] = [*tags(cell), _ANY_ERROR]
    return cell


def _error(cell: Any) -> str | None:
    """Return the type of the error that a cell ended with, or that this machine cannot show it."""
    if any(_UNSHOWN in output.get("text", "") for output in cell.outputs):
        return _UNSHOWN
    return next((output.ename for output in cell.outputs if output.output_type == "error"), None)
