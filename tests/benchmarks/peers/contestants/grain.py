"""grain over array_record: a global shuffle of records, read by its threads or its processes."""

import itertools
from collections.abc import Iterable, Iterator

import grain  # type: ignore[import-not-found]
import numpy as np
import torch
from array_record.python.array_record_module import (  # type: ignore[import-not-found]
    ArrayRecordWriter,
)
from numpy.typing import NDArray

from ..records import Source
from .array_record import LABEL_BYTES, SUFFIX, shards_of
from .blocks_of import numbered_blocks
from .mixed_blocks import Batch

_SHARD_ROWS = 1 << 15


def make(source: Source) -> None:
    """Write a record for each row, in groups of one, which random access wants, and in shards.

    What one record takes to find grows with its shard: out of a single file of a million, grain
    read 400 a second, out of 64 files 17,000. array_record, asked for whole batches, likes fewer.
    """
    shards = itertools.groupby(
        numbered_blocks(source), key=lambda block: block.part.start // _SHARD_ROWS
    )
    for number, blocks in shards:
        path = source.folder / f"rows-{number:05}{SUFFIX}"
        writer = ArrayRecordWriter(str(path), "group_size:1,uncompressed")
        for block in blocks:
            for row, label in zip(block.rows, block.labels, strict=True):
                writer.write(row.tobytes() + label.tobytes())
        writer.close()


class _Decode:
    def __init__(self, row_shape: tuple[int, ...]) -> None:
        self.row_shape = row_shape

    def __call__(self, record: bytes) -> tuple[NDArray[np.float32], np.int64]:
        row = np.frombuffer(record[:-LABEL_BYTES], np.float32).reshape(self.row_shape)
        return row, np.frombuffer(record[-LABEL_BYTES:], np.int64)[0]


class _Tensors:
    """The batches of arrays as tensors."""

    def __init__(self, batches: Iterable[tuple[NDArray[np.float32], NDArray[np.int64]]]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Batch]:
        for rows, labels in self.batches:
            yield torch.from_numpy(rows), torch.from_numpy(labels)


def load(source: Source, _variant: str) -> Iterable[Batch]:
    """Return its usual pipeline, with its own number of read threads."""
    records = grain.sources.ArrayRecordDataSource(shards_of(source))
    batches = (
        grain.MapDataset.source(records)
        .shuffle(seed=source.seed)
        .map(_Decode(source.recipe.row_shape))
        .batch(source.batch_size)
        .to_iter_dataset()
    )
    if source.workers:
        options = grain.multiprocessing.MultiprocessingOptions(num_workers=source.workers)
        batches = batches.mp_prefetch(options)
    return _Tensors(batches)
