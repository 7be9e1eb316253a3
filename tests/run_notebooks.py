"""Run every lesson without a browser and print what was seen: `make run`.

Leaves the executed notebooks and their HTML in build/. Ends with 1 if a cell failed, and names it.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from nbconvert import HTMLExporter
from notebook_tools import NotebookError, all_notebooks, code_cells, execute, runs_shown, tagged

from helpers.units import format_bytes

BUILD = Path(__file__).resolve().parents[1] / "build"
_HEADINGS = ("lesson", "failure seen", "cure seen", "seconds", "peak memory")


def row_of(lesson: str, notebook: Any, seconds: float) -> tuple[str, ...]:
    """Return a lesson's row of the table, from the executed notebook."""
    runs = [run for cell in code_cells(notebook) for run in runs_shown(cell)]
    peak = max((run["peak_anonymous_bytes"] for run in runs), default=0)
    endings = (_endings(notebook, "failure"), _endings(notebook, "cure"))
    return (lesson, *endings, f"{seconds:.0f}", format_bytes(peak) if peak else "-")


def _endings(notebook: Any, tag: str) -> str:
    """Return how the experiments in the cells with a tag ended, or '-' if there were none."""
    runs = [run for cell in tagged(notebook, tag) for run in runs_shown(cell)]
    return "; ".join(_ending(run) for run in runs) or "-"


def _ending(run: dict[str, Any]) -> str:
    rate = f", {run['samples_per_second']:,.0f} samples/s" if run["samples_per_second"] else ""
    return f"{run['ending']}{rate}"


def table(rows: list[tuple[str, ...]]) -> str:
    """Return the lessons' rows as a table in plain text."""
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True)]
    rows = [_HEADINGS, tuple("-" * width for width in widths), *rows]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def run_lesson(path: Path, *, scale: str, build: Path) -> tuple[tuple[str, ...], str]:
    """Execute one lesson, keep it and its HTML in `build`; return its row, and its error or ''."""
    print(f"{path.stem} ...", file=sys.stderr, flush=True)
    start, error = time.monotonic(), ""
    try:
        notebook = execute(path, scale=scale, timeout=None if scale == "full" else 900)
    except NotebookError as failure:
        notebook, error = failure.notebook, str(failure)
    seconds = time.monotonic() - start
    ending = f"FAILED: {error}" if error else "done"
    print(f"{path.stem}: {ending} after {seconds:.0f} s", file=sys.stderr, flush=True)
    build.mkdir(exist_ok=True)
    nbformat.write(notebook, build / path.name)
    page, _ = HTMLExporter().from_notebook_node(notebook)
    (build / f"{path.stem}.html").write_text(page, encoding="utf-8")
    return row_of(path.stem, notebook, seconds), error


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
    print(table([row for row, _ in seen]))
    failed = [error for _, error in seen if error]
    for error in failed:
        print(f"FAILED {error}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
