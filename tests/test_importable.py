"""The %%importable magic: in a shell of this process, and in a real kernel under nbclient."""

import atexit
import inspect
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing import get_all_start_methods
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from notebook_tools import execute, made_up, output_text
from talking import said_by
from traitlets.config import Config

from helpers.cells.lesson_folder import LessonFolder, sweep
from helpers.importable import module_name, register

FOLDERS = "larger-than-ram-lesson-*"


class Notebook:
    """A shell of this process with the magic, in a folder of its own."""

    def __init__(self, shell: InteractiveShell, folder: Path) -> None:
        self.shell = shell
        self.folder = folder
        self.cell_id: str | None = None
        shell.get_parent = lambda: {"metadata": {"cellId": self.cell_id}}
        register(shell)

    def run(self, source: str) -> Any:
        """Run a cell and return its value; an error is raised here."""
        result = self.shell.run_cell(source)
        result.raise_error()
        return result.result

    def define(self, source: str, *, cell_id: str | None = None) -> None:
        """Run an %%importable cell."""
        self.cell_id = cell_id
        self.run(f"%%importable\n{source}")

    def error(self, source: str) -> str:
        """Return the type and message of the error that an %%importable cell ends with."""
        error = self.shell.run_cell(f"%%importable\n{source}").error_in_exec
        return f"{type(error).__name__}: {error}"

    @property
    def file(self) -> Path:
        (file,) = self.folder.glob(f"{FOLDERS}/lesson.py")
        return file

    def in_a_child(self, expression: str) -> str:
        """Return what a fresh Python that imports the module prints for an expression."""
        env = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
        return said_by(f"import lesson; print({expression})", env=env)


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "settings"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    shell.run_line_magic("colors", "nocolor")
    yield Notebook(shell, tmp_path)
    shell.atexit_operations()
    atexit.unregister(shell.atexit_operations)
    for name in set(sys.modules) - before:
        if name.startswith(("lesson", "second")):
            del sys.modules[name]
    if folder := shell.magics_manager.magics["cell"]["importable"].__self__._folder:
        folder.close()


# --- what a reader relies on -------------------------------------------------------------------


def test_the_names_of_a_cell_are_in_the_notebook_and_in_a_module(notebook: Notebook) -> None:
    notebook.define("import math\nSIDES = 4\ndef area(r):\n    return SIDES * math.floor(r)")
    assert notebook.run("area(2.5), SIDES, math.floor(1.5)") == (8, 4, 1)
    assert notebook.run("area.__module__") == "lesson"
    assert notebook.in_a_child("lesson.area(3)") == "12"


def test_running_a_cell_again_within_a_second_reaches_children_despite_cached_bytecode(
    notebook: Notebook,
) -> None:
    for value in "12345":  # same size every time, faster than the clock of a .pyc
        notebook.define(f"VALUE = {value}")
        assert notebook.in_a_child("lesson.VALUE") == value
    assert list(notebook.file.parent.glob("__pycache__/*.pyc"))  # there was something to be stale


def test_classes_of_other_cells_keep_their_identity(notebook: Notebook) -> None:
    notebook.define("class First:\n    pass")
    first = notebook.run("first = First()\nfirst")
    notebook.define("class Second(First):\n    pass")
    notebook.define("class Second(First):\n    size = 2")
    assert type(pickle.loads(pickle.dumps(first))) is notebook.run("First")
    assert notebook.run("issubclass(Second, First), Second.size") == (True, 2)


def test_a_cell_run_again_stands_at_its_place_and_others_keep_their_lines(
    notebook: Notebook,
) -> None:
    notebook.define("import math\ndef f():\n    return 1")
    register(notebook.shell)  # again: it keeps what there is
    notebook.define("import math\ndef g():\n    return f()")
    notebook.define("import math\ndef f():\n    # a line more\n    return 2")
    text = notebook.file.read_text("utf-8")
    assert text.index("def f") < text.index("def g")
    assert "return 1" not in text
    assert notebook.run("g()") == 2
    assert inspect.getsource(notebook.run("g")) == "def g():\n    return f()\n"
    assert inspect.getsource(notebook.run("f")).splitlines()[1] == "    # a line more"


