"""The HDF5 writer: `rows` and `labels` in one file, chunk by chunk, in constant memory.

Whatever the chunks, each is written once and whole, so HDF5 never reads one back to change it.
gzip is done here, by the threads that make the rows, because HDF5 would do it on one core.
"""

import os
import zlib
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import h5py
import numpy as np

from data_gen.layouts import Layout
from data_gen.pieces import Piece, Work, cut, works
from data_gen.recipe import Recipe
from data_gen.stream import ahead, spans
from data_gen.writers import Tick


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
    make = partial(_pieces, recipe, layout)
    with closing(ahead(make, works(recipe, layout), jobs=jobs)) as made:  # ends its threads
        for pieces in made:
            for piece in pieces:
                _put(rows, piece)
            tick(sum(piece.data.nbytes for piece in pieces))
    labels = file.create_dataset("labels", (recipe.count,), "int64")
    for span in spans(recipe.count, labels.dtype.itemsize):
        labels[span.start : span.stop] = recipe.labels(span)
    file.close()
    with path.open("rb+") as written:
        os.fsync(written.fileno())


def _pieces(recipe: Recipe, layout: Layout, work: Work) -> list[Piece]:
    pieces = cut(recipe, work)
    if layout.compression != "gzip":
        return pieces
    return [chunk for piece in pieces for chunk in _compress(piece, layout)]


def _compress(piece: Piece, layout: Layout) -> Iterator[Piece]:
    """Yield a piece chunk by chunk, each compressed as HDF5 would do it itself."""
    chunks, level = layout.chunks or piece.data.shape, -1 if layout.level is None else layout.level
    rows, *tile = piece.place
    for start in range(0, len(piece.data), chunks[0]):
        values = piece.data[start : start + chunks[0]]
        padded = values
        if values.shape != chunks:  # at an edge: HDF5 keeps whole chunks, filled up with zeros
            padded = np.zeros(chunks, np.float32)
            padded[tuple(slice(size) for size in values.shape)] = values
        first = rows.start + start
        place = (slice(first, first + len(values)), *tile)
        yield Piece(place, values, zlib.compress(np.ascontiguousarray(padded).data, level))


def _put(rows: h5py.Dataset, piece: Piece) -> None:
    if piece.compressed is None:
        rows[piece.place] = piece.data
    else:
        rows.id.write_direct_chunk(tuple(part.start for part in piece.place), piece.compressed)
