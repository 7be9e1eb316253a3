"""mosaicml-streaming: MDS shards on the local disk, shuffled by its default algorithm."""

from collections.abc import Iterable, Iterator

from streaming import MDSWriter, StreamingDataset  # type: ignore[import-not-found]
from torch.utils.data import DataLoader

from ..records import Source
from .blocks_of import numbered_blocks
from .mixed_blocks import Batch


def make(source: Source) -> None:
    """Write shards of the default 64 MiB."""
    shape = ",".join(map(str, source.recipe.row_shape))
    columns = {"row": f"ndarray:float32:{shape}", "label": "int64"}
    with MDSWriter(out=str(source.folder), columns=columns, exist_ok=True) as shards:
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
    dataset = StreamingDataset(
        local=str(source.folder),
        shuffle=True,
        shuffle_seed=source.seed,
        batch_size=source.batch_size,
    )
    return _Pairs(DataLoader(dataset, batch_size=source.batch_size, num_workers=source.workers))