def test_a_traceback_shows_the_line_of_the_cell(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.define("VALUE = 1")
    notebook.define("def fails():\n    raise KeyError('here')")
    notebook.shell.run_cell("fails()")
    shown = capsys.readouterr().out
    assert "lesson.py:2003" in shown  # second section, third line of its cell
    assert "raise KeyError('here')" in shown


def test_the_same_cell_with_other_names_replaces_itself_and_takes_the_old_names_back(
    notebook: Notebook,
) -> None:
    notebook.define("def old():\n    return 1\ndef kept():\n    return 2", cell_id="a")
    notebook.define("def new():\n    return 1\ndef kept():\n    return 3", cell_id="a")
    assert notebook.run("'old' in globals(), kept()") == (False, 3)
    assert notebook.in_a_child("hasattr(lesson, 'old'), lesson.kept()") == "False 3"


def test_the_cell_that_ran_last_wins_in_children_too(notebook: Notebook) -> None:
    notebook.define("class Stub:\n    answer = 1", cell_id="exercise")
    notebook.define("class Stub:\n    answer = 2\nclass More:\n    pass", cell_id="solution")
    notebook.define("class Stub:\n    answer = 3", cell_id="exercise")
    assert notebook.run("Stub.answer") == 3
    assert notebook.in_a_child("lesson.Stub.answer") == "3"


def test_a_cell_that_comes_to_need_a_later_one_moves_behind_it(notebook: Notebook) -> None:
    notebook.define("class A:\n    pass")
    notebook.define("class B:\n    pass")
    notebook.define("class A(B):\n    pass")
    assert notebook.in_a_child("lesson.A.__mro__[1].__name__") == "B"


def test_a_cell_whose_base_is_gone_is_left_out_and_the_reader_is_told(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.define("class Base:\n    pass", cell_id="a")
    notebook.define("class Built(Base):\n    pass", cell_id="b")
    notebook.define("class Renamed:\n    pass", cell_id="a")
    assert "Run the cell that defines Built again" in capsys.readouterr().out
    assert notebook.run("'Built' in globals()") is False
    notebook.define("class Built(Renamed):\n    pass", cell_id="b")
    assert notebook.in_a_child("lesson.Built.__mro__[1].__name__") == "Renamed"


def test_future_imports_stand_in_any_cell(notebook: Notebook) -> None:
    notebook.define("VALUE = 1")
    notebook.define("from __future__ import annotations\ndef f(x: Unknown) -> None: ...")
    assert notebook.in_a_child("lesson.f.__annotations__['x']") == "Unknown"
    assert inspect.getsourcelines(notebook.run("f"))[1] == 2003


def test_a_folder_that_was_cleaned_away_comes_back_whole(notebook: Notebook) -> None:
    notebook.define("A = 1")
    shutil.rmtree(notebook.file.parent)
    notebook.define("B = 2")
    assert notebook.in_a_child("lesson.A + lesson.B") == "3"


# --- a cell that fails -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "VALUE = 2\nraise RuntimeError('on purpose')",
        "VALUE = 2\nraise KeyboardInterrupt",
        "VALUE = 2\nOTHER = undefined_name",
        "VALUE = 2\ndef broken(:\n    pass",
    ],
    ids=["raises", "interrupted", "name error", "syntax error"],
)
def test_a_cell_that_fails_changes_nothing(notebook: Notebook, source: str) -> None:
    notebook.define("VALUE = 1\ndef read():\n    return VALUE", cell_id="a")
    before = notebook.file.read_bytes()
    notebook.cell_id = "a"
    assert notebook.error(source) != "NoneType: None"
    assert notebook.file.read_bytes() == before
    assert notebook.run("VALUE, read(), 'OTHER' in globals()") == (1, 1, False)
    assert inspect.getsource(notebook.run("read")) == "def read():\n    return VALUE\n"


