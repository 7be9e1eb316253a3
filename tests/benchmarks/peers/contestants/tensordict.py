"""tensordict: a memory-mapped TensorDict, indexed by whole batches."""

from collections.abc import Iterable

import torch
from tensordict import TensorDict  # type: ignore[import-not-found]
from torch.utils.data import DataLoader

from ..records import Source
from .blocks_of import numbered_blocks
from .mixed_blocks import Batch
from .shuffled_batches import shuffled_batches


def make(source: Source) -> None:
    """Write the rows and labels as memory-mapped tensors."""
    recipe = source.recipe
    shapes = TensorDict(
        {
            "rows": torch.zeros(()).expand(recipe.count, *recipe.row_shape),
            "labels": torch.zeros((), dtype=torch.int64).expand(recipe.count),
        },
        batch_size=[recipe.count],
    )
    mapped = shapes.memmap_like(str(source.folder))
    for part, rows, labels in numbered_blocks(source):
        mapped["rows"][part] = torch.from_numpy(rows)
        mapped["labels"][part] = torch.from_numpy(labels)


def load(source: Source, _variant: str) -> Iterable[Batch]:
    """Return a loader that takes a batch with one index."""
    return DataLoader(
        TensorDict.load_memmap(str(source.folder)),
        sampler=shuffled_batches(source),
        batch_size=None,
        num_workers=source.workers,
        collate_fn=_pair,
    )


def _pair(batch: TensorDict) -> Batch:
    return batch["rows"], batch["labels"]
