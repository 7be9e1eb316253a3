"""The %%importable cell magic: a cell that every process can import.

The cell is written into a module of the running notebook, executed there, and the names that it
defines are put into the notebook. So a class reads as plain Python, stands in one place, and
DataLoader workers find it under every start method. Running a cell again replaces it; a cell that
fails leaves file, module and notebook as they were.
"""

import ast
import builtins
import re
import sys
from importlib.util import find_spec
from keyword import iskeyword
from os import environ
from types import ModuleType
from typing import Any

from helpers.cells.free_names import names_of
from helpers.cells.lesson_folder import LessonFolder, sweep
from helpers.cells.lesson_module import LessonModule
from helpers.cells.sections import Arrangement, Section

_NOT_PYTHON = re.compile(r"\s*([\w.,\s]+=\s*)?[%!]|.*\?\s*$")
_BUILTINS = frozenset(dir(builtins)) - {"get_ipython", "display", "profile"}  # put there by IPython


class NotImportableError(Exception):
    """A cell cannot become part of a module. IPython shows `shown` in place of a traceback."""

    def __init__(self, message: str, shown: list[str] | None = None) -> None:
        super().__init__(message)
        self._shown = shown or [f"{type(self).__name__}: {message}"]

    def _render_traceback_(self) -> list[str]:
        return self._shown


def register(shell: Any) -> None:
    """Give a shell the %%importable magic, and remove what killed notebooks left behind."""
    sweep()
    if "importable" not in shell.magics_manager.magics["cell"]:  # a second call keeps the modules
        magic = ImportableMagic(shell)
        shell.register_magic_function(magic.run_cell, magic_kind="cell", magic_name="importable")


class ImportableMagic:
    """The magic of one shell. It makes the folder and the modules when they are first needed."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._folder: LessonFolder | None = None
        self._modules: dict[str, LessonModule] = {}

    def run_cell(self, line: str, cell: str) -> None:
        """Write the cell into a module of this notebook and put its names into the notebook.

        %%importable [module]     the module is called as the notebook unless you name it
        """
        self._check_syntax(cell)
        module = self._module(line.strip() or module_name(self._shell.user_ns))
        section = Section(cell, names_of(cell), _cell_id(self._shell))
        self._check_names(section, module)
        before = dict(module.module.__dict__)
        try:
            arrangement = module.add(section)
        except BaseException as error:
            _show_only_the_cell(self._shell, error, module.path)
            module.forget_lines()
            raise
        self._publish(module, arrangement, before)

    def _check_syntax(self, cell: str) -> None:
        """Compile the cell on its own, under the name and the line numbers that the reader sees."""
        text = "\n" + cell  # the magic's own line is the first
        try:
            name = self._shell.compile.cache(text, self._shell.execution_count)
            tree = ast.parse(text)
            compile(text, name, "exec", dont_inherit=True)
        except (ValueError, RecursionError, MemoryError) as error:  # no text, or nested too deep
            problem = f"Python cannot read this cell ({error}): remove what is unusual in it"
            raise NotImportableError(problem) from None
        except SyntaxError as error:
            error.filename = name
            line = text.splitlines()[error.lineno - 1] if error.lineno else ""
            if _NOT_PYTHON.match(line):
                raise NotImportableError(
                    f"line {error.lineno}: `{line.strip()}` is a command of the notebook, not "
                    "Python: move it to a cell without %%importable"
                ) from None
            shown = self._shell.SyntaxTB.structured_traceback(type(error), error, [])
            raise NotImportableError(str(error), shown) from None
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                raise NotImportableError(
                    f"line {node.lineno}: `from {node.module} import *` hides where names come "
                    "from: import the names that this cell uses"
                )

    def _check_names(self, section: Section, module: LessonModule) -> None:
        """Refuse names that only the notebook has: workers import the cell without it."""
        known = _BUILTINS | module.names_beside(section)
        for name in sorted((section.names.needed_at_once | section.names.needed_later) - known):
            value = self._shell.user_ns.get(name, getattr(builtins, name, None))
            if name in self._shell.user_ns or value is not None:
                raise NotImportableError(_name_hint(name, value, module.name))

    def _module(self, name: str) -> LessonModule:
        if name not in self._modules:
            if not name.isidentifier() or iskeyword(name):
                raise NotImportableError(f"{name!r} is no module name: use letters, digits and _")
            if name in sys.modules or find_spec(name) is not None:
                raise NotImportableError(
                    f"a module {name!r} exists already: give another name, as in "
                    f"`%%importable my_{name}`"
                )
            if self._folder is None:
                self._folder = LessonFolder()
                sys.path.append(str(self._folder.path))  # children are given the same sys.path
            self._modules[name] = LessonModule(name, self._folder)
        return self._modules[name]

    def _publish(
        self, module: LessonModule, arrangement: Arrangement, before: dict[str, Any]
    ) -> None:
        """Put the cell's names into the notebook, and take back those that the module has lost."""
        now = module.module.__dict__
        notebook = self._shell.user_ns
        for name in before.keys() - now.keys():
            if notebook.get(name, now) is before[name]:
                del notebook[name]
        self._shell.push({n: now[n] for n in arrangement.new.names.defined if n in now})
        for section in arrangement.left_out:
            names = ", ".join(sorted(section.names.defined - section.names.imported))
            sys.stdout.write(
                f"Run the cell that defines {names} again: it builds on a name that has changed.\n"
            )


def module_name(user_ns: dict[str, Any]) -> str:
    """Return a module name for the running notebook: 'lesson_01_load_everything', or 'lesson'."""
    path = (
        environ.get("LARGER_THAN_RAM_NOTEBOOK")  # make run and the tests
        or user_ns.get("__vsc_ipynb_file__")  # VS Code
        or environ.get("JPY_SESSION_NAME")  # Jupyter Server
        or ""
    )
    stem = re.split(r"[/\\:]", path)[-1].removesuffix(".ipynb")
    return re.sub(r"_+", "_", re.sub(r"\W", "_", f"lesson_{stem}", flags=re.ASCII)).strip("_")


def _cell_id(shell: Any) -> str | None:
    """Return the id of the running cell where the front end tells it, as JupyterLab does."""
    if not hasattr(shell, "get_parent"):  # IPython in a terminal
        return None
    cell_id = (shell.get_parent() or {}).get("metadata", {}).get("cellId")
    return cell_id if isinstance(cell_id, str) else None


def _name_hint(name: str, value: object, own_module: str) -> str:
    """Return what to do about a name that only the notebook has."""
    problem = f"`{name}` is known to the notebook, but not to workers, which import only this cell"
    origin = getattr(value, "__module__", None)
    if isinstance(value, ModuleType):
        tail = "" if value.__name__ == name else f" as {name}"
        return f"{problem}: write `import {value.__name__}{tail}` in it"
    if origin not in (None, "__main__", own_module) and getattr(value, "__name__", "") == name:
        return f"{problem}: write `from {origin} import {name}` in it"
    return (
        f"{problem}: pass it to the function as an argument, or define it in an %%importable cell"
    )


def _show_only_the_cell(shell: Any, error: BaseException, path: str) -> None:
    """Let IPython draw the traceback from the cell's first line on, without IPython's frames."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename != path:
        traceback = traceback.tb_next
    shown = shell.InteractiveTB.structured_traceback(type(error), error, traceback, tb_offset=0)
    error.__dict__["_render_traceback_"] = lambda: shown
