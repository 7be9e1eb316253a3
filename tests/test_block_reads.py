import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from helpers.reading import block_reads
from helpers.reading.block_reads import find_chunks, open_rows
from helpers.reading.columns import open_column
from helpers.reading.raw_files import can_read_past_cache, make_rooms

ROWS = 1000
VALUES = np.random.default_rng(0).normal(size=(ROWS, 6, 4)).astype(np.float32)

LAYOUTS: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "chunked": {"chunks": (48, 6, 4)},
    "gzip": {"chunks": (48, 6, 4), "compression": "gzip"},
    "shuffle and gzip": {"chunks": (48, 6, 4), "compression": "gzip", "shuffle": True},
    "lzf": {"chunks": (48, 6, 4), "compression": "lzf"},
    "gzip and checksum": {"chunks": (48, 6, 4), "compression": "gzip", "fletcher32": True},
    "rows cut across": {"chunks": (48, 2, 4), "compression": "gzip"},
    "one chunk larger than the data": {"chunks": (1000, 6, 4), "maxshape": (None, 6, 4)},
}
NO_ROOM = np.empty(0, np.uint8)
READ_BY_THE_LIBRARY = {"lzf", "gzip and checksum", "rows cut across"}


def write_hdf5(path: Path, values: NDArray[Any], **layout: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("rows", data=values, **layout)
    return path


def read(path: Path, start: int, stop: int) -> NDArray[Any]:
    column = open_column(path, "rows")
    out = np.full((stop - start, *column.header.shape[1:]), 7, column.header.dtype)
    with open_rows(column, find_chunks(column), NO_ROOM) as into:
        into(start, out)
    return out


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("past_cache", [False, True])
def test_any_run_of_rows_is_right_in_every_layout(
    past_cache: bool, layout: str, tmp_path: Path
) -> None:
    path = write_hdf5(tmp_path / "x.h5", VALUES, **LAYOUTS[layout])
    column = open_column(path, "rows")
    chunks = find_chunks(column, past_cache)
    assert (chunks is None) == (layout in READ_BY_THE_LIBRARY)
    with ExitStack() as stack:
        into = stack.enter_context(open_rows(column, chunks, make_rooms(1)[0]))

        @settings(max_examples=60, deadline=None)
        @given(st.integers(0, ROWS - 1), st.integers(1, ROWS))
        def check(start: int, count: int) -> None:
            out = np.empty_like(VALUES[start : start + count])
            into(start, out)
            np.testing.assert_array_equal(out, VALUES[start : start + count])

        check()


@pytest.mark.parametrize("dtype", ["u1", "?", "i8", "f2", "f8", "c8"])
@pytest.mark.parametrize("shape", [(100,), (100, 3), (100, 2, 3, 2)])
def test_every_type_and_shape_is_read_from_both_formats(
    dtype: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    values = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    np.save(tmp_path / "x.npy", values)
    zipped = {"chunks": (7, *shape[1:]), "compression": "gzip", "shuffle": True}
    for path in (tmp_path / "x.npy", write_hdf5(tmp_path / "x.h5", values, **zipped)):
        found = read(path, 5, 93)
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, values[5:93])


def test_chunks_that_were_never_written_read_as_the_fill_value(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        rows = file.create_dataset("rows", (100, 3), "f4", chunks=(10, 3), compression="gzip")
        rows[20:30] = 1
    assert read(tmp_path / "x.h5", 0, 100).sum() == 30


def test_chunks_stored_past_their_filter_are_right(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        rows = file.create_dataset("rows", (20, 3), "f4", chunks=(10, 3), compression="gzip")
        rows[:] = 1
        rows.id.write_direct_chunk((10, 0), np.full((10, 3), 2, np.float32).tobytes(), 1)
    assert read(tmp_path / "x.h5", 0, 20).sum() == 30 + 60


@pytest.mark.parametrize("layout", ["contiguous", "gzip"])
def test_a_file_with_a_user_block_is_right(layout: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w", userblock_size=1024) as file:
        file.create_dataset("rows", data=VALUES, **LAYOUTS[layout])
    np.testing.assert_array_equal(read(tmp_path / "x.h5", 3, 700), VALUES[3:700])


def test_a_damaged_chunk_is_an_error(tmp_path: Path) -> None:
    path = write_hdf5(tmp_path / "x.h5", VALUES, **LAYOUTS["gzip"])
    with h5py.File(path, "r+") as file:
        file["rows"].id.write_direct_chunk((48, 0, 0), b"not zlib")
    with pytest.raises(zlib.error):
        read(path, 40, 60)
    with h5py.File(path, "r+") as file:
        file["rows"].id.write_direct_chunk((48, 0, 0), zlib.compress(b"too short"))
    with pytest.raises(OSError, match="has 9"):
        read(path, 40, 60)


def test_a_file_that_is_not_the_one_noted_is_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    column = open_column(tmp_path / "x.npy", "rows")
    chunks = find_chunks(column)
    np.save(tmp_path / "x.npy", VALUES[:10])
    with pytest.raises(RuntimeError, match="shrank"):
        find_chunks(column)
    with pytest.raises(RuntimeError, match="shrank"), open_rows(column, chunks, NO_ROOM):
        pass


def test_a_file_larger_than_ram_is_read_past_the_page_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    column = open_column(tmp_path / "x.npy", "")
    size = column.header.identity.size
    for ram, past_cache in ((size, False), (size - 1, can_read_past_cache(column.path))):
        monkeypatch.setattr(block_reads, "machine_ram_bytes", lambda ram=ram: ram)
        chunks = find_chunks(column)
        assert chunks is not None
        assert chunks.past_cache == past_cache
        chunks = find_chunks(column, past_cache=False)
        assert chunks is not None
        assert not chunks.past_cache
