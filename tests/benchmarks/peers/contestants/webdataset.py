"""webdataset: tar files of samples, in random order, through a shuffle buffer."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
import webdataset as wds  # type: ignore[import-not-found]

from ..records import Source
from .blocks_of import numbered_blocks
from .mixed_blocks import Batch

_PARTS_AT_LEAST = 16  # tar files: enough of them to shuffle, and to share among workers
_BUFFER = 10_000


def make(source: Source) -> None:
    """Write each row as raw bytes and its label as text, many to a tar file."""
    in_one = max(1, min(10_000, source.recipe.count // _PARTS_AT_LEAST))
    with wds.ShardWriter(
        str(source.folder / "rows-%05d.tar"), maxcount=in_one, maxsize=1 << 28, verbose=0
    ) as tars:
        for block in numbered_blocks(source):
            for offset, (row, label) in enumerate(zip(block.rows, block.labels, strict=True)):
                name = f"{block.part.start + offset:09d}"
                tars.write({"__key__": name, "row": row.tobytes(), "cls": b"%d" % label})


def load(source: Source, _variant: str) -> Iterable[Batch]:
    """Return the usual pipeline: tar files shuffled, samples shuffled in a buffer, batched."""
    tars = sorted(map(str, source.folder.glob("rows-*.tar")))
    buffer = min(_BUFFER, source.mix_bytes // max(1, source.workers) // source.recipe.row_bytes)
    dataset = (
        wds.WebDataset(tars, shardshuffle=len(tars), seed=source.seed)
        .shuffle(buffer)
        .map(_Decode(source.recipe.row_shape))
        .batched(source.batch_size, collation_fn=_collate)
    )
    return wds.WebLoader(  # type: ignore[no-any-return]
        dataset, batch_size=None, num_workers=source.workers
    )


class _Decode:
    def __init__(self, row_shape: tuple[int, ...]) -> None:
        self.row_shape = row_shape

    def __call__(self, sample: dict[str, Any]) -> tuple[Any, int]:
        row = np.frombuffer(sample["row"], np.float32).reshape(self.row_shape)
        return row, int(sample["cls"])


def _collate(samples: list[tuple[Any, int]]) -> Batch:
    rows, labels = zip(*samples, strict=True)
    return torch.from_numpy(np.stack(rows)), torch.tensor(labels)
