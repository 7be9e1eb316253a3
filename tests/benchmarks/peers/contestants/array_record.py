"""array_record by itself: its data source in a plain DataLoader, asked for whole batches."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from array_record.python.array_record_data_source import (  # type: ignore[import-not-found]
    ArrayRecordDataSource,
)
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..records import Source
from .mixed_blocks import Batch
from .shuffled_batches import shuffled_batches

SUFFIX, LABEL_BYTES = ".array_record", 8  # as grain's store has them


def shards_of(source: Source) -> list[str]:
    """Return the files of grain's store, in the order of their rows."""
    return sorted(map(str, source.folder.glob(f"*{SUFFIX}")))


class RecordBatches(Dataset[Batch]):
    """Many records in one call, which the library answers with threads."""

    def __init__(self, source: Source) -> None:
        self.row_shape = source.recipe.row_shape
        self.records: Any = ArrayRecordDataSource(shards_of(source))

    def __getitem__(self, chosen: Tensor) -> Batch:
        found = b"".join(self.records.__getitems__(chosen.tolist()))
        records = np.frombuffer(found, np.uint8).reshape(len(chosen), -1)
        rows = records[:, :-LABEL_BYTES].copy().view(np.float32)
        labels = records[:, -LABEL_BYTES:].copy().view(np.int64)
        return torch.from_numpy(rows).view(-1, *self.row_shape), torch.from_numpy(labels[:, 0])


def load(source: Source, _variant: str) -> Iterable[Batch]:
    """Return a full shuffle in batches."""
    return DataLoader(
        RecordBatches(source),
        sampler=shuffled_batches(source),
        batch_size=None,
        num_workers=source.workers,
    )
