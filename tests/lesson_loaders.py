"""Datasets and loops over loaders that the tests give to `run`."""

import multiprocessing
import time
from collections.abc import Iterator
from typing import Any

import torch
from lesson_functions import hold
from torch.utils.data import DataLoader, Dataset, get_worker_info

from helpers.progress import track


class Rows(Dataset[torch.Tensor]):
    """Zeros, made on demand."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(64)


class FillsMemoryInOneWorker(Rows):
    """Takes 1 GiB in worker 0 and nowhere else."""

    def __getitem__(self, index: int) -> torch.Tensor:
        info = get_worker_info()
        if info is not None and info.id == 0:
            hold(2**30)
        return super().__getitem__(index)


class CannotBeSentToWorkers(Rows):
    """Can be pickled, and not made again in a worker."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        if multiprocessing.current_process().name != "MainProcess":
            raise AttributeError("no such row in a worker")


class CallsTrack(Rows):
    """Calls `track` where it must not count: in a worker."""

    def __getitem__(self, index: int) -> torch.Tensor:
        return sum(track([torch.ones(64)] * 3), torch.zeros(64))


def one_epoch(dataset: Dataset[torch.Tensor], workers: int) -> int:
    loader = DataLoader(dataset, batch_size=16, num_workers=workers)
    return sum(len(rows) for rows in track(loader))


def one_epoch_spawned(dataset: Dataset[torch.Tensor]) -> int:
    return len(list(DataLoader(dataset, num_workers=1, multiprocessing_context="spawn")))


def endless_epoch() -> None:
    """Track batches of four samples for ever."""
    for _ in track(_endless()):
        pass


def _endless() -> Iterator[torch.Tensor]:
    while True:
        yield torch.zeros(4, 8)


class LargeRows(Rows):
    """8 MiB each, of its own."""

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(2**21)


def wait_at_each(dataset: Dataset[torch.Tensor], workers: int, factor: int, seconds: float) -> None:
    """Let the workers fill their queue."""
    options: dict[str, Any] = {"num_workers": workers, "prefetch_factor": factor}
    for _ in track(DataLoader(dataset, batch_size=None, **options)):
        time.sleep(seconds)
