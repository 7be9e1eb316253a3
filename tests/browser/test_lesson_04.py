"""Lesson 04 as its reader sees it: the slider is moved, and its square is measured and drawn anew.

The experiments are left out: what they show is tested without a browser.
"""

from collections.abc import Callable
from typing import Any

import pytest
from notebook_tools import NOTEBOOKS, read

NAME = "04_chunk_shape.ipynb"
pytestmark = [pytest.mark.browser, pytest.mark.notebook]


def test_moving_the_slider_draws_the_square_anew(
    open_lesson: Callable[[str, Any], Any],
) -> None:
    lesson = read(NOTEBOOKS / NAME)
    code = [cell for cell in lesson.cells if cell.cell_type == "code"]
    end = next(i for i, cell in enumerate(code) if cell.source.startswith("Slider("))
    experiments = ("= measured(", "starving", "predict(", "factor")
    lesson.cells = [
        cell
        for cell in code[: end + 1]
        if cell.source.startswith("%load_ext") or not any(e in cell.source for e in experiments)
    ]
    lab = open_lesson(NAME, lesson)
    lab.run()
    last = len(lesson.cells) - 1
    lab.wait_for_cell(last, seconds=120)
    square = lab.cell(last)
    square.locator("img[alt*='chunks of 512 x 128']").wait_for(timeout=60_000)
    square.get_by_role("slider").focus()
    lab.page.keyboard.press("ArrowLeft")
    square.locator("img[alt*='chunks of 256 x 128'][alt*='rows shuffled: 25']").wait_for(
        timeout=60_000
    )
    assert square.locator("img").count() == 1
