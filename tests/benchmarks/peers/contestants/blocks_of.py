"""The rows of a recipe, block by block, for those who write a store of their own."""

from collections.abc import Iterator
from typing import NamedTuple

from data_gen.recipe import Labels, Rows

from ..records import Source


class NumberedBlock(NamedTuple):
    """Some rows that follow one another, and where they belong."""

    part: slice
    rows: Rows
    labels: Labels


def numbered_blocks(source: Source) -> Iterator[NumberedBlock]:
    """Yield all rows of the source's recipe in the order of the file."""
    count, step = source.recipe.count, source.block_rows
    for start in range(0, count, step):
        wanted = range(start, min(start + step, count))
        yield NumberedBlock(
            slice(wanted.start, wanted.stop),
            source.recipe.rows(wanted),
            source.recipe.labels(wanted),
        )
