"""Run every lesson without a browser and print what was seen: `make run`.

Leaves the executed notebooks and their HTML in build/. Ends with 1 if a cell failed, and names it.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbconvert import HTMLExporter
from notebook_tools import (
    NotebookError,
    all_notebooks,
    code_cells,
    execute,
    runs_shown,
    tagged,
)

from helpers.units import format_bytes

BUILD = Path(__file__).resolve().parents[1] / "build"
_HEADINGS = ("lesson", "failure seen", "cure seen", "seconds", "peak memory")


@dataclass(frozen=True)
class Seen:
    """What one lesson showed."""

    lesson: str
    failure: str
    cure: str
    seconds: float
    peak_bytes: int  # anonymous memory of the worst experiment
    error: str = ""

    def row(self) -> tuple[str, ...]:
        """Return the lesson's row of the table."""
        peak = format_bytes(self.peak_bytes) if self.peak_bytes else "-"
        return (self.lesson, self.failure, self.cure, f"{self.seconds:.0f}", peak)


def seen_in(lesson: str, notebook: Any, *, seconds: float, error: str = "") -> Seen:
    """Read from an executed notebook what was seen."""
    runs = [run for cell in code_cells(notebook) for run in runs_shown(cell)]
    return Seen(
        lesson=lesson,
        failure=_endings(notebook, "failure"),
        cure=_endings(notebook, "cure"),
        seconds=seconds,
        peak_bytes=max((run["peak_anonymous_bytes"] for run in runs), default=0),
        error=error,
    )


def _endings(notebook: Any, tag: str) -> str:
    """Return how the experiments in the cells with a tag ended, or '-' if there were none."""
    runs = [run for cell in tagged(notebook, tag) for run in runs_shown(cell)]
    return "; ".join(_ending(run) for run in runs) or "-"


def _ending(run: dict[str, Any]) -> str:
    rate = f", {run['samples_per_second']:,.0f} samples/s" if run["samples_per_second"] else ""
    return f"{run['ending']}{rate}"


def table(lessons: list[Seen]) -> str:
    """Return the lessons as a table in plain text."""
    rows = [_HEADINGS, *(seen.row() for seen in lessons)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    rows.insert(1, tuple("-" * width for width in widths))
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def run_lesson(path: Path, *, scale: str, build: Path) -> Seen:
    """Execute one lesson, keep it and its HTML in `build`, and return what was seen."""
    print(f"{path.stem} ...", file=sys.stderr, flush=True)
    start, error = time.monotonic(), ""
    try:
        notebook = execute(path, scale=scale, timeout=None if scale == "full" else 900)
    except NotebookError as failure:
        notebook, error = failure.notebook, str(failure)
    seen = seen_in(path.stem, notebook, seconds=time.monotonic() - start, error=error)
    ending = f"FAILED: {error}" if error else "done"
    print(f"{path.stem}: {ending} after {seen.seconds:.0f} s", file=sys.stderr, flush=True)
    build.mkdir(exist_ok=True)
    nbformat.write(notebook, build / path.name)
    page, _ = HTMLExporter().from_notebook_node(notebook)
    (build / f"{path.stem}.html").write_text(page, encoding="utf-8")
    return seen


def main(
    arguments: list[str] | None = None, *, lessons: list[Path] | None = None, build: Path = BUILD
) -> int:
    """Run the lessons, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description="Run every lesson and print what was seen.")
    parser.add_argument("--scale", choices=("test", "workshop", "full"), default="test")
    parser.add_argument("--only", metavar="01", help="lessons whose name begins with this")
    options = parser.parse_args(arguments)
    chosen = [
        path for path in lessons or all_notebooks() if path.name.startswith(options.only or "")
    ]
    if not chosen:
        print(f"no lesson begins with {options.only!r}", file=sys.stderr)
        return 2
    seen = [run_lesson(path, scale=options.scale, build=build) for path in chosen]
    print(table(seen))
    failed = [lesson for lesson in seen if lesson.error]
    for lesson in failed:
        print(f"FAILED {lesson.error}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
