"""From running a cell to the first snapshot of its experiment: what the reader waits for."""

import os
import statistics
import subprocess
import sys
import time

import pytest
from running import Does

from helpers.experiment import run
from helpers.running.warm_pool import pool

pytestmark = pytest.mark.benchmark
ROUNDS = 5
MOST_WARM, MOST_COLD = 1 / 4, 2.0  # of the time that importing torch takes in the same run


def seconds_to_the_first_sample() -> float:
    """Return the time from the call to the first snapshot; at the latest, its end."""
    came, started = list[float](), time.monotonic()
    run(os.getpid, view=Does(lambda: came.append(time.monotonic())))
    return [*came, time.monotonic()][0] - started


def seconds_to_import_torch() -> float:
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch.utils.data"], check=True)
    return time.monotonic() - started


def test_a_warm_spare_saves_the_import_of_torch_and_without_one_it_is_most_of_the_wait() -> None:
    times: dict[str, list[float]] = {"import": [], "cold": [], "warm": []}
    for _ in range(ROUNDS):  # in turns, so that all meet the same neighbours
        times["import"].append(seconds_to_import_torch())
        pool.clear()
        times["cold"].append(seconds_to_the_first_sample())
        pool.warm_up()
        assert pool.waiting is not None
        pool.waiting.wait_until_warm()
        times["warm"].append(seconds_to_the_first_sample())
    imports, cold, warmed = (statistics.median(seconds) for seconds in times.values())
    sys.stdout.write(
        f"\nfirst snapshot: warm {warmed:.2f} s, cold {cold:.2f} s; import torch: {imports:.2f} s\n"
    )
    assert warmed / imports <= MOST_WARM
    assert cold / imports <= MOST_COLD
