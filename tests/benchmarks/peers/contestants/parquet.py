"""pyarrow's parquet: row groups of 4 MiB, uncompressed, read whole and mixed."""

from collections.abc import Callable, Iterable

import pyarrow as pa  # type: ignore[import-not-found]
import pyarrow.parquet as pq  # type: ignore[import-not-found]

from ..records import Source
from .blocks_of import numbered_blocks
from .mixed_blocks import Batch, Block, load_mixed

_NAME = "rows.parquet"


def make(source: Source) -> None:
    """Write lists of a fixed size; dictionaries and compression find nothing in noise."""
    schema = pa.schema({"row": pa.list_(pa.float32(), source.recipe.width), "label": pa.int64()})
    with pq.ParquetWriter(
        source.folder / _NAME, schema, compression="none", use_dictionary=False
    ) as writer:
        for block in numbered_blocks(source):
            rows = pa.FixedSizeListArray.from_arrays(
                pa.array(block.rows.reshape(-1)), source.recipe.width
            )
            table = pa.table([rows, pa.array(block.labels)], schema=schema)
            writer.write_table(table, row_group_size=source.block_rows)


def load(source: Source, _variant: str) -> Iterable[Batch]:
    """Return a loader of mixed row groups."""
    return load_mixed(source, _open_groups)


def _open_groups(source: Source) -> Callable[[slice], Block]:
    file = pq.ParquetFile(source.folder / _NAME)

    def read(part: slice) -> Block:
        table = file.read_row_group(part.start // source.block_rows).combine_chunks()
        values = table["row"].chunk(0).flatten().to_numpy()
        labels = table["label"].chunk(0).to_numpy()
        return values.reshape(-1, *source.recipe.row_shape), labels

    return read
