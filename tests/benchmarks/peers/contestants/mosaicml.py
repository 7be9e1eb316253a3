"""mosaicml-streaming: MDS shards on the local disk, shuffled by its default algorithm."""

import importlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader

from ..records import Source
from .blocks_of import numbered_blocks
from .mixed_blocks import Batch


def _import_streaming() -> Any:
    """Return the library. It imports torchvision, whose operators it never calls.

    Where pip has brought a torchvision built for CUDA beside a torch without, the operators do not
    load and the import fails for want of their names: so they are given their names.
    """
    try:
        return importlib.import_module("streaming")
    except RuntimeError:
        for operator in ("nms", "qnms"):
            torch.library.define(
                f"torchvision::{operator}", "(Tensor a, Tensor b, float c) -> Tensor"
            )
        return importlib.import_module("streaming")


streaming = _import_streaming()


def make(source: Source) -> None:
    """Write shards of the default 64 MiB."""
    shape = ",".join(map(str, source.recipe.row_shape))
    columns = {"row": f"ndarray:float32:{shape}", "label": "int64"}
    with streaming.MDSWriter(out=str(source.folder), columns=columns, exist_ok=True) as shards:
        for block in numbered_blocks(source):
            for row, label in zip(block.rows, block.labels, strict=True):
                shards.write({"row": row, "label": label})


class _Pairs:
    """The loader's dictionaries as pairs."""

    def __init__(self, batches: Iterable[dict[str, Batch]]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.batches:
            yield batch["row"], batch["label"]  # type: ignore[misc]


def load(source: Source, _variant: str) -> Iterable[Batch]:
    """Return a loader over the shards."""
    dataset = streaming.StreamingDataset(
        local=str(source.folder),
        shuffle=True,
        shuffle_seed=source.seed,
        batch_size=source.batch_size,
    )
    return _Pairs(DataLoader(dataset, batch_size=source.batch_size, num_workers=source.workers))
