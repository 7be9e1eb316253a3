"""What watching costs the one who is watched: the live view, the snapshots and `track` together.

The watcher and the view take a few percent of a second core. Where no core is free they take them
from the loop, and its own work takes more CPU time, too, as caches and cores are shared. Then only
a looser bound is held, on that CPU time.
"""

import os
import signal
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psutil
import pytest
from numpy.lib.format import open_memmap
from observed_loops import bare_and_observed

from helpers.drawing import notebook_view
from helpers.drawing.notebook_view import NotebookView
from helpers.experiment import run
from helpers.live import NoView
from helpers.records import Snapshot
from helpers.running.warm_pool import pool
from helpers.units import format_bytes

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="the watcher cannot be paused"),
]
PAIRS = 15
MOST, MOST_WHERE_BUSY = 1.05, 1.25


class DrawsWhatIsNew(NoView):
    """The notebook's own live view, which stands still when the watcher does."""

    def __init__(self, view: NotebookView) -> None:
        self.view, self.seen = view, 0

    def update(self, snapshots: Sequence[Snapshot]) -> None:
        if len(snapshots) > self.seen:
            self.seen = len(snapshots)
            self.view.update(snapshots)


@pytest.mark.parametrize("size", [64 * 2**20, 2 * 2**30])
def test_watching_slows_an_epoch_by_at_most_a_twentieth(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # There is no front end here: frames are drawn and encoded, and sent nowhere.
    shown: list[object] = []
    monkeypatch.setattr(notebook_view, "display", lambda *_, **__: type("H", (), {"display_id": 0}))
    monkeypatch.setattr(notebook_view, "update_display", lambda *words, **__: shown.append(words))
    path, load = tmp_path / "rows.npy", psutil.getloadavg()[0]
    open_memmap(path, "w+", np.float32, (size // 512, 128))  # zeros, which nobody writes
    pool.warm_up()
    assert pool.waiting is not None
    view = DrawsWhatIsNew(NotebookView("an epoch", 2**30, "watcher", widgets=False))
    record = run(
        bare_and_observed, path, pool.waiting.watcher.pid, PAIRS, ram_budget="1 GiB", view=view
    )
    path.unlink()
    assert record.finished, record
    clock, cpu = (
        statistics.median(seen[kind] / alone[kind] for alone, seen in record.value)
        for kind in (0, 1)
    )
    sys.stdout.write(
        f"\nobserver, {format_bytes(size)} mapped: {cpu - 1:+.1%} of CPU time, {clock - 1:+.1%} on "
        f"the clock (medians of {PAIRS} pairs; {len(record.snapshots)} snapshots, {len(shown)} "
        f"frames; load average before it {load:.1f})\n"
    )
    assert len(shown) > PAIRS / 4  # the view was drawing
    busy = load > (os.cpu_count() or 1) - 1.5  # no core was free for the observer
    assert cpu <= (MOST_WHERE_BUSY if busy else MOST)
    assert busy or clock <= MOST
