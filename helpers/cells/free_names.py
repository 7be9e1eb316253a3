"""Which names a piece of Python defines, and which it needs from elsewhere. Nothing is executed.

    import math                                 defined, imported: math
    class Circle(Shape):                        defined: Circle     needed at once: Shape
        def area(self):
            return math.pi * scale              needed later: scale

Python's own symbol table decides what is local, so comprehensions, class bodies, `global` and
`except ... as` need no rules here.
"""

import ast
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

_RUN_AT_ONCE = frozenset({"listcomp", "setcomp", "dictcomp", "genexpr"})
_IN_EVERY_MODULE = frozenset({"__name__", "__file__", "__doc__", "__spec__", "__builtins__"})


@dataclass(frozen=True)
class Names:
    """The names of one source text."""

    defined: frozenset[str]  # at its top level, imports included
    imported: frozenset[str]
    needed_at_once: frozenset[str]  # while it is imported: bases, decorators, defaults, constants
    needed_later: frozenset[str]  # only inside functions


def names_of(source: str) -> Names:
    """Return the names that a source text defines and needs. Raises SyntaxError."""
    tree = ast.parse(source)
    _drop_idle_annotations(tree)
    top = symtable.symtable(ast.unparse(tree), "<cell>", "exec")
    defined: set[str] = set()
    at_once: set[str] = set()
    later: set[str] = set()
    for table, runs_at_once in _tables(top, True):
        for symbol in table.get_symbols():
            is_global = table is top or symbol.is_global()
            if is_global and (symbol.is_assigned() or symbol.is_imported()):
                defined.add(symbol.get_name())
            elif is_global and symbol.is_referenced():
                (at_once if runs_at_once else later).add(symbol.get_name())
    known = defined | _IN_EVERY_MODULE
    imported = {s.get_name() for s in top.get_symbols() if s.is_imported()}
    return Names(
        defined=frozenset(defined),
        imported=frozenset(imported),
        needed_at_once=frozenset(at_once - known),
        needed_later=frozenset(later - known - at_once),
    )


def _tables(
    table: symtable.SymbolTable, runs_at_once: bool
) -> Iterator[tuple[symtable.SymbolTable, bool]]:
    """Yield every scope, with whether its code runs while the module is imported."""
    yield table, runs_at_once
    for child in table.get_children():
        waits = child.get_type() == "function" and child.get_name() not in _RUN_AT_ONCE
        yield from _tables(child, runs_at_once and not waits)


def _drop_idle_annotations(tree: ast.Module) -> None:
    """Drop annotations that Python never evaluates: the symbol table would count them as used."""
    function = ast.FunctionDef | ast.AsyncFunctionDef
    functions = [node for node in ast.walk(tree) if isinstance(node, function)]
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    futures = [
        alias.name for node in imports if node.module == "__future__" for alias in node.names
    ]
    all_idle = "annotations" in futures
    for node in chain.from_iterable(map(ast.walk, [tree] if all_idle else functions)):
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif all_idle and isinstance(node, ast.arg):
            node.annotation = None
        elif all_idle and isinstance(node, function):
            node.returns = None
