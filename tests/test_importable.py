"""The %%importable magic: in a shell of this process, and in real kernels under nbclient."""

import atexit
import inspect
import os
import pickle
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing import get_all_start_methods
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.manager import KernelManager
from notebook_tools import execute, output_text
from traitlets.config import Config

from helpers.cells.free_names import names_of
from helpers.cells.lesson_folder import FIRST_LINE, make_folder, sweep
from helpers.importable import module_name, register


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
        (file,) = self.folder.glob(".lesson_modules/*/lesson.py")
        return file

    def in_a_child(self, expression: str) -> str:
        """Return what a fresh Python that imports the module prints for an expression."""
        command = [sys.executable, "-c", f"import lesson; print({expression})"]
        env = {**os.environ, "PYTHONPATH": str(self.file.parent), "PYTHONDONTWRITEBYTECODE": ""}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
        return done.stdout.strip()


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    for name in ("LARGER_THAN_RAM_NOTEBOOK", "JPY_SESSION_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "settings"))
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
    folder = shell.magics_manager.magics["cell"]["importable"].__self__._folder
    if folder is not None:
        folder.close()
    assert not (tmp_path / ".lesson_modules").exists()


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
    notebook.define("def f():\n    return 1")
    notebook.define("def g():\n    return f()")
    notebook.define("def f():\n    # a line more\n    return 2")
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


@pytest.mark.filterwarnings("ignore:distutils Version classes")
def test_mprun_reads_the_lines_of_the_right_cell(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distutils", reason="memory_profiler's %mprun needs it; setuptools has one")
    notebook.define("VALUE = 1")
    notebook.define("class Reads:\n    def __init__(self):\n        self.rows = bytes(2**20)")
    notebook.run("%load_ext memory_profiler")
    notebook.run("%mprun -T profile.txt -f Reads.__init__ Reads()")
    assert "self.rows = bytes(2**20)" in (notebook.folder / "profile.txt").read_text("utf-8")


def test_the_same_cell_with_other_names_replaces_itself_and_takes_the_old_names_back(
    notebook: Notebook,
) -> None:
    notebook.define("def old():\n    return 1\ndef kept():\n    return 2", cell_id="a")
    notebook.define("def new():\n    return 1\ndef kept():\n    return 3", cell_id="a")
    assert notebook.run("'old' in globals(), kept()") == (False, 3)
    assert notebook.in_a_child("hasattr(lesson, 'old'), lesson.kept()") == "False 3"


def test_without_an_id_a_cell_that_defines_other_names_is_another_cell(notebook: Notebook) -> None:
    notebook.define("def one():\n    return 1")
    notebook.define("def two():\n    return 2")
    assert notebook.in_a_child("lesson.one() + lesson.two()") == "3"


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


def test_a_module_can_be_named(notebook: Notebook) -> None:
    notebook.run("%%importable second_module\nclass Here:\n    pass")
    assert notebook.run("Here.__module__") == "second_module"


def test_a_folder_that_was_cleaned_away_comes_back_whole(notebook: Notebook) -> None:
    notebook.define("A = 1")
    shutil.rmtree(notebook.folder / ".lesson_modules")
    notebook.define("B = 2")
    assert notebook.in_a_child("lesson.A + lesson.B") == "3"


def test_registering_twice_keeps_the_modules(notebook: Notebook) -> None:
    notebook.define("A = 1")
    register(notebook.shell)
    notebook.define("B = A + 1")
    assert notebook.in_a_child("lesson.B") == "2"


def test_a_notebook_whose_folder_was_removed_goes_on(notebook: Notebook) -> None:
    gone = notebook.folder / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    register(notebook.shell)
    notebook.define("A = 1")
    os.chdir(notebook.folder)
    assert notebook.run("A") == 1


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


def test_a_cell_that_raises_shows_its_own_line_and_no_machinery(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.define("VALUE = 1")
    notebook.error("def inner():\n    raise ValueError('seen')\ninner()")
    shown = capsys.readouterr().out
    assert "ValueError: seen" in shown
    assert "raise ValueError('seen')" in shown
    assert "run_cell_magic" not in shown
    assert "lesson_module.py" not in shown


def test_a_syntax_error_is_shown_with_the_line_of_the_cell(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.error("x = 1\ndef broken(:\n    pass")
    shown = capsys.readouterr().out
    assert re.search("line 3|:3", shown)  # %%importable is the first line of the cell
    assert "SyntaxError: invalid syntax" in shown
    assert "run_cell_magic" not in shown


@pytest.mark.parametrize(
    ("set_up", "source", "advice"),
    [
        ("path = 'here'", "def f():\n    return path", "`path` .* pass it to the function"),
        (
            "import numpy as np",
            "def f():\n    return np.ones(1)",
            "write `import numpy as np` in it",
        ),
        ("import json", "def f():\n    return json", "write `import json` in it"),
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
    assert not (notebook.folder / ".lesson_modules").exists() or not list(
        notebook.folder.glob(".lesson_modules/*/lesson.py")
    )


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return x",
        "values = [x for x in range(3)]",
        "values = {x: x for x in (y for y in range(3))}",
        "class C:\n    x = 1\n    y = x\n    def f(self): return self.x",
        "def f():\n    return later\nlater = x = 1",
        "import math as x\ndef f(): return x",
        "from __future__ import annotations\ndef f(a: x) -> x:\n    b: x = 1\n    return b",
        "def f():\n    a: x = 1\n    return a",
        "def f():\n    if (x := 1): return x",
        "values = [x for y in range(3) if (x := y)]",
        "try:\n    pass\nexcept ValueError as x:\n    print(x)",
        "def f():\n    global x\n    x = 1\ndef g(): return x",
        "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x += 1\n    return g",
        "with open(__file__) if False else __import__('contextlib').nullcontext() as x:\n    x",
        "for x in range(2):\n    x",
        "f = lambda x, *, y=1: x + y",
        "match 1:\n    case x: print(x)",
        "class C:\n    def f(self): return __class__, super().__init__",
        "def f(a: 'x'): ...",
    ],
)
def test_names_that_a_cell_makes_itself_raise_no_alarm(notebook: Notebook, source: str) -> None:
    notebook.run("x = 0")
    notebook.define(source)


def test_a_name_that_nobody_has_yet_may_come_from_a_later_cell(notebook: Notebook) -> None:
    notebook.define("def f():\n    return g()")
    notebook.define("def g():\n    return 3")
    assert notebook.run("f()") == 3


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("%matplotlib inline", "line 2: `%matplotlib inline` is a command of the notebook"),
        ("x = 1\nfiles = !ls", "line 3: `files = !ls` is a command of the notebook"),
        ("x = %timeit 1", "is a command of the notebook"),
        ("len?", "is a command of the notebook"),
        (
            "import asyncio\nawait asyncio.sleep(0)",
            "line 3: .* awaits while the module is imported",
        ),
        ("from math import *", r"line 2: .* import the names that this cell uses"),
    ],
)
def test_notebook_syntax_is_refused_by_name(notebook: Notebook, source: str, message: str) -> None:
    assert re.search(f"NotImportableError: {message}|{message}", notebook.error(source))


@pytest.mark.parametrize("source", ["x = '\udcff'", "x = " + 9999 * "-" + "1"])
def test_what_python_cannot_read_is_refused_in_words(notebook: Notebook, source: str) -> None:
    assert notebook.error(source).startswith("NotImportableError: Python cannot read this cell (")


def test_a_cell_that_cannot_be_written_says_where_and_what_to_do(notebook: Notebook) -> None:
    notebook.define("A = 1")
    folder = notebook.file.parent
    shutil.rmtree(folder.parent)
    folder.parent.touch()
    said = notebook.error("A = 2")
    folder.parent.unlink()
    assert said.startswith(f"OSError: the cell cannot be written into {folder} (Not a")
    assert said.endswith("free some disk space or restart the notebook, then run its cells again")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("json", "a module 'json' exists already.*`%%importable my_json`"),
        ("two words", "'two words' is no module name"),
        ("class", "'class' is no module name"),
    ],
)
def test_a_module_name_that_cannot_be_is_refused(
    notebook: Notebook, name: str, message: str
) -> None:
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


