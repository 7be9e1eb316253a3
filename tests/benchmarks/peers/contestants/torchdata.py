"""torchdata nodes over a memory map: its threads take the place of worker processes."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchdata.nodes import (  # type: ignore[import-not-found]
    IterableWrapper,
    Loader,
    Mapper,
    ParallelMapper,
    Prefetcher,
)

from ..records import Source
from .mixed_blocks import Batch
from .shuffled_batches import shuffled_batches


def load(source: Source, _variant: str) -> Iterable[Batch]:
    """Return shuffled indices, batched, and read by as many threads as there may be workers."""
    indices = IterableWrapper(shuffled_batches(source))
    fetch = _open(source)
    if not source.workers:
        return Loader(Mapper(indices, fetch))  # type: ignore[no-any-return]
    read = ParallelMapper(indices, fetch, num_workers=source.workers, method="thread")
    return Loader(Prefetcher(read, prefetch_factor=2))  # type: ignore[no-any-return]


def _open(source: Source) -> Callable[[Tensor], Batch]:
    rows: Any = np.load(source.rows_path, mmap_mode="r")
    labels: Any = np.load(source.labels_path, mmap_mode="r")
    return lambda chosen: (
        torch.from_numpy(rows[chosen.numpy()]),
        torch.from_numpy(labels[chosen.numpy()]),
    )
