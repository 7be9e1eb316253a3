"""zarr: chunks of 4 MiB, uncompressed, read whole and mixed."""

from collections.abc import Callable, Iterable

import zarr  # type: ignore[import-not-found]

from ..records import Source
from .blocks_of import numbered_blocks
from .mixed_blocks import Batch, Block, load_mixed


def make(source: Source) -> None:
    """Write two arrays whose chunks are the blocks that will be read."""
    recipe = source.recipe
    rows, labels = (
        zarr.create_array(
            store=source.folder / name,
            shape=(recipe.count, *shape),
            chunks=(source.block_rows, *shape),
            dtype=dtype,
            compressors=None,
        )
        for name, shape, dtype in (("rows", recipe.row_shape, "float32"), ("labels", (), "int64"))
    )
    for block in numbered_blocks(source):
        rows[block.part], labels[block.part] = block.rows, block.labels


def load(source: Source, _variant: str) -> Iterable[Batch]:
    """Return a loader of mixed chunks."""
    return load_mixed(source, _open_chunks)


def _open_chunks(source: Source) -> Callable[[slice], Block]:
    rows, labels = (zarr.open_array(source.folder / name, mode="r") for name in ("rows", "labels"))
    return lambda part: (rows[part], labels[part])
