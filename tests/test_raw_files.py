import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.page_cache import evict, resident_bytes
from helpers.reading import raw_files
from helpers.reading.files import identify
from helpers.reading.raw_files import Bytes, can_read_past_cache, make_rooms, open_file

VALUES = np.random.default_rng(0).integers(0, 256, 1_000_003, np.uint8)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("raw") / "x.bin"
    VALUES.tofile(path)
    return path


def read(path: Path, offset: int, size: int, room: Bytes | None) -> Bytes:
    found = np.zeros(size, np.uint8)
    with open_file(path, identify(path), room) as read_at:
        read_at(offset, found)
    return found


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(VALUES) - 1), st.integers(1, 600_000), st.sampled_from([1, 8, 64]))
def test_any_bytes_are_right_through_the_page_cache_and_past_it(
    path: Path, offset: int, size: int, threads: int
) -> None:
    size = min(size, len(VALUES) - offset)
    wanted = VALUES[offset : offset + size]
    np.testing.assert_array_equal(read(path, offset, size, None), wanted)
    if can_read_past_cache(path):
        np.testing.assert_array_equal(read(path, offset, size, make_rooms(threads)[-1]), wanted)


@pytest.mark.parametrize("past_cache", [False, True])
def test_the_end_of_the_file_is_an_error(past_cache: bool, path: Path) -> None:
    if past_cache and not can_read_past_cache(path):
        pytest.skip("this file system reads through the page cache only")
    room = make_rooms(1)[0] if past_cache else None
    with pytest.raises(OSError, match="the file ended 11 bytes too early"):
        read(path, len(VALUES) - 89, 100, room)


def test_only_what_is_read_through_the_page_cache_stays_in_it(path: Path) -> None:
    if evict(path).resident_after != 0 or not can_read_past_cache(path):
        pytest.skip("this system cannot drop a file from its page cache, or not read past it")
    read(path, 0, len(VALUES), make_rooms(1)[0])
    assert resident_bytes(path) == 0
    read(path, 0, len(VALUES), None)
    assert resident_bytes(path) not in (None, 0)


def test_a_file_system_that_cannot_read_past_its_cache_is_noticed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(22, "Invalid argument")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert not can_read_past_cache(path)
    with monkeypatch.context() as patch:
        patch.setattr(raw_files, "_read_pages", refuse)  # some open it, and fail to read
        assert not can_read_past_cache(path)
    with monkeypatch.context() as patch:
        patch.delattr(os, "O_DIRECT", raising=False)
        assert not can_read_past_cache(path)
        assert [len(room) for room in make_rooms(3)] == [0, 0, 0]


def test_rooms_lie_apart_in_one_huge_page() -> None:
    rooms = make_rooms(raw_files.MOST_ROOMS)
    starts = [room.ctypes.data for room in rooms]
    assert {len(room) for room in rooms} == {32768}
    assert starts == [starts[0] + 32768 * number for number in range(64)]
    assert starts[0] % (1 << 21) == 0
    assert all(room.flags.writeable for room in rooms)


def test_another_file_in_its_place_is_not_opened(path: Path, tmp_path: Path) -> None:
    VALUES[:10].tofile(tmp_path / "y.bin")
    with pytest.raises(RuntimeError), open_file(path, identify(tmp_path / "y.bin"), None):
        pass
