"""The live view in a real JupyterLab: the figure moves, and Stop reaches a busy kernel."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from notebook_tools import made_up

pytestmark = pytest.mark.browser

SHOW_RUNS = """
from helpers.live import mimebundle
from helpers.records import Counters, Outcome, Run, Snapshot
get_ipython().display_formatter.mimebundle_formatter.for_type(Run, mimebundle)
"""
# Forty seconds of made-up snapshots: no child process, only the view.
EXPERIMENT = """
import time
from helpers.live import choose_view
view = choose_view("a made-up loop", 2**30, "watcher")
snapshots, start = [], time.monotonic()
while (seconds := time.monotonic() - start) < 40 and not view.stop_requested():
    counters = Counters(int(900 * seconds), int(9 * seconds), 0, seconds * 0.7, seconds * 0.3)
    memory = int((0.2 + 0.03 * seconds) * 2**30)
    memory_bytes = (memory, memory // 2, 2**26, memory * 2)
    snapshots.append(Snapshot(seconds, *memory_bytes, 1, counters=counters))
    view.update(snapshots)
    time.sleep(0.05)
outcome = Outcome.STOPPED if view.stop_requested() else Outcome.FINISHED
run = Run("a made-up loop", outcome, seconds, 2**30, "watcher", "PSS", "fork", tuple(snapshots))
view.finish(run)
run
"""
ASK = "from helpers.predictions import predict"  # a lesson never begins with the question either
GUESS = """
guess = predict("How much memory will the loop take?", "MiB")
guess
"""


def _notebook(path: Path, *cells: str) -> Path:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(made_up(*map(str.strip, cells), kernelspec=kernel), path)
    return path


def test_the_figure_moves_and_stop_ends_a_busy_cell(
    tmp_path: Path, open_notebook: Callable[[Path], Any]
) -> None:
    lab = open_notebook(_notebook(tmp_path / "live.ipynb", SHOW_RUNS, EXPERIMENT, "run"))
    lab.run()
    cell = lab.cell(1)
    lab.wait_for_frames(cell, 4)
    cell.get_by_role("button", name="Stop").click()
    cell.locator("img[alt*='stopped']").wait_for(timeout=60_000)  # too late: it says finished
    lab.cell(2).locator("img[alt*='stopped']").wait_for(timeout=60_000)  # a later cell draws it
    lab.wait_for_cell(2)
    assert cell.locator("img").count() == 1  # the cell's last expression did not draw it again
    assert "a made-up loop: stopped" in cell.locator("pre").inner_text()
    assert cell.get_by_role("button", name="Stop").count() == 0
    lab.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    saved = (tmp_path / "live.ipynb").read_text()
    assert "widget" not in saved
    assert json.loads(saved)["cells"][1]["outputs"][0]["data"]["text/plain"]
    lab.page.reload()  # the saved notebook
    lab.wait_for_kernel()
    lab.cell(1).locator("img[alt*='stopped']").wait_for(timeout=60_000)
    assert "model not found" not in lab.cell(1).inner_text().lower()


def test_a_guess_is_typed_into_a_field_and_shown_as_text_afterwards(
    tmp_path: Path, open_notebook: Callable[[Path], Any]
) -> None:
    lab = open_notebook(_notebook(tmp_path / "guess.ipynb", ASK, GUESS, "guess"))
    for index in (0, 1):
        lab.run("notebook:run-cell-and-select-next")
        lab.wait_for_cell(index)
    lab.cell(1).get_by_label("Your guess").click(timeout=60_000)
    lab.page.keyboard.type("1,500")
    lab.page.keyboard.press("Enter")
    lab.cell(1).get_by_text("1,500 is kept").wait_for(timeout=60_000)
    lab.run("notebook:run-cell")  # the click has selected its cell
    lab.cell(1).get_by_text("1,500 is kept").wait_for(timeout=60_000)
    lab.cell(2).locator(".jp-InputPrompt").click()
    lab.run("notebook:run-cell")
    lab.cell(2).get_by_text("You said 1,500 MiB").wait_for(timeout=60_000)
