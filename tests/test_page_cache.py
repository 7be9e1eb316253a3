import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from ballast import MIB, Child, need_a_disk

from helpers import page_cache
from helpers.page_cache import Eviction, evict, resident_bytes

SIZE = 8 * MIB + 123  # the last page is not full


@pytest.fixture
def file(tmp_path: Path) -> Path:
    need_a_disk(tmp_path)
    path = tmp_path / "features.npy"
    path.write_bytes(os.urandom(SIZE))
    return path


@pytest.fixture
def child() -> Iterator[Child]:
    with Child() as child:
        yield child


def test_a_file_just_written_is_cached_whole_and_dropped_whole(file: Path) -> None:
    assert resident_bytes(file) == SIZE
    eviction = evict(file)
    assert eviction == Eviction(file, SIZE, SIZE, 0)
    assert repr(eviction) == "features.npy: 8 MiB cached, 0 B stayed"
    assert resident_bytes(file) == 0
    assert evict(str(file)).resident_before == 0


def test_asking_does_not_fetch_a_page(file: Path) -> None:
    evict(file)
    assert [resident_bytes(file) for _ in range(3)] == [0, 0, 0]


def test_only_the_pages_that_were_read_are_resident(file: Path) -> None:
    evict(file)
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        os.pread(opened.fileno(), 1, 0)
        os.pread(opened.fileno(), 1, SIZE - 1)
    found = resident_bytes(file)
    assert found is not None
    assert 0 < found < SIZE // 2
    assert resident_bytes(file, at_most_bytes=os.sysconf("SC_PAGESIZE")) == os.sysconf(
        "SC_PAGESIZE"
    )


def test_a_file_of_several_windows_is_looked_at_whole(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_cache, "_WINDOW", MIB)
    assert resident_bytes(file) == SIZE
    assert resident_bytes(file, at_most_bytes=2 * MIB + 1) == 2 * MIB + 1
    assert evict(file).resident_after == 0
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        os.pread(opened.fileno(), 1, SIZE - 1)
    assert resident_bytes(file)  # in the last window only


def test_an_empty_file_has_nothing_to_drop(tmp_path: Path) -> None:
    empty = tmp_path / "empty.npy"
    empty.touch()
    assert evict(empty) == Eviction(empty, 0, 0, 0)


def test_pages_that_a_process_maps_stay_and_the_record_says_why(file: Path, child: Child) -> None:
    child.do(f"import mmap; file = open({str(file)!r}, 'rb')")
    child.do("held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ); sum(held[::4096])")
    eviction = evict(file)
    assert eviction.resident_after is not None
    assert eviction.resident_after > SIZE // 2
    assert "stayed: a process still maps it" in repr(eviction)
    child.do("held.close()")
    assert evict(file).resident_after == 0


def test_a_page_that_stays_at_first_is_dropped_in_the_end(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_drop = page_cache._drop
    drops: list[Path] = []

    def drop_the_third_time(path: Path) -> None:
        drops.append(path)
        if len(drops) == 3:
            really_drop(path)

    monkeypatch.setattr(page_cache, "_drop", drop_the_third_time)
    assert evict(file).resident_after == 0
    assert len(drops) == 3


def test_where_nothing_can_be_dropped_the_record_says_so(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fadvise")
    eviction = evict(file)
    assert not eviction.possible
    assert eviction.resident_after == SIZE
    assert repr(eviction) == (
        "features.npy: this system cannot drop a file from its page cache, "
        "so what follows may be warm"
    )


def test_where_nobody_tells_what_is_cached_the_record_says_so(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_cache, "_mincore", lambda: None)
    assert resident_bytes(file) is None
    eviction = evict(file)
    assert (eviction.resident_before, eviction.resident_after) == (None, None)
    assert repr(eviction) == ("features.npy: dropped; the system does not tell how much was cached")


def test_the_kernel_is_not_believed_about_a_file_that_is_not_ours(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK)
    assert resident_bytes(file) == SIZE  # ours, though read-only
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    assert resident_bytes(file) is None


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for ask in (evict, resident_bytes):
        with pytest.raises(FileNotFoundError, match=r"missing\.npy does not exist: make the data"):
            ask(tmp_path / "missing.npy")


def test_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=f"{tmp_path} is a folder: name a file in it"):
        evict(tmp_path)


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe is not a regular file"):
        evict(tmp_path / "pipe")


def test_an_unreadable_file_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=r"features\.npy cannot be read: change its perm"):
        evict(file)