@pytest.mark.parametrize(
    ("source", "patterns"),
    [
        (
            "def inner():\n    raise ValueError('seen')\ninner()",
            ["ValueError: seen", r"raise ValueError\('seen'\)"],
        ),
        # %%importable is the first line of the cell
        ("x = 1\ndef broken(:\n    pass", ["line 3|:3", "SyntaxError: invalid syntax"]),
    ],
)
def test_an_error_is_shown_with_the_line_of_the_cell_and_no_machinery(
    notebook: Notebook, source: str, patterns: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.error(source)
    shown = capsys.readouterr().out
    assert all(re.search(pattern, shown) for pattern in patterns)
    assert not re.search("run_cell_magic|lesson_module.py", shown)


@pytest.mark.parametrize(
    ("set_up", "source", "advice"),
    [
        ("path = 'here'", "def f():\n    return path", "`path` .* pass it to the function"),
        (
            "import numpy as np",
            "def f():\n    return np.ones(1)",
            "write `import numpy as np` in it",
        ),
        ("from pathlib import Path", "P = Path('.')", "write `from pathlib import Path` in it"),
        ("class Base: pass", "class Built(Base): pass", "`Base` .* define it in an %%importable"),
        ("", "def f():\n    display(1)", "`display` .*write `from IPython"),
        ("x = 1", "values = [x for _ in range(3)]", "`x` .* pass it"),
        ("x = 1", "class C:\n    size = x", "`x` .* pass it"),
        ("x = 1", "def f(a=x): ...", "`x` .* pass it"),
        ("deco = print", "@deco\ndef f(): ...", "`deco`"),
    ],
)
def test_a_name_that_only_the_notebook_has_is_refused_with_advice(
    notebook: Notebook, set_up: str, source: str, advice: str
) -> None:
    notebook.run(set_up)
    assert re.search(advice, notebook.error(source))
    assert not list(notebook.folder.glob(f"{FOLDERS}/lesson.py"))


@pytest.mark.parametrize(
    "source",
    [
        "values = {x: x for x in (y for y in range(3))}",
        "class C:\n    x = 1\n    y = x\n    def f(self): return self.x",
        "def f():\n    return later\nlater = x = 1",
        "def f():\n    return of_a_later_cell()",
        "import math as x\ndef f(): return x",
        "from __future__ import annotations\ndef f(a: x) -> x:\n    b: x = 1\n    return b",
        "def f():\n    a: x = 1\n    return a",
        "values = [x for y in range(3) if (x := y)]",
        "try:\n    pass\nexcept ValueError as x:\n    print(x)",
        "def f():\n    global x\n    x = 1\ndef g(): return x",
        "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x += 1\n    return g",
        "f = lambda x, *, y=1: x + y",
        "match 1:\n    case x: print(x)",
        "class C:\n    def f(self): return __class__, super().__init__",
        "def f(a: 'x'): ...",
    ],
)
def test_names_that_a_cell_makes_itself_raise_no_alarm(notebook: Notebook, source: str) -> None:
    notebook.run("x = 0")
    notebook.define(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("%matplotlib inline", "line 2: `%matplotlib inline` is a command of the notebook"),
        ("x = 1\nfiles = !ls", "line 3: `files = !ls` is a command of the notebook"),
        ("x = %timeit 1", "is a command of the notebook"),
        ("len?", "is a command of the notebook"),
        ("from math import *", r"line 2: .* import the names that this cell uses"),
        ("x = '\udcff'", r"Python cannot read this cell \("),
        ("x = " + 9999 * "-" + "1", r"Python cannot read this cell \("),
    ],
)
def test_syntax_that_is_no_modules_is_refused_by_name(
    notebook: Notebook, source: str, message: str
) -> None:
    assert re.match(f"NotImportableError: .*{message}", notebook.error(source))


