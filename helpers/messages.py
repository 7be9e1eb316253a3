"""Messages: several batches on their way from a DataLoader's worker, sent as one."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

Batch = Any  # a tensor of rows, or a tuple of rows and labels


class Message:
    """The rows of several batches in one tensor, which `ShuffledBlocks.unpack` takes apart."""

    def __init__(self, sizes: Sequence[int], tensors: Sequence[torch.Tensor]) -> None:
        self._sizes = list(sizes)
        self._tensors = list(tensors)

    def __iter__(self) -> Iterator[Batch]:
        raise TypeError(
            f"a worker's message of {len(self._sizes)} batches is not a batch: "
            "loop over dataset.unpack(loader), not over the loader"
        )

    def batches(self) -> Iterator[Batch]:
        """Yield the batches, which are parts of the message's memory."""
        parts = [torch.split(tensor, self._sizes) for tensor in self._tensors]
        yield from map(as_batch, zip(*parts, strict=True))


def as_batch(tensors: Sequence[torch.Tensor]) -> Batch:
    """Return the tensors of the columns as a loop wants them: one alone, or a tuple."""
    return tensors[0] if len(tensors) == 1 else tuple(tensors)
