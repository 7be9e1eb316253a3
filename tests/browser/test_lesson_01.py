"""Lesson 01 as its reader sees it: in JupyterLab, with the figure moving while the loader dies."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from notebook_tools import NOTEBOOKS, read, tags

pytestmark = [pytest.mark.browser, pytest.mark.notebook]


def test_a_reader_sees_the_loader_die_and_the_cure_live(
    tmp_path: Path, open_notebook: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_SCALE", "test")
    monkeypatch.setenv("LARGER_THAN_RAM_DATA", str(NOTEBOOKS.parent / "data"))
    lesson = read(NOTEBOOKS / "01_load_everything.ipynb")
    place = {tag: i for i, cell in enumerate(lesson.cells) for tag in tags(cell)}
    failure, cure, evidence = place["failure"], place["cure"], place["evidence"]
    lesson.cells = lesson.cells[: evidence + 1]
    nbformat.write(lesson, tmp_path / "01_load_everything.ipynb")
    lab = open_notebook(tmp_path / "01_load_everything.ipynb")
    lab.run()
    for cell in (failure, cure):  # how many frames depends on how fast the memory is filled
        lab.wait_for_frames(lab.cell(cell), 2, seconds=120)  # one while it runs, and the last
    lab.wait_for_cell(evidence, seconds=240)
    assert lab.cell(failure).locator("img[alt*='killed']").count() == 1
    assert lab.cell(cure).locator("img[alt*='finished']").count() == 1
    assert "✓ a copy may be written: finished" in lab.cell(evidence).inner_text()
