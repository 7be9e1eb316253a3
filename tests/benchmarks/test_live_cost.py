"""What the live view costs the kernel while an experiment runs."""

import time

import pytest
from made_up import GIB, finished_run

from helpers.drawing import notebook_view
from helpers.drawing.notebook_view import NotebookView

pytestmark = pytest.mark.benchmark


def test_the_live_view_costs_at_most_a_twentieth_of_a_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notebook_view, "display", lambda *_, **__: type("H", (), {"display_id": 0}))
    monkeypatch.setattr(notebook_view, "update_display", lambda *_, **__: None)
    now = 0.0
    view = NotebookView("a loop", GIB, "watcher", widgets=False, clock=lambda: now)
    run = finished_run(seconds=60)
    view.update(run.snapshots[:1])  # importing matplotlib is paid once, not for each minute
    start = time.thread_time()
    for step in range(1200):  # a minute, looked at twenty times a second
        now = step / 20
        view.update(run.snapshots[: step // 12 + 1])
    share = (time.thread_time() - start) / 60
    print(f"live view: {share:.1%} of a core")
    assert share <= 0.05
