"""The HDF5 writer: `rows` and `labels` in one file, chunk by chunk, in constant memory.

Whatever the chunks, each is written once and whole, so HDF5 never reads one back to change it.
gzip is done here, by the threads that make the rows, because HDF5 would do it on one core.
"""

import itertools
import math
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from data_gen.layouts import Layout, tiles
from data_gen.recipe import Recipe, Rows
from data_gen.stream import BLOCK_BYTES, ahead, spans
from data_gen.writers import Tick

_PIECE_BYTES = 1 << 24  # made at a time

Tile = tuple[slice, ...]


class _Work(NamedTuple):
    """Some rows, and the parts of them that are made in one go."""

    rows: range
    tiles: Sequence[Tile]


class _Piece(NamedTuple):
    """What lies in one place of the dataset; where it is compressed, the place is one chunk."""

    place: Tile
    data: Rows
    compressed: bytes | None = None


def write_hdf5(path: Path, recipe: Recipe, layout: Layout, *, jobs: int, tick: Tick) -> None:
    """Write the rows and labels of a recipe, and see them on the disk.

    In a process that can be lost: see `hdf5_process`.
    """
    file = h5py.File(path, "w")  # not `with`: after an error, to close it may crash
    rows = file.create_dataset(
        "rows",
        (recipe.count, *recipe.row_shape),
        "float32",
        chunks=layout.chunks,
        compression=layout.compression,
        compression_opts=layout.level,
    )
    cut = partial(_cut, recipe, layout)
    with closing(ahead(cut, _works(recipe, layout), jobs=jobs)) as works:  # ends its threads
        for piece in itertools.chain.from_iterable(works):
            _put(rows, piece)
            tick(piece.data.nbytes)
    labels = file.create_dataset("labels", (recipe.count,), "int64")
    for span in spans(recipe.count, labels.dtype.itemsize):
        labels[span.start : span.stop] = recipe.labels(span)
    file.close()
    with path.open("rb+") as written:
        os.fsync(written.fileno())


def _works(recipe: Recipe, layout: Layout) -> Iterator[_Work]:
    chunk_rows = layout.chunks[0] if layout.chunks else 1
    every = list(tiles(layout, recipe.row_shape))
    for band in spans(math.ceil(recipe.count / chunk_rows), chunk_rows * recipe.row_bytes):
        rows = range(band.start * chunk_rows, min(band.stop * chunk_rows, recipe.count))
        tile_bytes = len(band) * chunk_rows * recipe.row_bytes // len(every)
        for several in spans(len(every), tile_bytes, _PIECE_BYTES):
            yield _Work(rows, every[several.start : several.stop])


def _cut(recipe: Recipe, layout: Layout, work: _Work) -> list[_Piece]:
    """Return the pieces of some work: made a block of rows at a time, as few rows may be many."""
    cut = [
        np.empty((len(work.rows), *(part.stop - part.start for part in tile)), np.float32)
        for tile in work.tiles
    ]
    for span in spans(len(work.rows), recipe.row_bytes, BLOCK_BYTES):
        made = recipe.rows(work.rows[span.start : span.stop])
        for values, tile in zip(cut, work.tiles, strict=True):
            values[span.start : span.stop] = made[(slice(None), *tile)]
    places = [(slice(work.rows.start, work.rows.stop), *tile) for tile in work.tiles]
    pieces = [_Piece(*piece) for piece in zip(places, cut, strict=True)]
    if layout.compression != "gzip":
        return pieces
    return [chunk for piece in pieces for chunk in _compress(piece, layout)]


def _compress(piece: _Piece, layout: Layout) -> Iterator[_Piece]:
    """Yield a piece chunk by chunk, each compressed as HDF5 would do it itself."""
    chunks, level = layout.chunks or piece.data.shape, -1 if layout.level is None else layout.level
    rows, *tile = piece.place
    for start in range(0, len(piece.data), chunks[0]):
        values = piece.data[start : start + chunks[0]]
        whole = values
        if values.shape != chunks:  # at an edge: HDF5 keeps whole chunks, filled up with zeros
            whole = np.zeros(chunks, np.float32)
            whole[tuple(slice(size) for size in values.shape)] = values
        first = rows.start + start
        place = (slice(first, first + len(values)), *tile)
        yield _Piece(place, values, zlib.compress(np.ascontiguousarray(whole).data, level))


def _put(rows: h5py.Dataset, piece: _Piece) -> None:
    if piece.compressed is None:
        rows[piece.place] = piece.data
    else:
        rows.id.write_direct_chunk(tuple(part.start for part in piece.place), piece.compressed)
