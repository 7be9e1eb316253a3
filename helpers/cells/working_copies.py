"""Copies of the lessons to work in, so that the next `git pull` finds the lessons as they were.

`make lab` opens them. A copy in which nothing was written is brought up to date. One that its
reader has changed is kept, and where the lesson has changed too, the new one is put beside it.
"""

import json
import shutil
import sys
from pathlib import Path

_PRISTINE = ".as_copied"  # holds each lesson as it was when it was last copied


def update_copies(lessons: Path, copies: Path) -> list[str]:
    """Bring the copies up to date, and return a line for each that a reader should know of.

    Raises FileNotFoundError when there are no lessons in the folder.
    """
    found = sorted(lessons.glob("*.ipynb"))
    if not found:
        raise FileNotFoundError(f"{lessons} holds no lessons: run this in the project's folder")
    (copies / _PRISTINE).mkdir(parents=True, exist_ok=True)
    return [line for lesson in found if (line := _update(lesson, copies))]


def _update(lesson: Path, copies: Path) -> str:
    copy, pristine = copies / lesson.name, copies / _PRISTINE / lesson.name
    if pristine.exists() and pristine.read_bytes() == lesson.read_bytes() and copy.exists():
        return ""
    kept = copy.exists() and (not pristine.exists() or _sources(copy) != _sources(pristine))
    target = copy.with_stem(f"{copy.stem}.new") if kept else copy
    shutil.copyfile(lesson, target)
    shutil.copyfile(lesson, pristine)
    return f"{lesson.name} has changed: yours is kept, the new one is {target}" if kept else ""


def _sources(notebook: Path) -> list[str] | None:
    """Return what the cells hold, whatever they have shown; None for a file that is no notebook."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        return ["".join(cell["source"]) for cell in cells]
    except (ValueError, KeyError, TypeError):
        return None


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in update_copies(*map(Path, sys.argv[1:])))
