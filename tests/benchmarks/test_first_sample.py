"""From running a cell to the first snapshot of its experiment: what the reader waits for."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import pytest
from observed_loops import nothing

from helpers.experiment import run
from helpers.live import NoView
from helpers.records import Snapshot
from helpers.running.warm_pool import pool

pytestmark = pytest.mark.benchmark
ROUNDS = 5
MOST_WARM = 1.0
MOST_OVER_THE_IMPORT = 2.0


class Stopwatch(NoView):
    """Notes when the first snapshot came."""

    def __init__(self) -> None:
        self.came: float | None = None

    def update(self, snapshots: Sequence[Snapshot]) -> None:
        if snapshots and self.came is None:
            self.came = time.monotonic()


def seconds_to_the_first_sample() -> float:
    """Return the time from the call to the first snapshot; at the latest, its end."""
    watch, started = Stopwatch(), time.monotonic()
    run(nothing, view=watch)
    return (watch.came or time.monotonic()) - started


def seconds_to_import_torch() -> float:
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch.utils.data"], check=True)
    return time.monotonic() - started


def warm() -> None:
    pool.warm_up()
    assert pool.waiting is not None
    pool.waiting.wait_until_warm()


def median_of(measure: Callable[[], float], prepare: Callable[[], None]) -> float:
    times = []
    for _ in range(ROUNDS):
        prepare()
        times.append(measure())
    return statistics.median(times)


def test_with_a_warm_spare_the_first_sample_comes_within_a_second() -> None:
    seconds = median_of(seconds_to_the_first_sample, warm)
    sys.stdout.write(f"\nfirst snapshot, warm sandbox: {seconds:.2f} s\n")
    assert seconds <= MOST_WARM


def test_without_a_spare_it_takes_little_more_than_importing_torch() -> None:
    imports = median_of(seconds_to_import_torch, pool.clear)
    seconds = median_of(seconds_to_the_first_sample, pool.clear)
    sys.stdout.write(
        f"\nfirst snapshot, no sandbox: {seconds:.2f} s; import torch: {imports:.2f} s\n"
    )
    assert seconds <= imports + MOST_OVER_THE_IMPORT
