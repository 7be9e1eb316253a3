"""Datasets as people write them: one row at a time, or as whole batches of a memory map."""

from collections.abc import Callable, Iterable
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..records import Source
from .mixed_blocks import Batch, Block, load_mixed
from .shuffled_batches import shuffled_batches


class MappedRows(Dataset[tuple[Tensor, int]]):
    """A memory map, opened at first access, one copied row at a time."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.rows: Any = None
        self.labels: Any = None

    def __len__(self) -> int:
        return self.source.recipe.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        self._open()
        return torch.from_numpy(np.array(self.rows[index])), int(self.labels[index])

    def _open(self) -> None:
        if self.rows is None:
            self.rows = np.load(self.source.rows_path, mmap_mode="r")
            self.labels = np.load(self.source.labels_path, mmap_mode="r")


class MappedBatches(MappedRows):
    """The same map asked for a whole batch: one fancy index instead of 256 copies."""

    def __getitem__(self, index: Any) -> Any:
        self._open()
        chosen = index.numpy()
        return torch.from_numpy(self.rows[chosen]), torch.from_numpy(self.labels[chosen])


class Hdf5Rows(MappedRows):
    """h5py, the dataset object kept, one row at a time."""

    def _open(self) -> None:
        if self.rows is None:
            file = h5py.File(self.source.rows_path, "r")
            self.rows, self.labels = file["rows"], file["labels"][:]


def _open_hdf5_blocks(source: Source) -> Callable[[slice], Block]:
    file = h5py.File(source.rows_path, "r")
    rows, labels = file["rows"], file["labels"]
    return lambda part: (rows[part], labels[part])


def load(source: Source, variant: str) -> Iterable[Batch]:
    """Return the loader of one variant: 'mapped rows', 'mapped batches', 'hdf5 rows' or blocks."""
    if variant == "hdf5 blocks":
        return load_mixed(source, _open_hdf5_blocks)
    if variant == "mapped batches":
        return DataLoader(
            MappedBatches(source),
            sampler=shuffled_batches(source),
            batch_size=None,
            num_workers=source.workers,
        )
    kinds = {"mapped rows": MappedRows, "hdf5 rows": Hdf5Rows}
    return DataLoader(
        kinds[variant](source),
        batch_size=source.batch_size,
        shuffle=True,
        generator=torch.Generator().manual_seed(source.seed),
        num_workers=source.workers,
    )
