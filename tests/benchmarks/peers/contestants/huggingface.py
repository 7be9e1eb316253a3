"""Hugging Face datasets: a memory-mapped Arrow table, by whole batches or as a shuffled stream."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa  # type: ignore[import-not-found]
import torch
from datasets import Dataset, Features, Sequence, Value  # type: ignore[import-not-found]
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from ..records import Source
from .blocks_of import numbered_blocks
from .mixed_blocks import Batch

_NAME = "rows.arrow"
_RECORD_ROWS = 1000  # the library's own size of a record batch
_STREAM_PARTS, _STREAM_BUFFER = 64, 10_000


def make(source: Source) -> None:
    """Write the Arrow stream that the library itself would write."""
    features = Features(
        {"row": Sequence(Value("float32"), length=source.recipe.width), "label": Value("int64")}
    )
    with pa.ipc.new_stream(source.folder / _NAME, features.arrow_schema) as writer:
        for block in numbered_blocks(source):
            rows = pa.FixedSizeListArray.from_arrays(
                pa.array(block.rows.reshape(-1)), source.recipe.width
            )
            table = pa.table([rows, pa.array(block.labels)], schema=features.arrow_schema)
            writer.write_table(table, max_chunksize=_RECORD_ROWS)


def load(source: Source, variant: str) -> Iterable[Batch]:
    """Return a loader of one variant: 'batches' (any row at random) or 'stream' (a buffer)."""
    table = Dataset.from_file(str(source.folder / _NAME)).with_format("torch")
    if variant == "stream":
        stream = table.to_iterable_dataset(num_shards=_STREAM_PARTS)
        return DataLoader(
            stream.shuffle(seed=source.seed, buffer_size=_STREAM_BUFFER),
            batch_size=source.batch_size,
            num_workers=source.workers,
            collate_fn=_Collate(source.recipe.row_shape),
        )
    order = RandomSampler(table, generator=torch.Generator().manual_seed(source.seed))
    return DataLoader(
        table,
        sampler=BatchSampler(order, source.batch_size, drop_last=False),
        batch_size=None,
        num_workers=source.workers,
        collate_fn=_Collate(source.recipe.row_shape),
    )


class _Collate:
    def __init__(self, row_shape: tuple[int, ...]) -> None:
        self.row_shape = row_shape

    def __call__(self, found: Any) -> Batch:
        if isinstance(found, list):  # single rows of the stream
            rows = torch.stack([one["row"] for one in found])
            labels = torch.stack([one["label"] for one in found])
        else:
            rows, labels = found["row"], found["label"]
        return rows.view(-1, *self.row_shape), labels
