"""Reading: any run of a column's rows, by any thread, into an array of the caller's.

Where rows lie in the file as they do in memory (.npy, HDF5 without filters) they are read straight
into the array, past every library. Chunks compressed with gzip are read raw and decompressed here,
because zlib lets other threads run meanwhile. Whatever else HDF5 can read goes through h5py, which
serves one thread at a time.
"""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helpers.looking.ram import machine_ram_bytes
from helpers.reading.columns import Column
from helpers.reading.files import check_unchanged
from helpers.reading.raw_files import Bytes, ReadAt, can_read_past_cache, open_file

Rows = NDArray[Any]
Read = Callable[[int, Rows], None]  # fills an array with the rows from a first one on

_DEFLATE, _SHUFFLE = 1, 2  # HDF5's numbers for its filters
_READABLE_FILTERS = {(), (_DEFLATE,), (_SHUFFLE, _DEFLATE)}


@dataclass(frozen=True, slots=True)
class Chunks:
    """Where the rows lie in the file: in chunks of whole rows, of which a .npy file is one."""

    rows: int  # in each
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]  # in the file
    filters: tuple[int, ...]
    past_cache: bool


def find_chunks(column: Column, past_cache: bool | None = None) -> Chunks | None:
    """Return where the rows lie now, or None where only HDF5 itself can find or decode them.

    They are to be read past the page cache if RAM cannot hold the file, or as `past_cache` says.
    """
    check_unchanged(column.path, column.header.identity)
    if past_cache is None:
        past_cache = column.header.identity.size > machine_ram_bytes()
    past_cache = past_cache and can_read_past_cache(column.path)
    if column.header.offset is None:
        return _find_hdf5_chunks(column, past_cache)
    offset, size = np.array([[column.header.offset], [column.header.nbytes]])
    return Chunks(column.rows, offset, size, (), past_cache)


@contextmanager
def open_rows(column: Column, chunks: Chunks | None, room: Bytes) -> Iterator[Read]:
    """Open a column for one thread, which has `room` to read past the page cache into.

    Raises RuntimeError where the file is not the one that was noted.
    """
    noted = column.header.identity
    if chunks is None:
        import h5py  # slow to import, and .npy files do without it

        check_unchanged(column.path, noted)
        # Blocks are read whole and once: a cache of chunks would only take memory.
        with h5py.File(column.path, "r", rdcc_nbytes=0) as file:
            yield partial(_read_through_library, file[column.name])
    else:
        with open_file(column.path, noted, room if chunks.past_cache else None) as read_at:
            yield partial(_read_chunks, read_at, column, chunks)


def _read_through_library(dataset: Any, first: int, out: Rows) -> None:
    dataset.read_direct(out, np.s_[first : first + len(out)])


def _read_chunks(read_at: ReadAt, column: Column, chunks: Chunks, first: int, out: Rows) -> None:
    done = 0
    while done < len(out):
        number, skipped = divmod(first + done, chunks.rows)
        part = out[done : done + chunks.rows - skipped]
        into = part.reshape(-1).view(np.uint8)
        offset, skipped_bytes = int(chunks.offsets[number]), skipped * column.row_bytes
        if chunks.filters:
            packed = np.empty(chunks.sizes[number], np.uint8)
            read_at(offset, packed)
            items = _unpack(packed, chunks, column.row_bytes, out.itemsize)
            wanted = items[skipped_bytes // out.itemsize :]
            into.reshape(-1, out.itemsize)[:] = wanted[: part.size]
        else:
            read_at(offset + skipped_bytes, into)
        done += len(part)


def _unpack(packed: Bytes, chunks: Chunks, row_bytes: int, item_bytes: int) -> Bytes:
    """Return the items of a chunk, each as its bytes."""
    size = chunks.rows * row_bytes
    whole = np.frombuffer(zlib.decompress(packed.data, bufsize=size), np.uint8)
    if len(whole) != size:
        raise OSError(f"a chunk of {size:,} bytes has {len(whole):,}")
    if _SHUFFLE in chunks.filters:  # the first bytes of all items, then their second ones, ...
        return whole.reshape(item_bytes, -1).T
    return whole.reshape(-1, item_bytes)


def _find_hdf5_chunks(column: Column, past_cache: bool) -> Chunks | None:
    import h5py

    with h5py.File(column.path, "r") as file:
        dataset = file[column.name]
        plist = dataset.id.get_create_plist()
        filters = tuple(plist.get_filter(place)[0] for place in range(plist.get_nfilters()))
        whole_rows = dataset.chunks is not None and dataset.chunks[1:] == dataset.shape[1:]
        if not whole_rows or filters not in _READABLE_FILTERS:
            return None
        offsets, sizes, masks = np.zeros((3, -(-column.rows // column.chunk_rows)), np.int64)

        def note(chunk: Any) -> None:
            number = chunk.chunk_offset[0] // column.chunk_rows
            offsets[number], sizes[number] = chunk.byte_offset, chunk.size
            masks[number] = chunk.filter_mask

        dataset.id.chunk_iter(note)
    if not sizes.all() or masks.any():  # chunks never written, or stored past their filters
        return None
    return Chunks(column.chunk_rows, offsets, sizes, filters, past_cache)
