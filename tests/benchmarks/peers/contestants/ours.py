"""Our own readers, as a reader of the README would use them."""

from collections.abc import Iterable

from torch.utils.data import DataLoader

from helpers.blocks import ShuffledBlocks

from ..records import Source
from .mixed_blocks import Batch


def load(source: Source, variant: str) -> Iterable[Batch]:
    """Return the loader of one variant: 'blocks' is the fast path."""
    return {"blocks": _blocks}[variant](source)


def _blocks(source: Source) -> Iterable[Batch]:
    batches = ShuffledBlocks(
        source.rows_path,
        source.labels_path,
        batch_size=source.batch_size,
        mix_bytes=source.mix_bytes,
        seed=source.seed,
    )
    if not source.workers:
        return batches
    return batches.unpack(DataLoader(batches, batch_size=None, num_workers=source.workers))
