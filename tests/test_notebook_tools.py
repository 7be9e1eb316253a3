"""The notebook tooling, on made-up notebooks: every rule has one that breaks it."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from definition_swap import SwapError
from evidence_swap import swap_problems, swapped
from format_notebooks import canonical
from format_notebooks import main as format_main
from notebook_rules import (
    code_lines,
    exercise_problems,
    lesson_problems,
    link_problems,
    style_problems,
)
from notebook_tools import RUN_TYPE, NotebookError, execute, output_text, runs_shown
from notebook_tools import made_up as notebook
from run_notebooks import main as run_main


def code(source: str, *marks: str, **metadata: Any) -> Any:
    return nbformat.v4.new_code_cell(source, metadata={"tags": list(marks), **metadata})


def text(source: str) -> Any:
    return nbformat.v4.new_markdown_cell(source)


def swaps(*named: tuple[str, ...]) -> dict[str, Any]:
    """Return swaps of a bad name, a cured one, and the claims that this must break."""
    keys = ("bad", "cured", "breaks")
    return {"swaps": [dict(zip(keys, (*names[:2], names[2:]), strict=True)) for names in named]}


def test_a_notebook_runs_in_its_folder_with_what_the_helpers_read(tmp_path: Path) -> None:
    made = notebook(
        "import os, sys\nprint([sys.executable, os.getcwd()])",
        "print([os.environ.get(f'LARGER_THAN_RAM_{n}') for n in "
        "('SCALE', 'START_METHOD', 'VIEW', 'NOTEBOOK', 'DATA')])",
    )
    path = tmp_path / "05_made_up.ipynb"
    done = execute(path, notebook=made, scale="full", start_method="spawn", data=tmp_path)
    assert output_text(done.cells[0]).strip() == repr([sys.executable, str(tmp_path)])
    expected = ["full", "spawn", "end", "05_made_up.ipynb", str(tmp_path)]
    assert output_text(done.cells[1]).strip() == repr(expected)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import os\nos._exit(3)", "the kernel died"),
        ("while True: pass", "timed out"),
    ],
    ids=["raises", "dies", "hangs"],
)
def test_an_error_names_notebook_cell_line_and_exception(
    tmp_path: Path, source: str, reason: str
) -> None:
    made = notebook("1", text("# words"), "\n# a comment\n" + source, "never = 1")
    with pytest.raises(NotebookError) as raised:
        execute(tmp_path / "05_made_up.ipynb", notebook=made, timeout=3)
    assert "05_made_up.ipynb, code cell 2 (`# a comment`): " in str(raised.value)
    assert reason in str(raised.value)
    assert output_text(raised.value.notebook.cells[0]) == "1"


SHOW = """
from IPython.display import display
display({{"text/plain": "shown", "{kind}": {record}}}, raw=True)
"""


def show(**changes: Any) -> str:
    record = {"ending": "finished", "samples_per_second": 0.0, "peak_anonymous_bytes": 1} | changes
    return SHOW.format(kind=RUN_TYPE, record=record)


def test_the_table_tells_failure_cure_and_the_worst_peak(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "05_made_up.ipynb"
    made = notebook(
        code(show(ending="killed: over its 1 GiB budget", peak_anonymous_bytes=2**30), "failure"),
        code(show(samples_per_second=1234.5), "cure"),
        code(show(peak_anonymous_bytes=3 * 2**30)),
    )
    nbformat.write(made, path)
    build = tmp_path / "build"
    assert run_main([], lessons=[path], build=build) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split("  ")[0] == "lesson"
    assert "killed: over its 1 GiB budget" in printed[2]
    assert "finished, 1,234 samples/s" in printed[2]
    assert printed[2].endswith("3 GiB")
    assert "shown" in (build / "05_made_up.html").read_text("utf-8")
    executed = nbformat.read(build / "05_made_up.ipynb", as_version=4)
    assert [run["ending"] for run in runs_shown(executed.cells[1])] == ["finished"]


def test_a_failing_lesson_fails_the_run_and_names_its_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = tmp_path / "05_bad.ipynb", tmp_path / "06_good.ipynb"
    nbformat.write(notebook("seen = 1\nseen", "1 / 0"), bad)
    nbformat.write(notebook("1"), good)
    assert run_main([], lessons=[bad, good], build=tmp_path / "build") == 1
    printed = capsys.readouterr()
    assert "FAILED 05_bad.ipynb, code cell 2 (`1 / 0`): ZeroDivisionError" in printed.out
    assert "06_good: done" in printed.err
    assert re.search(r"06_good +- +- +\d+ +-", printed.out)
    assert (tmp_path / "build" / "05_bad.html").exists()
    assert run_main(["--only", "06"], lessons=[bad, good], build=tmp_path / "build") == 0


def test_a_lesson_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main(["--only", "77"], lessons=[]) == 2
    assert "no lesson begins with '77'" in capsys.readouterr().err


def test_the_canonical_form_has_no_outputs_and_only_metadata_that_means_something() -> None:
    cell = code("x  =  1\n", "evidence", collapsed=True, jupyter={"source_hidden": True})
    cell.outputs = [nbformat.v4.new_output("stream", text="seen")]
    cell.execution_count = 7
    made = notebook(cell, text("words\n\n"), "", widgets={"a": 1})
    once = canonical(json.dumps(made), path=Path("05_x.ipynb"))
    assert canonical(once, path=Path("05_x.ipynb")) == once
    formatted = json.loads(once)
    assert formatted["cells"][0] == {
        "cell_type": "code",
        "execution_count": None,
        "id": cell.id,
        "metadata": {"jupyter": {"source_hidden": True}, "tags": ["evidence"]},
        "outputs": [],
        "source": ["x = 1"],
    }
    assert formatted["cells"][1]["source"] == ["words"]
    assert len(formatted["cells"]) == 2
    assert set(formatted["metadata"]) == {"kernelspec", "language_info"}


def test_code_is_formatted_below_our_magic_too_and_other_magics_stay() -> None:
    ours, theirs = "%%importable  name\n\n\nclass  A :\n  x = 'é'\n", "%load_ext  helpers\ny=1"
    made = notebook(ours, theirs, "%%bash\nls  -l")
    done = canonical(json.dumps(made), path=Path("05_x.ipynb"))
    sources = ["".join(cell["source"]) for cell in json.loads(done)["cells"]]
    ours, theirs = '%%importable  name\nclass A:\n    x = "é"', "%load_ext  helpers\ny = 1"
    assert sources == [ours, theirs, "%%bash\nls  -l"]
    assert "é" in done
    assert done.endswith("}\n")


def test_the_formatter_checks_then_writes_then_is_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "05_x.ipynb"
    path.write_text(json.dumps(notebook("a=1")), encoding="utf-8")
    before = path.read_bytes()
    assert format_main(["--check", str(path)]) == 1
    assert path.read_bytes() == before
    assert format_main([str(path)]) == 0
    assert format_main(["--check", str(path)]) == 0
    assert "run python tests/format_notebooks.py" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["{", "[]", '{"cells": 3}', json.dumps(notebook("def f(:"))])
def test_what_cannot_be_formatted_is_named(
    tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "05_x.ipynb"
    path.write_text(content, encoding="utf-8")
    assert format_main([str(path)]) == 2
    assert "05_x.ipynb" in capsys.readouterr().err
    assert path.read_text("utf-8") == content


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        (code("\n".join(f"x{i} = {i}" for i in range(16))), "has 16 lines: at most 15"),
        (code("from math import *"), "imports * from math"),
        (code("import sys\nsys.path.append('x')"), "touches sys.path"),
        (code("open('/" + "home/me/x')"), "an absolute path: /home"),
        (text("see `C:\\data`"), "an absolute path: C:\\d"),
        (code("a = 1\n" * 7), "the median code cell has 4 lines"),
        ({**code("1"), "execution_count": 1}, "has outputs"),
        ({**code("1"), "outputs": [nbformat.v4.new_output("stream")]}, "has outputs"),
    ],
)
def test_a_cell_that_breaks_the_style_is_named(cell: Any, problem: str) -> None:
    made = notebook("1", nbformat.from_dict(cell))
    assert any(problem in found for found in style_problems(made))


def test_a_good_notebook_has_no_problem_of_style() -> None:
    fifteen = "%%importable\n" + "\n\n".join(f"x{i} = {i}" for i in range(15))
    made = notebook("%load_ext helpers", "1", fifteen, text("/proc/self, ../tmp/x, /dev/shm"))
    assert list(style_problems(made)) == []
    assert code_lines(made.cells[2]) == 15


HIDDEN = {"jupyter": {"source_hidden": True}}


def exercise(check: str = "done") -> list[Any]:
    return [
        code("done = '\\u2717 not yet: fill in'", "exercise"),
        code(check, "check"),
        code("done = '\\u2713 done: x'", "solution", **HIDDEN),
        code(check, "check"),
    ]


def lesson(*cells: Any) -> Any:
    return notebook(code("1", "failure"), code("2", "cure"), code("3", "evidence"), *cells)


def test_a_whole_lesson_has_no_problem() -> None:
    assert list(lesson_problems(lesson(*exercise(), *exercise()))) == []


@pytest.mark.parametrize(
    ("break_it", "problem"),
    [
        (lambda cells: cells.pop(0), "no cell is tagged failure"),
        (lambda cells: cells.pop(1), "no cell is tagged cure"),
        (lambda cells: cells.pop(2), "no cell is tagged evidence"),
        (lambda cells: cells.pop(4), "exercises go exercise, check, solution, check, and these go"),
        (lambda cells: cells[5].metadata.pop("jupyter"), "is not hidden"),
        (lambda cells: cells[4].metadata.tags.append("hidden"), "is not hidden"),
        (lambda cells: cells[6].update(source="other"), "is not the same as"),
        (lambda cells: cells.__delitem__(slice(7, None)), "1 exercises: from 2 to 4"),
        (lambda cells: cells.extend(exercise() * 3), "5 exercises: from 2 to 4"),
    ],
)
def test_what_a_lesson_lacks_is_named(break_it: Callable[[list[Any]], Any], problem: str) -> None:
    made = lesson(*exercise(), *exercise())
    break_it(made.cells)
    assert any(problem in found for found in lesson_problems(made)), list(lesson_problems(made))


def test_checks_must_turn_from_not_yet_to_done(tmp_path: Path) -> None:
    path = tmp_path / "05_x.ipynb"
    good = execute(path, notebook=notebook(*exercise()))
    assert list(exercise_problems(good)) == []
    cells = exercise()
    early = notebook(cells[2], cells[1], cells[0], cells[3])
    problems = list(exercise_problems(execute(path, notebook=early)))
    assert "passes before the solution" in problems[0]
    assert "fails after the solution" in problems[1]


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("[a](00_there.ipynb#A-heading-here)", ""),
        ("[a](https://example.org/x.ipynb)", ""),
        ("[a](#here)", ""),
        ("[a](00_gone.ipynb)", "links to 00_gone.ipynb, which is not there"),
        ("[a](00_there.ipynb#Gone)", "no such heading"),
    ],
)
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, link: str, problem: str) -> None:
    target = notebook(text("## A heading here\n\nwords"), text("# Top"))
    nbformat.write(target, tmp_path / "00_there.ipynb")
    found = "".join(link_problems(notebook(text(link)), tmp_path))
    assert found.endswith(problem)
    assert bool(found) is bool(problem)


BAD = "class Bad:\n    size = 100"
CURED = "import math\n\nSIZE = 4\n\n\nclass Cured:\n    size = math.floor(SIZE)"
MEASURE = "bad, cured = Bad.size, Cured.size"
SHOWN = "from helpers.evidence import shown"


def swap(
    tmp_path: Path, *cells: Any, pairs: tuple[tuple[str, ...], ...] = (("Bad", "Cured", "a"),)
) -> Any:
    made = notebook(SHOWN, *cells, larger_than_ram=swaps(*pairs))
    before = json.dumps(made)
    problems = swap_problems(tmp_path / "05_x.ipynb", notebook=made)
    assert json.dumps(made) == before  # the lesson itself is not touched
    return problems


def test_good_evidence_fails_where_it_must_and_holds_where_it_must(tmp_path: Path) -> None:
    evidence = code("limit = 50\nshown('a', bad > limit)\nshown('b', cured < limit)", "evidence")
    unfinished = code("1 / 0", "exercise")
    assert swap(tmp_path, BAD, CURED, MEASURE, unfinished, evidence, "1 / 0") == []


def test_vacuous_evidence_is_caught(tmp_path: Path) -> None:
    claims = "shown('a', bad > 1)\nshown('b', bad > cured)\nshown('c', bad.gone)"
    cells, pairs = (BAD, CURED, MEASURE, code(claims, "evidence")), (("Bad", "Cured", "a", "c"),)
    first, second, third = swap(tmp_path, *cells, pairs=pairs)
    assert first.startswith("vacuous: `a` holds")
    assert "should hold for both, and ended with AssertionError" in second
    assert "ended with AttributeError: it should be false, and not break" in third


def test_what_this_machine_cannot_show_needs_not_break(tmp_path: Path) -> None:
    claims = "shown('a', bad > 1, unless='no disk here')"
    assert swap(tmp_path, BAD, CURED, MEASURE, code(claims, "evidence")) == []


def test_all_swaps_are_made_in_one_run_and_each_breaks_its_own(tmp_path: Path) -> None:
    claims = "shown('a', bad > 50)\nshown('b', worse() > 50)\nshown('c', bad + worse() > 150)"
    cells = (BAD, "def worse():\n    return 100", CURED, "def better():\n    return 2", MEASURE)
    pairs = (("Bad", "Cured", "a", "c"), ("worse", "better", "b", "c"))
    assert swap(tmp_path, *cells, code(claims, "evidence"), pairs=pairs) == []


def test_a_cell_that_only_shows_may_have_nothing_to_show(tmp_path: Path) -> None:
    evidence = code("shown('a', bad > 50)", "evidence")
    shows = "['what only the bad one has'][bad - 100]"
    assert swap(tmp_path, BAD, CURED, MEASURE, shows, evidence) == []
    with pytest.raises(NotebookError, match="IndexError"):
        swap(tmp_path, BAD, CURED, MEASURE, f"kept = {shows}", evidence)


def test_the_swapped_definition_works_under_the_bad_name_in_a_module(tmp_path: Path) -> None:
    load = "from helpers.importable import register; register(get_ipython())"
    bad = "%%importable\nclass Base:\n    size = 100\n\n\nclass Bad(Base):\n    kind = 'bad'"
    cured = (
        "%%importable\nimport math\n\n\ndef half(x):\n    return math.floor(x / 50)\n\n\n"
        "class Cured(Base):\n    'Cured stays in words.'\n\n    size = half(Base.size)\n\n"
        "    def me(self):\n        return super(Cured, self).__init__() or type(self) is Cured"
    )
    measure = "bad, me, module = Bad.size, getattr(Bad(), 'me', lambda: 0)(), Bad.__module__"
    evidence = code(
        "shown('a', bad == 100)\nshown('b', not me)\nshown('c', module == 'lesson_05_x')\n"
        "shown('d', Bad.__doc__ is None)\nshown('e', Cured.size == 2)",
        "evidence",
    )
    pairs = (("Bad", "Cured", "a", "b", "d"),)
    assert swap(tmp_path, load, bad, cured, measure, evidence, pairs=pairs) == []


@pytest.mark.parametrize(
    ("evidence", "pairs", "problem"),
    [
        ("assert 1", [("Bad", "Cured", "a")], "`assert 1` says nothing when it holds"),
        ("shown(claim, 1)", [("Bad", "Cured", "a")], "needs its claim as a plain string"),
        ("shown('a', 1)", [("Bad", "Cured")], "no claim is to fail when Bad is swapped"),
        ("shown('a', 1)", [("Bad", "Cured", "b")], "Bad breaks 'b', which the evidence does not"),
        ("shown('a', 0)", [("Gone", "Cured", "a")], "no class or function Gone"),
        ("shown('a', 0)", [("Bad", "Gone", "a")], "no class or function Gone"),
        ("shown('a', 0)", [], "no swaps"),
        ("shown('a', 0)", [("Bad", "Cured", "a"), ("Worse", "Cured", "a")], "give it its own cell"),
    ],
)
def test_swaps_that_cannot_be_understood_are_named(
    evidence: str, pairs: list[tuple[str, ...]], problem: str
) -> None:
    cell = f"{BAD}\n\n\nclass Worse:\n    size = 1"
    made = notebook(cell, CURED, code(evidence, "evidence"), larger_than_ram=swaps(*pairs))
    with pytest.raises(SwapError, match=problem):
        swapped(made)
