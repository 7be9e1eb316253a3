"""What the live view costs the notebook while an experiment runs."""

import time
from statistics import median

import pytest
from made_up import GIB, finished_run

from helpers.drawing.live_figure import LiveFigure

pytestmark = pytest.mark.benchmark
FRAMES = 40


def test_a_frame_over_a_saved_background_costs_a_quarter_of_a_whole_one() -> None:
    snapshots = finished_run(seconds=60).snapshots
    kept, whole = (LiveFigure("a loop", GIB, "watcher") for _ in range(2))
    costs: dict[LiveFigure, list[float]] = {kept: [], whole: []}
    for figure in costs:
        figure.frame(snapshots)  # its axes are as long as they get; imports are paid
    for _ in range(FRAMES):  # they take turns, so that both meet the same neighbours
        for figure, seconds in costs.items():
            if figure is whole:
                figure._background = None
            start = time.thread_time()
            figure.frame(snapshots)
            seconds.append(time.thread_time() - start)
    ours, theirs = median(costs[kept]), median(costs[whole])
    print(f"live view: {ours:.4f} s a frame, {theirs:.4f} s for a whole one: {ours / theirs:.2f}")
    assert kept.backgrounds_drawn == 1
    assert ours / theirs <= 1 / 4