def test_a_cell_that_cannot_be_written_says_where_and_what_to_do(notebook: Notebook) -> None:
    notebook.define("A = 1")
    folder = notebook.file.parent
    shutil.rmtree(folder)
    folder.touch()
    said = notebook.error("A = 2")
    folder.unlink()
    assert said.startswith(f"OSError: the cell cannot be written into {folder} (")
    assert said.endswith("free some disk space or restart the notebook, then run its cells again")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("json", "a module 'json' exists already.*`%%importable my_json`"),
        ("two words", "'two words' is no module name"),
        ("class", "'class' is no module name"),
    ],
)
def test_a_module_can_be_named_as_nothing_else_is(
    notebook: Notebook, name: str, message: str
) -> None:
    notebook.run("%%importable second_module\nclass Here:\n    pass")
    assert notebook.run("Here.__module__") == "second_module"
    error = notebook.shell.run_cell(f"%%importable {name}\nx = 1").error_in_exec
    assert re.search(message, str(error))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("01_load_everything.ipynb", "lesson_01_load_everything"),
        ("notebooks/02 mapped & starving.ipynb", "lesson_02_mapped_starving"),
        ("RTC:notebooks/Übung-1.ipynb", "lesson_bung_1"),
        (r"C:\lessons\03_x.ipynb", "lesson_03_x"),
        ("", "lesson"),
    ],
)
def test_a_module_is_called_as_its_notebook(
    name: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LARGER_THAN_RAM_NOTEBOOK", raising=False)
    monkeypatch.setenv("JPY_SESSION_NAME", name)
    assert module_name({}) == expected
    assert module_name({"__vsc_ipynb_file__": "/x/from_code.ipynb"}) == "lesson_from_code"


# --- the folder --------------------------------------------------------------------------------


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of temporary files in which one lesson lives."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_the_owner_s_alone_and_stays_until_it_is_closed(temporary: Path) -> None:
    folder, second = LessonFolder(), LessonFolder()
    assert folder.path.parent == temporary
    assert folder.path.stat().st_mode & 0o777 == 0o700 or sys.platform == "win32"
    sweep()
    assert {*temporary.iterdir()} == {folder.path, second.path}
    for each in (folder, folder, second):
        each.close()
    assert not any(temporary.iterdir())


@pytest.mark.parametrize(
    "left", ["an orphan", "opened to others", "another's", "no lock", "a link"]
)
def test_only_an_orphan_of_ours_is_swept(temporary: Path, left: str) -> None:
    folder = temporary / "larger-than-ram-lesson-x"
    folder.mkdir(0o700)
    (folder / "lesson.py").touch()
    if left != "no lock":
        (folder / "lock").touch()
    if left == "opened to others":
        folder.chmod(0o777)
    elif left == "another's":
        if not hasattr(os, "geteuid") or os.geteuid():
            pytest.skip("only root can give a folder away")
        os.chown(folder, 12345, -1)
    elif left == "a link":
        folder.rename(temporary / "elsewhere")
        folder.symlink_to(temporary / "elsewhere")
    sweep()
    assert (folder / "lesson.py").exists() is (left != "an orphan")


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
def test_a_killed_notebook_is_swept_up_after(temporary: Path) -> None:
    code = "import os; from helpers.importable import LessonFolder as New; f = New(); os.kill("
    command = [sys.executable, "-c", f"{code}os.getpid(), 9)"]
    assert subprocess.run(command, env={**os.environ, "TMPDIR": str(temporary)}).returncode == -9
    assert list(temporary.glob(FOLDERS))
    sweep()
    assert not any(temporary.iterdir())


# --- a real kernel -----------------------------------------------------------------------------

DATASET = """%%importable
import os
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return i * FACTOR, os.getpid()
FACTOR = {factor}
"""
LOOP = """
loader = DataLoader(Rows(), num_workers=1, multiprocessing_context="{method}")
values, pids = zip(*loader)
print([int(v) for v in values], os.getpid() in [int(p) for p in pids])
"""


# A kernel is killed, and tidies nothing up, while it has children in its own process group.
STOP_SERVERS = """
from multiprocessing import forkserver, resource_tracker
forkserver._forkserver._stop()
resource_tracker._resource_tracker._stop()
"""


def test_workers_run_the_newest_class_of_a_cell_under_every_start_method(tmp_path: Path) -> None:
    methods = get_all_start_methods()
    methods += methods[-1:]  # the fork server of the first time lives on and must not remember
    cells = []
    for factor, method in enumerate(methods, start=1):
        cells += [DATASET.replace("{factor}", str(factor)), LOOP.replace("{method}", method)]
    load = "from helpers.importable import register; register(get_ipython())"
    made = made_up(load, *cells, STOP_SERVERS, "Rows.__module__")
    done = execute(tmp_path / "07_made_up.ipynb", notebook=made, timeout=120)
    shown = [output_text(cell).strip() for cell in done.cells[1:]]
    expected = [f"[0, {f}, {2 * f}, {3 * f}] False" for f in range(1, len(methods) + 1)]
    assert shown[1:-2:2] == expected
    assert shown[-1] == "'lesson_07_made_up'"
    assert list(tmp_path.iterdir()) == []
