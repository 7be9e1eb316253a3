"""The sections of a lesson module: one for each %%importable cell, in an order that imports.

A section keeps its place, so that its lines keep their numbers. It moves to the end only when it
must: when it needs a name of a later section at once, or when a later section would override it.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from helpers.cells.free_names import Names

LINES_PER_SECTION = 1000
FIRST_LINE = "# Written by %%importable: line 2005 here is line 5 of the second cell that defines."


@dataclass(frozen=True)
class Section:
    """One cell: its source, without the magic's line, and its place in the file (0: none yet)."""

    source: str
    names: Names
    cell_id: str | None = None  # as the front end tells it; many do not
    place: int = 0

    def replaces(self, old: "Section") -> bool:
        """Return whether this is a new version of an older section."""
        if self.cell_id is not None and self.cell_id == old.cell_id:
            return True
        names = old.names.defined
        return self.source == old.source or (bool(names) and names <= self.names.defined)

    def overrides(self, other: "Section") -> bool:
        """Return whether both define a name. An import that both have does not count."""
        both = self.names.defined & other.names.defined
        return bool(both - (self.names.imported & other.names.imported))


@dataclass(frozen=True)
class Arrangement:
    """The sections of a file in order, the new one among them, and those that no longer import."""

    new: Section
    sections: tuple[Section, ...]
    left_out: tuple[Section, ...]


def arrange(sections: Sequence[Section], new: Section) -> Arrangement:
    """Put a new section in its place: the one it replaces, or the end if it cannot stand there."""
    kept = [section for section in sections if not new.replaces(section)]
    end = 1 + max((section.place for section in sections), default=0)
    places = [section.place for section in sections if new.replaces(section)]
    new = replace(new, place=next((p for p in places if _can_stand(new, p, kept)), end))
    lesson_names = defined_by([*sections, new])
    ordered: list[Section] = []
    left_out: list[Section] = []
    for section in sorted([*kept, new], key=lambda s: s.place):
        missing = (section.names.needed_at_once & lesson_names) - defined_by(ordered)
        (left_out if missing and section is not new else ordered).append(section)
    return Arrangement(new, tuple(ordered), tuple(left_out))


def defined_by(sections: Sequence[Section]) -> frozenset[str]:
    """Return every name that some section defines."""
    return frozenset().union(*(section.names.defined for section in sections))


def file_text(sections: Sequence[Section]) -> str:
    """Return the module's text: section 2 starts at line 2001, below the line of its magic."""
    nodes = [node for section in sections for node in _future_imports(section.source)]
    futures = sorted({alias.name for node in nodes for alias in node.names})
    lines = [FIRST_LINE, " ".join(f"from __future__ import {name};" for name in futures)]
    for section in sections:
        lines += [""] * (section.place * LINES_PER_SECTION - len(lines))
        lines += ["# %%importable", *_without_futures(section.source).splitlines()]
    return "\n".join(lines) + "\n"


def _can_stand(new: Section, place: int, kept: Sequence[Section]) -> bool:
    earlier = [section for section in kept if section.place < place]
    later = [section for section in kept if section.place > place]
    waits_for = (new.names.needed_at_once & defined_by(later)) - defined_by(earlier)
    return not waits_for and not any(section.overrides(new) for section in later)


def _future_imports(source: str) -> list[ast.ImportFrom]:
    body = ast.parse(source).body
    return [n for n in body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]


def _without_futures(source: str) -> str:
    """Blank the lines of future imports: Python wants those at the top of the file."""
    lines = source.splitlines()
    for node in _future_imports(source):
        for number in range(node.lineno - 1, node.end_lineno or node.lineno):
            lines[number] = ""
    return "\n".join(lines)
