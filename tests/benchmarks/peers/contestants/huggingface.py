"""Hugging Face datasets: a memory-mapped Arrow table, by whole batches or as a shuffled stream."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import pyarrow as pa  # type: ignore[import-not-found]
import torch
from datasets import Dataset, Features, Sequence, Value  # type: ignore[import-not-found]
from torch.utils.data import DataLoader

from ..records import Source
from .blocks_of import numbered_blocks
from .mixed_blocks import Batch
from .shuffled_batches import shuffled_batches

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
    """Return a loader of one variant: 'batches' (any row at random) or 'stream' (a buffer).

    Each has the format that was fastest here: Arrow, and numpy, whole batches at a time.
    """
    table = Dataset.from_file(str(source.folder / _NAME))
    if variant == "stream":
        parts = table.to_iterable_dataset(num_shards=_STREAM_PARTS).with_format("numpy")
        stream = parts.shuffle(seed=source.seed, buffer_size=_STREAM_BUFFER)
        return DataLoader(
            stream.batch(source.batch_size),
            batch_size=None,
            num_workers=source.workers,
            collate_fn=partial(_from_numpy, source.recipe.row_shape),
        )
    return DataLoader(
        table.with_format("arrow"),
        sampler=[batch.numpy() for batch in shuffled_batches(source)],
        batch_size=None,
        num_workers=source.workers,
        collate_fn=partial(_from_arrow, source.recipe.row_shape),
    )


def _from_numpy(row_shape: tuple[int, ...], found: dict[str, Any]) -> Batch:
    rows = torch.from_numpy(found["row"]).view(-1, *row_shape)
    return rows, torch.from_numpy(found["label"])


def _from_arrow(row_shape: tuple[int, ...], found: Any) -> Batch:
    rows = found["row"].combine_chunks().flatten().to_numpy()
    labels = found["label"].to_numpy()
    return torch.tensor(rows).view(-1, *row_shape), torch.tensor(labels)
