"""Every lesson: its form, its exercises, its evidence, and that it runs under every start method.

The rules stand in notebook_rules.py, which also says how cells are tagged; here they are applied.
`-m "not notebook"` leaves out what executes a lesson. Before the first of these tests all are
executed, two at a time.
"""

import ast
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_all_start_methods
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import pytest
from evidence_swap import swap_problems
from format_notebooks import canonical
from notebook_rules import exercise_problems, lesson_problems, link_problems, style_problems
from notebook_tools import all_notebooks, code_cells, execute, python_source, read, tags

NOTEBOOKS = all_notebooks()
LESSONS = [path for path in NOTEBOOKS if not path.name.startswith("00")]
# The first start method is the default, which every test but one uses.
OTHER_METHODS = get_all_start_methods()[1:]

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
every_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


# Each lane has data of its own: what one has just read would be warm for the other.
DATA = NOTEBOOKS[0].parents[1] / "data"
LANES = (DATA, DATA / "second lane")
Key = TypeVar("Key")
Executions = Mapping[tuple[str, str], "Future[Any]"]


@pytest.fixture(scope="module")
def executions(request: pytest.FixtureRequest, no_spare_outlives_its_module: None) -> Executions:
    """Return what became of each lesson that is tested: as it is, under each method, swapped.

    All are executed before the first is judged, so that no lane waits for the last of a lesson.
    """
    chosen: dict[Path, None] = dict.fromkeys(
        Path(str(item.callspec.params["path"]))
        for item in request.session.items
        if isinstance(item, pytest.Function) and "executions" in item.fixturenames
    )
    return in_lanes({(path.stem, way): job for path in chosen for way, job in ways(path).items()})


def ways(path: Path) -> dict[str, Callable[..., Any]]:
    """Return the ways in which a notebook is executed, at test scale."""
    jobs: dict[str, Callable[..., Any]] = {"as it is": partial(execute, path)}
    if path in LESSONS:
        jobs["swapped"] = partial(swap_problems, path)
        for method in OTHER_METHODS:
            # A check is the same under each: what is sent to a spawned worker can be sent anywhere.
            notebook = read(path) if method == "spawn" else without_exercises(read(path))
            jobs[method] = partial(execute, path, notebook=notebook, start_method=method)
    return {way: partial(job, scale="test") for way, job in jobs.items()}


def without_exercises(notebook: Any) -> Any:
    """Return a notebook without the exercises' stubs, solutions and checks."""
    parts = {"exercise", "solution", "check"}
    notebook.cells = [cell for cell in notebook.cells if not tags(cell) & parts]
    return notebook


def in_lanes(jobs: Mapping[Key, Callable[..., Any]]) -> dict[Key, "Future[Any]"]:
    """Do all jobs, so many at a time as there are lanes, and return how they ended."""
    free: SimpleQueue[Path] = SimpleQueue()
    for folder in LANES:
        free.put(folder)

    def do(job: Callable[..., Any]) -> Any:
        folder = free.get()
        try:
            return job(data=folder)
        finally:
            free.put(folder)

    with ThreadPoolExecutor(len(LANES)) as threads:
        return {name: threads.submit(do, job) for name, job in jobs.items()}


@every_notebook
def test_a_notebook_is_in_canonical_form(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    assert canonical(text, path=path) == text, "run python tests/format_notebooks.py"


@every_notebook
def test_a_notebook_keeps_to_the_style(path: Path) -> None:
    assert list(style_problems(read(path))) == []


@every_lesson
def test_a_lesson_has_failure_cure_evidence_and_exercises(path: Path) -> None:
    assert list(lesson_problems(read(path))) == []


@every_notebook
def test_links_lead_somewhere(path: Path) -> None:
    assert list(link_problems(read(path), path.parent)) == []


def test_a_class_that_two_lessons_show_is_the_same_in_both() -> None:
    shown: dict[str, str] = {}
    for cell in (cell for path in LESSONS for cell in code_cells(read(path))):
        if not tags(cell) & {"exercise", "solution"}:
            for node in ast.parse(python_source(cell)).body:
                if isinstance(node, ast.ClassDef):
                    assert shown.setdefault(node.name, ast.dump(node)) == ast.dump(node), node.name


@pytest.mark.notebook
@every_notebook
def test_a_notebook_runs_from_top_to_bottom(path: Path, executions: Executions) -> None:
    executions[path.stem, "as it is"].result()


@pytest.mark.notebook
@every_lesson
def test_each_exercise_is_open_before_its_solution_and_done_after_it(
    path: Path, executions: Executions
) -> None:
    assert list(exercise_problems(executions[path.stem, "as it is"].result())) == []


@pytest.mark.notebook
@every_lesson
@pytest.mark.parametrize("method", OTHER_METHODS)
def test_a_lesson_runs_under_the_other_start_methods(
    path: Path, method: str, executions: Executions
) -> None:
    executed = executions[path.stem, method].result()
    if method == "spawn":
        assert list(exercise_problems(executed)) == []


@pytest.mark.notebook
@every_lesson
def test_the_evidence_fails_with_the_cure_in_the_bad_ones_place(
    path: Path, executions: Executions
) -> None:
    assert executions[path.stem, "swapped"].result() == []
