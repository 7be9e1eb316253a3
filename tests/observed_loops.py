"""What the benchmarks of the observer give to `run`."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from helpers.progress import track

# An epoch takes longer than the view's pause between two frames: shorter ones would see more of
# them than their share.
ROWS, BATCH = 262_144, 256


class Mapped(Dataset[torch.Tensor]):
    """Copies one row of a memory map; an epoch goes over all of it, or more than once."""

    def __init__(self, path: Path) -> None:
        self.rows = np.load(path, mmap_mode="r")
        self.step = max(len(self.rows) // ROWS, 1)

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(np.array(self.rows[index * self.step % len(self.rows)]))


Seconds = tuple[float, float]  # on the clock, and of this process's own CPU time


def bare_and_observed(path: Path, watcher: int, pairs: int) -> list[tuple[Seconds, Seconds]]:
    """Return the seconds of so many epochs without an observer, each paired with one with it.

    Between the two nothing differs but that the watcher stands still, and with it the view, which
    gets no new samples, and that the loop is tracked.
    """
    dataset = Mapped(path)
    loader = DataLoader(dataset, batch_size=BATCH)
    assert float(dataset.rows.sum()) == 0  # maps every page
    seconds: list[tuple[Seconds, Seconds]] = []
    for pair in range(pairs + 1):
        timed: dict[str, Seconds] = {}
        for kind in ("bare", "observed") if pair % 2 else ("observed", "bare"):
            os.kill(watcher, signal.SIGSTOP if kind == "bare" else signal.SIGCONT)
            timed[kind] = _time(loader, (lambda batches: batches) if kind == "bare" else track)
        seconds.append((timed["bare"], timed["observed"]))
    os.kill(watcher, signal.SIGCONT)
    return seconds[1:]  # the first pair warms up


def _time(loader: Iterable[Any], observe: Callable[[Iterable[Any]], Iterable[Any]]) -> Seconds:
    start, cpu_start = time.perf_counter(), time.process_time()
    total = sum(float(rows.sum()) for rows in observe(loader))
    assert total == 0
    return time.perf_counter() - start, time.process_time() - cpu_start
