"""Lesson 01 as its reader sees it: in JupyterLab, with the figure moving while the loader dies."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from notebook_tools import NOTEBOOKS, tags

pytestmark = [pytest.mark.browser, pytest.mark.notebook]

# Appended to a copy of the lesson: longer than any test waits, unless Stop ends it.
LONG_RUN = """
endless = run(one_epoch, Endless, data, ram_budget=budget, title="until you press Stop")
endless.ending
"""
ENDLESS = """
%%importable
class Endless(OpensLazily):
    def __len__(self):
        return 10**9

    def __getitem__(self, index):
        return super().__getitem__(index % self.length)
"""


@pytest.fixture
def lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the lesson up to its evidence, with a run at its end that only Stop ends."""
    monkeypatch.setenv("LARGER_THAN_RAM_SCALE", "test")
    monkeypatch.setenv("LARGER_THAN_RAM_DATA", str(NOTEBOOKS.parent / "data"))
    notebook = nbformat.read(NOTEBOOKS / "01_load_everything.ipynb", as_version=4)
    last = max(i for i, cell in enumerate(notebook.cells) if "evidence" in tags(cell))
    added = [nbformat.v4.new_code_cell(source.strip()) for source in (ENDLESS, LONG_RUN)]
    notebook.cells = [*notebook.cells[: last + 1], *added]
    path = tmp_path / "01_load_everything.ipynb"
    nbformat.write(notebook, path)
    return path


def cell_number(path: Path, tag: str) -> int:
    cells = nbformat.read(path, as_version=4).cells
    return next(number for number, cell in enumerate(cells) if tag in tags(cell))


def test_a_reader_sees_the_loader_die_the_cure_live_and_stop_stops(
    lesson: Path, open_notebook: Callable[[Path], Any]
) -> None:
    failure, cure, evidence = (cell_number(lesson, tag) for tag in ("failure", "cure", "evidence"))
    lab = open_notebook(lesson)
    lab.run()
    for cell in (failure, cure):  # how many frames depends on how fast the memory is filled
        lab.wait_for_frames(lab.cell(cell), 2, seconds=120)  # one while it runs, and the last
    lab.wait_for_cell(evidence, seconds=240)
    assert lab.cell(failure).locator("img[alt*='killed']").count() == 1
    assert lab.cell(cure).locator("img[alt*='finished']").count() == 1
    assert lab.cell(evidence).locator(".jp-OutputArea-output").count() == 0  # no assertion failed
    long_run = lab.cell(evidence + 2)
    lab.wait_for_frames(long_run, 3, seconds=120)
    long_run.get_by_role("button", name="Stop").click()
    long_run.get_by_text("'stopped'").wait_for(timeout=60_000)
