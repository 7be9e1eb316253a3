"""Lesson 01 as its reader sees it: in JupyterLab, with the figure moving while the loader dies."""

from collections.abc import Callable
from typing import Any

import pytest
from notebook_tools import NOTEBOOKS, read, tags

NAME = "01_load_everything.ipynb"
pytestmark = [pytest.mark.browser, pytest.mark.notebook]


def test_a_reader_sees_the_loader_die_and_the_cure_live(
    open_lesson: Callable[[str, Any], Any],
) -> None:
    lesson = read(NOTEBOOKS / NAME)
    place = {tag: i for i, cell in enumerate(lesson.cells) for tag in tags(cell)}
    failure, cure, evidence = place["failure"], place["cure"], place["evidence"]
    lesson.cells = lesson.cells[: evidence + 1]
    lab = open_lesson(NAME, lesson)
    lab.run()
    for cell in (failure, cure):  # how many frames depends on how fast the memory is filled
        lab.wait_for_frames(lab.cell(cell), 2, seconds=120)  # one while it runs, and the last
    lab.wait_for_cell(evidence, seconds=240)
    assert lab.cell(failure).locator("img[alt*='killed']").count() == 1
    assert lab.cell(cure).locator("img[alt*='finished']").count() == 1
    assert "✓ a copy may be written: finished" in lab.cell(evidence).inner_text()
