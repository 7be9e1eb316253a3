"""A reader's work survives an update of the lessons, and an untouched copy follows them."""

import json
from pathlib import Path

import pytest

from helpers.cells.working_copies import update_copies


def write(path: Path, *sources: str, shown: int | None = None) -> None:
    path.parent.mkdir(exist_ok=True)
    cells = [{"source": [source], "execution_count": shown} for source in sources]
    path.write_text(json.dumps({"cells": cells}))


@pytest.fixture
def lesson(tmp_path: Path) -> Path:
    """Return a lesson that has been copied once."""
    write(tmp_path / "notebooks" / "01_x.ipynb", "stub")
    assert update_copies(tmp_path / "notebooks", tmp_path / "mine") == []
    return tmp_path / "notebooks" / "01_x.ipynb"


def test_a_copy_that_was_only_run_follows_its_lesson(lesson: Path, tmp_path: Path) -> None:
    copy = tmp_path / "mine" / "01_x.ipynb"
    write(copy, "stub", shown=7)
    write(lesson, "a better stub")
    assert update_copies(lesson.parent, copy.parent) == []
    assert copy.read_bytes() == lesson.read_bytes()


@pytest.mark.parametrize("work", ["my answer", None])
def test_work_is_kept_and_the_new_lesson_stands_beside_it(
    work: str | None, lesson: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "mine" / "01_x.ipynb"
    copy.write_text("half a notebook") if work is None else write(copy, work)
    before = copy.read_bytes()
    assert update_copies(lesson.parent, copy.parent) == []  # the lesson is as it was
    write(lesson, "a better stub")
    (said,) = update_copies(lesson.parent, copy.parent)
    assert said.startswith("01_x.ipynb has changed: yours is kept, the new one is")
    assert copy.read_bytes() == before
    assert (copy.parent / "01_x.new.ipynb").read_bytes() == lesson.read_bytes()
    assert update_copies(lesson.parent, copy.parent) == []  # said once


def test_a_folder_without_lessons_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no lessons: run this in the project's"):
        update_copies(tmp_path, tmp_path / "mine")
