"""Ranges: any rows of a column that lie side by side, read by any thread into the caller's array.

Where rows lie in the file as they do in memory (.npy, HDF5 without filters) they are read straight
into the array, past every library. Chunks compressed with gzip are read raw and decompressed here,
because zlib lets other threads run meanwhile. Whatever else HDF5 can read goes through h5py, which
serves one thread at a time.
"""

import math
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helpers.loaders.columns import Column, Rows
from helpers.loaders.hdf5_files import get_dataset, open_hdf5_file, reading_advice
from helpers.loaders.order import RowRange
from helpers.loaders.raw_files import Bytes, ReadAt, can_bypass, open_at, open_raw
from helpers.system.ram import available_ram_bytes

Read = Callable[[int, Rows], None]  # fills an array with the rows from a first one on

_DEFLATE, _SHUFFLE = 1, 2  # HDF5's numbers for its filters
_READABLE_FILTERS = {(), (_DEFLATE,), (_SHUFFLE, _DEFLATE)}
_SMALL_BYTES = 1 << 16  # of a range: what it costs is to ask for it, not to read it


@dataclass(frozen=True, slots=True)
class Source:
    """A column whose place in the file is known now: chunks of whole rows, or one piece."""

    column: Column
    chunk_rows: int
    offsets: NDArray[np.int64] | None  # of the chunks; None where only HDF5 can find or decode them
    sizes: NDArray[np.int64]  # in the file
    past_cache: bool


def find_source(column: Column, range_rows: int, past_cache: bool | None = None) -> Source:
    """Find where a column lies that is to be read in ranges of about `range_rows`.

    It is read past the page cache as `past_cache` says, by default if free RAM cannot hold the
    file. But small ranges always go through it: for them the system has to look ahead.
    """
    column.check_unchanged()
    if past_cache is None:
        past_cache = column.files[0].identity.size > available_ram_bytes()
    past_cache = past_cache and range_rows * column.row_bytes > _SMALL_BYTES and can_bypass(column)
    if column.offset is None:
        return _find_chunks(column, past_cache)
    offset, size = np.array([[column.offset], [column.rows * column.row_bytes]])
    return Source(column, column.rows, offset, size, past_cache)


def announce(source: Source, ranges: list[RowRange]) -> None:
    """Tell the system which ranges are wanted soon, where it may not see it from the reading."""
    column = source.column
    if column.offset is None or source.past_cache or not hasattr(os, "posix_fadvise"):
        return
    with open_raw(column, past_cache=False) as file:
        for start, stop in ranges:
            size = (stop - start) * column.row_bytes
            if size <= _SMALL_BYTES:
                first = column.offset + start * column.row_bytes
                with suppress(OSError):  # it was but a hint
                    os.posix_fadvise(file.fileno(), first, size, os.POSIX_FADV_WILLNEED)


@contextmanager
def open_source(
    source: Source, bounce: Bytes | None = None, cache_bytes: int = 0
) -> Iterator[Read]:
    """Open a column for one thread, with a cache of unpacked chunks: of one, if it is too small.

    Raises RuntimeError where the file is not the one that was noted.
    """
    column = source.column
    chunk_bytes = math.prod(column.chunks or (0,)) * column.dtype.itemsize
    if source.offsets is None:
        column.check_unchanged()
        kept_bytes = max(cache_bytes, chunk_bytes)
        with open_hdf5_file(column.path, rdcc_nbytes=kept_bytes) as opened:
            yield partial(_read_through_library, get_dataset(opened, column.path, column.name))
    else:
        kept_chunks = cache_bytes // chunk_bytes if chunk_bytes else 0
        with open_at(column, bounce if source.past_cache else None) as read_at:
            yield partial(_read_range, read_at, source, {}, max(kept_chunks, 1))


@contextmanager
def named_rows(column: Column, first: int, last: int) -> Iterator[None]:
    """Let an error while rows are read name them, the cause and the next step."""
    try:
        yield
    except (OSError, zlib.error) as error:
        raise OSError(
            f"rows {first:,} to {last:,} of {column.path} cannot be read ({error}): "
            f"{reading_advice(error)}"
        ) from error


def _find_chunks(column: Column, past_cache: bool) -> Source:
    offsets, sizes, masks = np.zeros((3, -(-column.rows // column.chunk_rows)), np.int64)
    unknown = Source(column, column.chunk_rows, None, sizes, past_cache=False)
    whole_rows = column.chunks is not None and column.chunks[1:] == column.shape[1:]
    if not whole_rows or column.filters not in _READABLE_FILTERS:
        return unknown

    def note(chunk: Any) -> None:
        number = chunk.chunk_offset[0] // column.chunk_rows
        offsets[number], sizes[number] = chunk.byte_offset, chunk.size
        masks[number] = chunk.filter_mask

    with open_hdf5_file(column.path) as file:
        file[column.name].id.chunk_iter(note)
    unfiltered = column.filters and sizes[-1] == column.chunk_rows * column.row_bytes
    if not sizes.all() or masks.any() or unfiltered:
        return unknown  # chunks that were never written, or stored past their filters
    return Source(column, column.chunk_rows, offsets, sizes, past_cache)


def _read_through_library(dataset: Any, first: int, out: Rows) -> None:
    dataset.read_direct(out, np.s_[first : first + len(out)])


def _read_range(
    read_at: ReadAt, source: Source, kept: dict[int, Bytes], most: int, first: int, out: Rows
) -> None:
    """Fill `out` with rows. `kept` has the last chunks unpacked, `most` of them at the most."""
    assert source.offsets is not None
    done = 0
    while done < len(out):
        number, skipped = divmod(first + done, source.chunk_rows)
        part = out[done : done + source.chunk_rows - skipped]
        offset, skipped_bytes = int(source.offsets[number]), skipped * source.column.row_bytes
        if source.column.filters:
            if number not in kept:
                while len(kept) >= most:
                    del kept[next(iter(kept))]  # the one that was not asked for longest
                packed = np.empty(source.sizes[number], np.uint8)
                read_at(offset, packed)
                kept[number] = _unpack(packed, source)
            kept[number] = kept.pop(number)
            values = kept[number][skipped_bytes // out.itemsize :]
            part.reshape(-1).view(np.uint8).reshape(-1, out.itemsize)[:] = values[: part.size]
        else:
            read_at(offset + skipped_bytes, part.reshape(-1).view(np.uint8))
        done += len(part)


def _unpack(packed: Bytes, source: Source) -> Bytes:
    """Return the values of a chunk as their bytes: an array of `(values, itemsize)`."""
    size, item_bytes = source.chunk_rows * source.column.row_bytes, source.column.dtype.itemsize
    whole = np.frombuffer(zlib.decompress(packed.data, bufsize=size), np.uint8)
    if len(whole) != size:
        raise OSError(f"a chunk of {size:,} bytes has {len(whole):,}")
    if _SHUFFLE in source.column.filters:  # the first bytes of all items, then their second ones
        return whole.reshape(item_bytes, -1).T
    return whole.reshape(-1, item_bytes)
