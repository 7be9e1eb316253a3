"""litdata: its optimised chunks, streamed from the local disk with its own shuffle."""

from collections.abc import Iterable
from typing import Any

import litdata  # type: ignore[import-not-found]

from ..records import Source
from .mixed_blocks import Batch


class _Make:
    """The function that writes a sample. A block of them at a time, as the library lets one do."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __call__(self, start: int) -> Iterable[tuple[Any, int]]:
        recipe = self.source.recipe
        wanted = range(start, min(start + self.source.block_rows, recipe.count))
        yield from zip(recipe.rows(wanted), recipe.labels(wanted).tolist(), strict=True)


def make(source: Source) -> None:
    """Write chunks of 64 MB."""
    litdata.optimize(
        fn=_Make(source),
        inputs=list(range(0, source.recipe.count, source.block_rows)),
        output_dir=str(source.folder),
        chunk_bytes="64MB",
        num_workers=1,
        mode="overwrite",
    )


def load(source: Source, _variant: str) -> Iterable[Batch]:
    """Return a loader over the chunks, shuffled as the library does by default."""
    dataset = litdata.StreamingDataset(str(source.folder), shuffle=True, seed=source.seed)
    return litdata.StreamingDataLoader(  # type: ignore[no-any-return]
        dataset, batch_size=source.batch_size, num_workers=source.workers
    )
