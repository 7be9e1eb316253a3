import errno
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refusal

from helpers.loaders import raw_files, sources
from helpers.loaders.columns import Column, Rows, open_hdf5, open_npy
from helpers.loaders.datasets import Hdf5Dataset, NpyDataset
from helpers.loaders.raw_files import make_bounce_buffers
from helpers.loaders.sources import Read, announce, find_source, open_source
from helpers.page_cache import evict, resident_bytes

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
READ_BY_THE_LIBRARY = {"lzf", "gzip and checksum", "rows cut across"}

MIB = 1 << 20
BYTES = np.random.default_rng(0).integers(0, 256, 3 * MIB + 1003, np.uint8)  # ends within a page


def write_hdf5(path: Path, values: NDArray[Any], **layout: Any) -> Path:
    with h5py.File(path, "w", userblock_size=1024) as file:
        file.create_dataset("rows", data=values, **layout)
    return path


def open_column(path: Path) -> Column:
    return open_npy(path) if path.suffix == ".npy" else open_hdf5(path, "rows")


def read(path: Path, start: int, stop: int) -> Rows:
    column = open_column(path)
    out = np.full((stop - start, *column.shape[1:]), 7, column.dtype)
    with open_source(find_source(column, stop - start), make_bounce_buffers(1)[0]) as into:
        into(start, out)
    return out


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Column:
    """Make a file with rows of one byte, several times as large as a bounce buffer."""
    path = tmp_path_factory.mktemp("ranges") / "x.npy"
    np.save(path, BYTES)
    return open_npy(path)


