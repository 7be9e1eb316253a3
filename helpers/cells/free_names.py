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

_RUN_AT_ONCE = frozenset({"listcomp", "setcomp", "dictcomp", "genexpr"})
_IN_EVERY_MODULE = frozenset({"__name__", "__file__", "__doc__", "__spec__", "__builtins__"})


@dataclass(frozen=True)
class Names:
    """The names of one source text."""

    defined: frozenset[str]  # at its top level, imports included
    imported: frozenset[str]
    needed_at_once: frozenset[str]  # while it is imported: bases, decorators, defaults, constants
    needed_later: frozenset[str]  # only inside functions
    has_star: bool  # `from ... import *`: then any name may be defined


def names_of(source: str) -> Names:
    """Return the names that a source text defines and needs. Raises SyntaxError."""
    tree = ast.parse(source)
    star = any(
        a.name == "*" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names
    )
    top = symtable.symtable(
        ast.unparse(_WithoutIdleAnnotations(tree).visit(tree)), "<cell>", "exec"
    )
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
        has_star=star,
    )


def _tables(
    table: symtable.SymbolTable, runs_at_once: bool
) -> Iterator[tuple[symtable.SymbolTable, bool]]:
    """Yield every scope, with whether its code runs while the module is imported."""
    yield table, runs_at_once
    for child in table.get_children():
        waits = child.get_type() == "function" and child.get_name() not in _RUN_AT_ONCE
        yield from _tables(child, runs_at_once and not waits)


class _WithoutIdleAnnotations(ast.NodeTransformer):
    """Drop annotations that Python never evaluates: the symbol table would count them as used."""

    def __init__(self, tree: ast.Module) -> None:
        self.all_idle = any(
            isinstance(node, ast.ImportFrom)
            and node.module == "__future__"
            and any(alias.name == "annotations" for alias in node.names)
            for node in tree.body
        )
        self.in_function = False

    def visit_arg(self, node: ast.arg) -> ast.arg:
        if self.all_idle:
            node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if self.all_idle or self.in_function:
            node.annotation = ast.Constant(None)
        self.generic_visit(node)
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if self.all_idle:
            node.returns = None
        return self._inside(node, in_function=True)

    visit_FunctionDef = _function  # noqa: N815
    visit_AsyncFunctionDef = _function  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._inside(node, in_function=False)

    def _inside(self, node: ast.AST, *, in_function: bool) -> ast.AST:
        outside, self.in_function = self.in_function, in_function
        self.generic_visit(node)
        self.in_function = outside
        return node
