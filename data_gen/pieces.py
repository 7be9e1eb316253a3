"""The parts of a dataset that are made, written and checked in one go, chunk by whole chunk."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from data_gen.layouts import Layout
from data_gen.recipe import Recipe, Rows
from data_gen.stream import BLOCK_BYTES, spans

Tile = tuple[slice, ...]

_PIECE_BYTES = 1 << 23  # made at a time


class Work(NamedTuple):
    """Some rows, and the parts of them that are made in one go."""

    rows: range
    tiles: Sequence[Tile]


class Piece(NamedTuple):
    """What lies in one place of the dataset; where it is compressed, the place is one chunk."""

    place: Tile
    data: Rows
    compressed: bytes | None = None


def works(recipe: Recipe, layout: Layout) -> Iterator[Work]:
    """Yield all of the data, band of rows by band of rows, so that each chunk is met once."""
    chunk_rows, *chunk = layout.chunks or (1, *recipe.row_shape)
    axes = (spans(size, 1, step) for size, step in zip(recipe.row_shape, chunk, strict=True))
    sides = ([slice(part.start, part.stop) for part in parts] for parts in axes)
    every = list(itertools.product(*sides))  # the parts of a row that lie in different chunks
    for band in spans(math.ceil(recipe.count / chunk_rows), chunk_rows * recipe.row_bytes):
        rows = range(band.start * chunk_rows, min(band.stop * chunk_rows, recipe.count))
        tile_bytes = len(band) * chunk_rows * recipe.row_bytes // len(every)
        for several in spans(len(every), tile_bytes, _PIECE_BYTES):
            yield Work(rows, every[several.start : several.stop])


def cut(recipe: Recipe, work: Work) -> list[Piece]:
    """Return the pieces of some work: made a block of rows at a time, as few rows may be many."""
    parts = [
        np.empty((len(work.rows), *(part.stop - part.start for part in tile)), np.float32)
        for tile in work.tiles
    ]
    for span in spans(len(work.rows), recipe.row_bytes, BLOCK_BYTES):
        block = recipe.rows(work.rows[span.start : span.stop])
        for values, tile in zip(parts, work.tiles, strict=True):
            values[span.start : span.stop] = block[(slice(None), *tile)]
    places = [(slice(work.rows.start, work.rows.stop), *tile) for tile in work.tiles]
    return [Piece(*piece) for piece in zip(places, parts, strict=True)]
