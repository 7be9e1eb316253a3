"""torchdata nodes over a memory map: its threads take the place of worker processes."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch.utils.data import RandomSampler
from torchdata.nodes import (  # type: ignore[import-not-found]
    Batcher,
    Loader,
    Mapper,
    ParallelMapper,
    Prefetcher,
    SamplerWrapper,
)

from ..records import Source
from .mixed_blocks import Batch


def load(source: Source, _variant: str) -> Iterable[Batch]:
    """Return shuffled indices, batched, and read by as many threads as there may be workers."""
    every = range(source.recipe.count)
    order = RandomSampler(every, generator=torch.Generator().manual_seed(source.seed))
    indices = Batcher(SamplerWrapper(order), source.batch_size, drop_last=False)
    fetch = _open(source)
    if not source.workers:
        return Loader(Mapper(indices, fetch))  # type: ignore[no-any-return]
    read = ParallelMapper(indices, fetch, num_workers=source.workers, method="thread")
    return Loader(Prefetcher(read, prefetch_factor=2))  # type: ignore[no-any-return]


def _open(source: Source) -> Callable[[list[int]], Batch]:
    rows: Any = np.load(source.rows_path, mmap_mode="r")
    labels: Any = np.load(source.labels_path, mmap_mode="r")
    return lambda chosen: (torch.from_numpy(rows[chosen]), torch.from_numpy(labels[chosen]))
