"""The symptom index: the same in lesson 08 and in the README, and each row leads to its heading."""

import re

import pytest
from notebook_rules import anchors
from notebook_tools import NOTEBOOKS, read

LESSON = "08_measure_dont_guess.ipynb"
ROW = re.compile(r"^\| (.+?) \| \[(\d\d) · (.+?)\]\((.*?)#(.+?)\) \| (.+?) \|$", re.MULTILINE)
README = (NOTEBOOKS.parent / "README.md").read_text("utf-8")
IN_LESSON = ROW.findall("\n".join(cell.source for cell in read(NOTEBOOKS / LESSON).cells))


def test_the_index_has_every_lesson_and_twenty_rows() -> None:
    assert len(IN_LESSON) >= 20
    assert {row[1] for row in IN_LESSON} == {f"{number:02d}" for number in range(1, 9)}


def test_the_readme_has_the_same_index() -> None:
    from_lesson = [(*row[:3], row[3] or LESSON, *row[4:]) for row in IN_LESSON]
    from_readme = [
        (*row[:3], row[3].removeprefix("notebooks/"), *row[4:]) for row in ROW.findall(README)
    ]
    assert from_readme == from_lesson


@pytest.mark.parametrize("row", IN_LESSON, ids=lambda row: row[0][:40])
def test_a_row_leads_to_its_heading(row: tuple[str, ...]) -> None:
    _, number, words, target, anchor, _ = row
    target = target or LESSON
    assert target.startswith(number)
    assert anchor in anchors(NOTEBOOKS / target)
    assert anchor.replace("-", " ") == words.replace("-", " ")
