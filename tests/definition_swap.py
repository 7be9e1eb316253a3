"""Put one definition of a notebook in the place of another, with all that it needs."""

import ast
import io
import tokenize
from dataclasses import dataclass
from itertools import chain
from typing import Any

from notebook_tools import python_source

from helpers.cells.free_names import Names, names_of


class SwapError(Exception):
    """The swaps of a notebook, or the comments of its evidence, cannot be understood."""


@dataclass(frozen=True)
class Piece:
    """One top-level statement of a cell: the names it defines, and its lines."""

    text: str
    first: int  # line, from 0
    end: int
    names: Names
    is_definition: bool

    @property
    def needs(self) -> frozenset[str]:
        return self.names.needed_at_once | self.names.needed_later


def top_level(cell: Any) -> list[tuple[ast.stmt, str]]:
    """Return the statements of a cell, each with its whole lines, comments included."""
    source = python_source(cell)
    lines = source.splitlines()
    nodes = ast.parse(source).body
    return [(node, "\n".join(lines[_first(node) : node.end_lineno])) for node in nodes]


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1


def pieces_of(cell: Any) -> list[Piece]:
    """Return the top-level statements of a cell; none for a cell without code."""
    definition = ast.ClassDef | ast.FunctionDef
    return [
        Piece(
            text, _first(node), node.end_lineno or 0, names_of(text), isinstance(node, definition)
        )
        for node, text in (top_level(cell) if cell.cell_type == "code" else ())
    ]


def replace_definition(
    cells: list[Any], pieces: list[list[Piece]], *, bad: str, cured: str
) -> None:
    """Put the cured definition in the place of the bad one, under its name.

    `pieces` are those of the cells before any swap.
    """
    place, old = _definition(pieces, bad)
    _, new = _definition(pieces, cured)
    text = "\n\n\n".join([*_carried(new, place, pieces), _renamed(new.text, cured, bad)])
    lines = cells[place].source.splitlines()
    if lines[old.first : old.end] != old.text.splitlines():
        raise SwapError(f"the cell of {bad} has another swap before it: give it its own cell")
    lines[old.first : old.end] = text.splitlines()
    cells[place].source = "\n".join(lines)


def _definition(pieces: list[list[Piece]], name: str) -> tuple[int, Piece]:
    for place, piece in ((place, piece) for place, cell in enumerate(pieces) for piece in cell):
        if piece.is_definition and name in piece.names.defined:
            return place, piece
    raise SwapError(f"no class or function {name} is defined before the evidence")


def _carried(new: Piece, place: int, pieces: list[list[Piece]]) -> list[str]:
    """Return what a definition needs and what is not there yet at an earlier place."""
    there = {
        name for of_cell in pieces[: place + 1] for piece in of_cell for name in piece.names.defined
    }
    later = [*chain.from_iterable(pieces[place + 1 :])]
    carried: list[Piece] = []
    wanted = set(new.needs) - there
    while wanted:
        name = wanted.pop()
        found = next((piece for piece in later if name in piece.names.defined), None)
        if found is not None and found not in carried and found != new:
            carried.append(found)
            wanted |= found.needs - there
    return [piece.text for piece in later if piece in carried]


def _renamed(text: str, old: str, new: str) -> str:
    """Return a source text with a name replaced wherever it stands as a name."""
    lines = text.splitlines()
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for token in reversed(tokens):
        if token.type == tokenize.NAME and token.string == old:
            (row, start), (_, end) = token.start, token.end
            lines[row - 1] = lines[row - 1][:start] + new + lines[row - 1][end:]
    return "\n".join(lines)