def can_bypass(path: Path) -> bool:
    """Return whether the file system can. Not asked of our own code: a defect would skip tests."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except (AttributeError, OSError):
        return False
    try:
        return os.preadv(file, [mmap.mmap(-1, 4096)], 0) > 0
    except OSError:
        return False
    finally:
        os.close(file)


@contextmanager
def opened(column: Column, *, past_cache: bool) -> Iterator[Read]:
    if past_cache and not can_bypass(column.path):
        pytest.skip("this file system reads through the page cache only")
    source = find_source(column, len(BYTES), past_cache)
    assert source.past_cache == past_cache
    with open_source(source, make_bounce_buffers(2)[1]) as into:
        yield into


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("past_cache", [False, True])
def test_any_range_of_rows_is_right_in_every_layout(
    past_cache: bool, layout: str, tmp_path: Path
) -> None:
    path = write_hdf5(tmp_path / "x.h5", VALUES, **LAYOUTS[layout])
    source = find_source(open_column(path), ROWS, past_cache)
    assert (source.offsets is None) == (layout in READ_BY_THE_LIBRARY)
    direct = past_cache and layout not in READ_BY_THE_LIBRARY and can_bypass(path)
    assert source.past_cache == direct
    with open_source(source, make_bounce_buffers(1)[0]) as into:

        @settings(max_examples=60, deadline=None)
        @given(st.integers(0, ROWS - 1), st.integers(1, ROWS))
        def check(start: int, count: int) -> None:
            out = np.empty_like(VALUES[start : start + count])
            into(start, out)
            np.testing.assert_array_equal(out, VALUES[start : start + count])

        check()


@pytest.mark.parametrize("dtype", ["u2", "?", "i8", "f2", "f8", "c8"])
@pytest.mark.parametrize("shape", [(100,), (100, 3), (100, 2, 3, 2)])
def test_every_type_and_shape_is_read_from_both_formats(
    dtype: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    values = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    np.save(npy := tmp_path / "x.npy", values)
    zipped = {"chunks": (7, *shape[1:]), "compression": "gzip", "shuffle": True}
    hdf5 = write_hdf5(tmp_path / "x.h5", values, **zipped)
    for path, dataset in ((npy, NpyDataset(npy)), (hdf5, Hdf5Dataset(hdf5, "rows"))):
        np.testing.assert_array_equal(read(path, 5, 93), values[5:93], strict=True)
        found = dataset[[9, 0, 5]]
        assert found.dtype == dataset.dtype
        np.testing.assert_array_equal(found.numpy(), values[[9, 0, 5]], strict=True)


def test_chunks_never_written_and_such_stored_past_their_filter_are_left_to_hdf5(
    tmp_path: Path,
) -> None:
    twos = np.full((10, 3), 2, np.float32).tobytes()
    for masks in ([], [1], [0]):
        with h5py.File(tmp_path / "x.h5", "w") as file:
            rows = file.create_dataset("rows", (30, 3), "f4", chunks=(10, 3), compression="gzip")
            rows[:20] = 1
            # A writer may skip the filter for the whole dataset: then no mask says so.
            for mask in masks:
                rows.id.write_direct_chunk((20, 0), twos, mask)
        assert find_source(open_column(tmp_path / "x.h5"), 10).offsets is None
        if masks != [0]:
            assert read(tmp_path / "x.h5", 0, 30).sum() == 60 + 60 * len(masks)


@pytest.mark.parametrize("layout", ["contiguous", "gzip", "lzf"])
def test_a_file_that_is_not_the_one_noted_is_not_read(layout: str, tmp_path: Path) -> None:
    path = write_hdf5(tmp_path / "x.h5", VALUES, **LAYOUTS[layout])
    column = open_column(path)
    source = find_source(column, ROWS)
    (tmp_path / "other").write_bytes(path.read_bytes())
    (tmp_path / "other").replace(path)
    with pytest.raises(RuntimeError, match="was replaced"):
        find_source(column, ROWS)
    with pytest.raises(RuntimeError, match="was replaced"), open_source(source):
        pass


@pytest.mark.parametrize("past_cache", [False, True])
def test_any_bytes_are_right_through_the_page_cache_and_past_it_and_nothing_around_them(
    past_cache: bool, many: Column
) -> None:
    with opened(many, past_cache=past_cache) as into:

        @settings(max_examples=150, deadline=None)
        @given(st.integers(0, len(BYTES) - 1), st.integers(1, len(BYTES)))
        @example(0, len(BYTES))
        @example(4096 - 128, 4096)  # a page of the file: the header takes 128 bytes
        @example(4095, 2)
        @example(1, 2 * MIB)
        @example(len(BYTES) - 1, 1)
        @example(len(BYTES) - MIB - 1, MIB + 1)
        def check(start: int, count: int) -> None:
            wanted = np.pad(BYTES[start : start + count], 4096)
            room = np.pad(~wanted[4096:-4096], 4096)
            into(start, room[4096:-4096])
            np.testing.assert_array_equal(room, wanted)

        check()


class Hesitant(FileIO):
    """Reads less than it was asked for, as the system may."""

    def readinto(self, buffer: Any) -> int:
        return super().readinto(memoryview(buffer)[:5000])


@pytest.mark.parametrize("past_cache", [False, True])
def test_a_reading_goes_on_where_the_system_has_stopped(
    past_cache: bool, many: Column, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_files, "open_raw", lambda column, past_cache: Hesitant(column.path))
    found = np.zeros(20_000, np.uint8)
    with opened(many, past_cache=past_cache) as into:
        into(333, found)
    np.testing.assert_array_equal(found, BYTES[333:20_333])


@pytest.mark.parametrize("past_cache", [False, True])
def test_a_file_that_ends_under_the_reading_is_an_error(past_cache: bool, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", BYTES)
    with opened(open_npy(tmp_path / "x.npy"), past_cache=past_cache) as into:
        os.truncate(tmp_path / "x.npy", 128 + len(BYTES) - 11)
        with pytest.raises(OSError, match="the file ended 11 bytes too early"):
            into(0, np.empty_like(BYTES))


def test_only_what_is_read_through_the_page_cache_stays_in_it(many: Column) -> None:
    if evict(many.path).resident_after != 0:
        pytest.skip("this system cannot drop a file from its page cache")
    with opened(many, past_cache=True) as into:
        into(0, np.empty_like(BYTES))
    assert resident_bytes(many.path) == 0
    with opened(many, past_cache=False) as into:
        into(0, np.empty_like(BYTES))
    assert resident_bytes(many.path) not in (None, 0)


def test_a_file_larger_than_free_ram_is_read_past_the_page_cache(
    many: Column, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "can_bypass", lambda column: True)
    size = many.files[0].identity.size
    for ram, past_cache in ((size, False), (size - 1, True)):
        monkeypatch.setattr(sources, "available_ram_bytes", lambda ram=ram: ram)
        assert find_source(many, MIB).past_cache == past_cache
        assert find_source(many, MIB, past_cache=True).past_cache
        assert not find_source(many, MIB, past_cache=False).past_cache


def test_small_ranges_are_never_read_past_the_page_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.zeros((300, 256), np.float32)  # rows of 1 KiB
    chunked = {"chunks": (100, 256), "compression": "gzip"}
    column = open_column(write_hdf5(tmp_path / "x.h5", values, **chunked))
    monkeypatch.setattr(sources, "can_bypass", lambda column: True)
    monkeypatch.setattr(sources, "available_ram_bytes", lambda: 0)
    for past_cache in (None, True):
        assert not find_source(column, 64, past_cache).past_cache
        assert find_source(column, 65, past_cache).past_cache


@pytest.mark.parametrize("what", ["opening", "reading", "flag"])
def test_a_file_system_that_cannot_read_past_its_cache_is_noticed(
    what: str, many: Column, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "flag":
        monkeypatch.delattr(os, "O_DIRECT", raising=False)
    else:  # some open it, and fail to read
        where, name = (os, "open") if what == "opening" else (raw_files, "_read_pages")
        monkeypatch.setattr(where, name, refusal(errno.EINVAL))
    assert not find_source(many, MIB, past_cache=True).past_cache


class WithoutHugePages(mmap.mmap):
    madvise = refusal(errno.EINVAL)


def test_bounce_buffers_lie_apart_as_for_huge_pages_also_where_there_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(mmap, "mmap", WithoutHugePages)
        refused = make_bounce_buffers(2)
    first, second = (buffer.ctypes.data for buffer in refused)
    assert (first % (2 * MIB), second - first) == (0, MIB)
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    for buffer in refused + make_bounce_buffers(2):
        assert (len(buffer), buffer.ctypes.data % 4096, buffer.flags.writeable) == (MIB, 0, True)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Note what the system is asked for, instead of asking it."""
    found: list[tuple[int, ...]] = []
    monkeypatch.setattr(os, "POSIX_FADV_WILLNEED", 3, raising=False)
    advise = lambda file, *advice: found.append(advice)  # noqa: E731
    monkeypatch.setattr(os, "posix_fadvise", advise, raising=False)
    return found


