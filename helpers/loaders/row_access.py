"""Rows at any indices of a file: out of a memory map where they lie in one piece, else by chunks.

Nothing here checks the file or the indices: that is done by the datasets that keep them.
"""

import mmap
from contextlib import ExitStack
from weakref import finalize

import numpy as np

from helpers.loaders.columns import Column, Rows
from helpers.loaders.order import Indices
from helpers.loaders.sources import find_source, named_rows, open_source
from helpers.system.files import errors_named, open_regular

_SLAB_BYTES = 1 << 23  # at most, of rows that HDF5 is asked for at once


class MappedRows:
    """Rows that lie in the file as they do in memory, copied out of a memory map.

    A disk is at its best with many reads in hand, so the rows of a batch are announced to the
    system before the first one is copied. Rows below a page are not: there the call costs more
    than the copy, and the system's own read-ahead does more for blocks in shuffled order.

    As with every map, what cannot be read (a bad disk, a file cut short under the copy) ends the
    process with SIGBUS.
    """

    def __init__(self, column: Column) -> None:
        assert column.offset is not None
        with open_regular(column.path) as file, errors_named(column.path):
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._offset, self._row_bytes = column.offset, column.row_bytes
        # As bytes: HDF5 may lay numbers where numpy would have to copy all of them, to align them.
        size = column.rows * column.row_bytes
        values = np.frombuffer(self._map, np.uint8, count=size, offset=column.offset)
        self._rows = values.reshape(-1, self._row_bytes)
        # Windows has no such advice.
        self._announces = self._row_bytes >= mmap.PAGESIZE and hasattr(mmap, "MADV_WILLNEED")
        if self._announces:
            self._map.madvise(mmap.MADV_RANDOM)  # read what is announced, and nothing around it

    def read(self, indices: Indices, out: Rows) -> None:
        """Fill `out` with the rows at `indices`."""
        if self._announces:
            starts = self._offset + np.sort(indices) * self._row_bytes
            within = starts % mmap.PAGESIZE
            for page, skipped in zip((starts - within).tolist(), within.tolist(), strict=True):
                self._map.madvise(mmap.MADV_WILLNEED, page, skipped + self._row_bytes)
        into = out.view(np.uint8).reshape(len(indices), self._row_bytes)
        np.take(self._rows, indices, axis=0, out=into, mode="clip")  # "clip" needs no buffer

    def close(self) -> None:
        """Let go of the file."""
        del self._rows  # it holds on to the map
        self._map.close()


class ChunkedRows:
    """Rows in chunks, or where only HDF5 finds them: in the file's order, a chunk's in one call."""

    def __init__(self, column: Column, cache_bytes: int) -> None:
        # Without filters the page cache will do, and HDF5's own would read whole chunks for a row.
        kept_bytes = min(cache_bytes, column.rows * column.row_bytes) if column.filters else 0
        source = find_source(column, 1, past_cache=False)
        self._column, opened = column, ExitStack()
        self._read = opened.enter_context(open_source(source, cache_bytes=kept_bytes))
        self._closing = finalize(self, opened.close)
        most = max(1, _SLAB_BYTES // column.row_bytes)
        self._slab_rows = min(column.chunk_rows, most) if column.chunks else most

    def read(self, indices: Indices, out: Rows) -> None:
        """Fill `out` with the rows at `indices`."""
        order = np.argsort(indices, kind="stable")
        slabs = indices[order] // self._slab_rows
        for places in np.split(order, np.flatnonzero(np.diff(slabs)) + 1):
            first, last = int(indices[places[0]]), int(indices[places[-1]])
            slab = np.empty((last + 1 - first, *out.shape[1:]), out.dtype)
            with named_rows(self._column, first, last):
                self._read(first, slab)
            out[places] = slab[indices[places] - first]

    def close(self) -> None:
        """Let go of the file: while it is open, HDF5 gives the same one to whoever opens it."""
        self._closing()
