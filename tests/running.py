"""What the tests of `run` share."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from helpers import experiment
from helpers.live import NoView
from helpers.records import Run, Snapshot
from helpers.running.shared_state import STATE_VARIABLE

MIB = 2**20
BUDGET = 512 * MIB
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def run(function: Callable[..., Any], *args: Any, **options: Any) -> Run:
    """Run with a budget and a time that are enough, and without a view."""
    settled: dict[str, Any] = {"ram_budget": BUDGET, "timeout": 120, "view": NoView()}
    return experiment.run(function, *args, **(settled | options))


class Does(NoView):
    """Does something once, when enough has been seen."""

    def __init__(self, action: Callable[[], Any], *, when: Callable[[], bool] = lambda: True):
        self.action, self.when, self.done = action, when, False

    def update(self, snapshots: Sequence[Snapshot]) -> None:
        if snapshots and not self.done and self.when():
            self.done = True
            self.action()


def said_by_both_workers(path: Path) -> Callable[[], bool]:
    return lambda: path.exists() and len(path.read_text().split()) == 2


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def from_a_module_that(
    folder: Path, monkeypatch: pytest.MonkeyPatch, does: str
) -> Callable[[], None]:
    """Return a function of a module that does something when a child of a run imports it."""
    text = f"import os\nif {STATE_VARIABLE!r} in os.environ:\n    {does}\ndef function(): pass\n"
    (folder / f"lesson_{folder.name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    module = __import__(f"lesson_{folder.name}")
    monkeypatch.delitem(sys.modules, module.__name__)
    function: Callable[[], None] = module.function
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return function
