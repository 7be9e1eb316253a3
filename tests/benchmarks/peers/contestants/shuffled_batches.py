"""Full shuffle for stores that can be indexed: every batch is an array of row numbers."""

import torch
from torch import Tensor

from ..records import Source


def shuffled_batches(source: Source) -> list[Tensor]:
    """Return all row numbers in random order, cut into batches: a sampler for DataLoader.

    An array of 256 numbers costs less to make and to use than a list of 256 Python integers.
    """
    generator = torch.Generator().manual_seed(source.seed)
    order = torch.randperm(source.recipe.count, generator=generator)
    return list(torch.split(order, source.batch_size))