@pytest.mark.parametrize("suffix", [".npy", ".h5"])
def test_small_ranges_of_rows_in_one_piece_are_announced_where_they_lie(
    suffix: str, tmp_path: Path, asked: list[tuple[int, ...]]
) -> None:
    values = np.arange(300 * 256, dtype=np.float32).reshape(300, 256)  # rows of 1 KiB
    np.save(tmp_path / "x.npy", values)
    write_hdf5(tmp_path / "x.h5", values)
    source = find_source(column := open_column(tmp_path / f"x{suffix}"), 64, past_cache=False)
    ranges = [(3, 4), (10, 74), (299, 300)]
    announce(source, [*ranges, (100, 165)])
    content = column.path.read_bytes()
    found = [(content[offset:][:size], advice) for offset, size, advice in asked]
    assert found == [(values[start:stop].tobytes(), 3) for start, stop in ranges]


@pytest.mark.parametrize("layout", ["contiguous", "chunked", "lzf"])
def test_chunks_and_what_is_read_past_the_page_cache_are_not_announced(
    layout: str, tmp_path: Path, asked: list[tuple[int, ...]]
) -> None:
    column = open_column(write_hdf5(tmp_path / "x.h5", VALUES, **LAYOUTS[layout]))
    source = find_source(column, 10)
    announce(replace(source, past_cache=layout == "contiguous"), [(0, 10)])
    assert not asked


def test_nothing_is_announced_where_the_system_takes_no_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    source = find_source(open_npy(tmp_path / "x.npy"), 10, past_cache=False)
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    source.column.path.unlink()  # so that nobody opens it for nothing
    announce(source, [(0, 10)])
