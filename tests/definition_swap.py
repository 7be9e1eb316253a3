"""Put one definition of a notebook in the place of another, with all that it needs."""

import ast
import io
import tokenize
from dataclasses import dataclass
from typing import Any

from notebook_tools import python_source

from helpers.cells.free_names import names_of


class SwapError(Exception):
    """The swaps of a notebook, or the comments of its evidence, cannot be understood."""


@dataclass(frozen=True)
class Piece:
    """One top-level statement of a cell: the names it defines, and its lines."""

    text: str
    first: int  # line, from 0
    end: int
    defines: frozenset[str]
    needs: frozenset[str]
    is_definition: bool


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
    if cell.cell_type != "code":
        return []
    pieces = []
    for node, text in top_level(cell):
        names = names_of(text)
        pieces.append(
            Piece(
                text=text,
                first=_first(node),
                end=node.end_lineno or node.lineno,
                defines=names.defined,
                needs=names.needed_at_once | names.needed_later,
                is_definition=isinstance(node, ast.ClassDef | ast.FunctionDef),
            )
        )
    return pieces


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
    for place, of_cell in enumerate(pieces):
        for piece in of_cell:
            if piece.is_definition and name in piece.defines:
                return place, piece
    raise SwapError(f"no class or function {name} is defined before the evidence")


def _carried(new: Piece, place: int, pieces: list[list[Piece]]) -> list[str]:
    """Return what a definition needs and what is not there yet at an earlier place."""
    there = {name for of_cell in pieces[: place + 1] for piece in of_cell for name in piece.defines}
    later = [piece for of_cell in pieces[place + 1 :] for piece in of_cell]
    carried: list[Piece] = []
    wanted = set(new.needs) - there
    while wanted:
        name = wanted.pop()
        piece = next((p for p in later if name in p.defines), None)
        if piece is not None and piece not in carried and piece != new:
            carried.append(piece)
            wanted |= piece.needs - there
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