def test_names_are_told_apart_by_when_they_are_needed() -> None:
    names = names_of("import math\nclass C(Base):\n    def f(self): return math.pi * scale")
    assert names.defined == {"math", "C"}
    assert names.imported == {"math"}
    assert names.needed_at_once == {"Base"}
    assert names.needed_later == {"scale"}


# --- the folder --------------------------------------------------------------------------------


def test_a_folder_goes_when_it_is_closed_and_takes_nothing_else_along(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    folder.write("lesson", FIRST_LINE, seconds=1)
    (folder.path / "notes.txt").write_text("mine")
    (folder.path / "mine.py").write_bytes(b"\xff not ours")
    folder.close()
    folder.close()
    left = {path.name for path in folder.path.iterdir()}
    assert left == {"notes.txt", "mine.py", "owner.txt"}


def test_a_living_kernels_folder_is_not_swept(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    sweep(tmp_path)
    assert folder.path.exists()
    folder.close()
    assert not folder.path.exists()


def test_a_dead_kernels_folder_is_swept_even_if_its_process_id_lives_on(tmp_path: Path) -> None:
    orphan = _orphan(tmp_path, pid=os.getpid())
    sweep(tmp_path)
    assert not orphan.exists()


@pytest.mark.parametrize("owner", ["another-host\n", "", None])
def test_a_folder_that_may_belong_to_somebody_else_is_left_alone(
    tmp_path: Path, owner: str | None
) -> None:
    orphan = _orphan(tmp_path, pid=1, owner=owner)
    sweep(tmp_path)
    assert (orphan / "lesson.py").exists()


def _orphan(beside: Path, *, pid: int, owner: str | None = f"{platform.node()}\n") -> Path:
    folder = beside / ".lesson_modules" / str(pid)
    folder.mkdir(parents=True)
    (folder / "lesson.py").write_text(FIRST_LINE)
    if owner is not None:
        (folder / "owner.txt").write_text(owner)
    return folder


def test_a_second_folder_of_the_same_process_id_stands_beside_the_first(tmp_path: Path) -> None:
    first, second = make_folder(tmp_path), make_folder(tmp_path)
    assert first.path != second.path
    first.close()
    second.close()


def unsafe_folders(folder: Path) -> Iterator[Path]:
    """Yield folders in which modules of ours could not stand, or be swapped by somebody else."""
    for name in ("in the way", "open", "modules open", "a link", "another's"):
        (folder / name / "notebooks").mkdir(parents=True)
    (folder / "in the way/notebooks/.lesson_modules").touch()
    yield folder / "in the way/notebooks"
    yield folder / "nothing"
    if sys.platform == "win32":
        return
    (folder / "open").chmod(0o777)
    yield folder / "open"
    yield folder / "open/notebooks"
    (folder / "modules open/.lesson_modules").mkdir()
    (folder / "modules open/.lesson_modules").chmod(0o770)
    yield folder / "modules open"
    (folder / "a link/.lesson_modules").symlink_to(folder / "a link/notebooks")
    yield folder / "a link"
    if os.geteuid() == 0:
        os.chown(folder / "another's", 12345, -1)
        yield folder / "another's"


def test_where_others_may_write_or_we_may_not_the_folder_is_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    for unsafe in unsafe_folders(tmp_path):
        folder = make_folder(unsafe)
        assert folder.path.parent == temporary, unsafe
        sweep(unsafe)
        assert folder.path.exists()
        folder.close()
        assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no modes")
def test_only_the_owner_reads_and_writes_a_folder(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    for path in (folder.path, folder.path.parent):
        assert path.stat().st_mode & 0o777 == 0o700
    folder.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no modes")
def test_an_orphan_that_others_may_write_to_is_not_swept(tmp_path: Path) -> None:
    orphan = _orphan(tmp_path, pid=1)
    orphan.chmod(0o777)
    sweep(tmp_path)
    assert orphan.exists()


# --- real kernels ------------------------------------------------------------------------------

DATASET = """%%importable
import os
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return i * FACTOR, os.getpid()
FACTOR = {factor}
"""
LOOP = """
loader = DataLoader(Rows(), num_workers=2, multiprocessing_context="{method}")
values, pids = zip(*loader)
print([int(v) for v in values], os.getpid() in [int(p) for p in pids])
"""


# A kernel is killed, and tidies nothing up, while it has children in its own process group.
STOP_SERVERS = """
from multiprocessing import forkserver, resource_tracker
forkserver._forkserver._stop()
resource_tracker._resource_tracker._stop()
"""


def _notebook(*sources: str) -> Any:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    return nbformat.v4.new_notebook(cells=cells)


def _execute(folder: Path, *sources: str, name: str = "07_made_up.ipynb") -> list[str]:
    """Execute cells in a new kernel and return what each shows."""
    load = "from helpers.importable import register; register(get_ipython())"
    notebook = execute(folder / name, notebook=_notebook(load, *sources), timeout=120)
    return [output_text(cell) for cell in notebook.cells[1:]]


def test_workers_run_the_newest_class_of_a_cell_under_every_start_method(tmp_path: Path) -> None:
    methods = get_all_start_methods()
    methods += methods[-1:]  # the fork server of the first time lives on and must not remember
    cells = []
    for factor, method in enumerate(methods, start=1):
        cells += [DATASET.replace("{factor}", str(factor)), LOOP.replace("{method}", method)]
    shown = _execute(tmp_path, *cells, STOP_SERVERS, "Rows.__module__")
    expected = [f"[0, {f}, {2 * f}, {3 * f}] False" for f in range(1, len(methods) + 1)]
    assert [text.strip() for text in shown[1:-2:2]] == expected
    assert shown[-1] == "'lesson_07_made_up'"
    assert list(tmp_path.iterdir()) == []


INTERRUPTED = """
source = "import _thread, time\\nVALUE = 2\\n_thread.interrupt_main()\\nwhile True: time.sleep(1)"
try:
    get_ipython().run_cell_magic("importable", "", source)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupted_cell_leaves_the_last_version(tmp_path: Path) -> None:
    shown = _execute(
        tmp_path,
        "%%importable\nVALUE = 1",
        INTERRUPTED,
        "import lesson_07_made_up as module\nVALUE, module.VALUE",
        "open(module.__file__).read()[-10:]",
    )
    assert shown[1].strip() == "interrupted"
    assert shown[2] == "(1, 1)"
    assert shown[3] == repr("VALUE = 1\n")


class Kernel:
    """A kernel that stays, to be looked at between cells."""

    def __init__(self, folder: Path) -> None:
        config = Config({"KernelSpecManager": {"kernel_dirs": []}})
        self.manager = KernelManager(kernel_name="python3", config=config)
        self.manager.start_kernel(
            cwd=str(folder), extra_arguments=["--HistoryManager.enabled=False"]
        )
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.run("from helpers.importable import register; register(get_ipython())")

    def run(self, source: str) -> str:
        shown: list[str] = []
        reply = self.client.execute_interactive(
            source, timeout=60, output_hook=lambda m: shown.append(m["content"].get("text", ""))
        )
        assert reply["content"]["status"] == "ok", reply["content"]
        return "".join(shown).strip()

    def close(self, *, kill: bool = False) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=kill)


def test_two_kernels_of_one_notebook_keep_apart_and_a_killed_one_is_swept_up_after(
    tmp_path: Path,
) -> None:
    first, second = Kernel(tmp_path), Kernel(tmp_path)
    try:
        first.run("%%importable\nVALUE = 1")
        second.run("%%importable\nVALUE = 2")
        child = "import subprocess, sys, os; print(subprocess.check_output([sys.executable, '-c', "
        child += "'import lesson; print(lesson.VALUE)'], cwd=sys.path[-1], text=True))"
        assert (first.run(child), second.run(child)) == ("1", "2")
        assert len(list((tmp_path / ".lesson_modules").iterdir())) == 2
        first.close(kill=True)
        assert len(list((tmp_path / ".lesson_modules").iterdir())) == 2
        first = Kernel(tmp_path)
        assert len(list((tmp_path / ".lesson_modules").iterdir())) == 1
    finally:
        first.close()
        second.close()
    assert list(tmp_path.iterdir()) == []
