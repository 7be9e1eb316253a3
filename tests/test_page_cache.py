import ctypes
import errno
import mmap
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from ballast import MIB, Child, need_a_disk

from helpers import page_cache
from helpers.disk import sequential_read
from helpers.page_cache import Eviction, evict, resident_bytes
from helpers.system import page_cache_calls

SIZE = 8 * MIB + 123  # the last page is not full


@pytest.fixture
def file(tmp_path: Path) -> Path:
    need_a_disk(tmp_path)
    path = tmp_path / "features.npy"
    path.write_bytes(os.urandom(SIZE))
    return path


def fails_with(number: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


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
    monkeypatch.setattr(page_cache_calls, "_WINDOW", MIB)
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

    def drop_the_third_time(path: Path) -> bool:
        drops.append(path)
        return len(drops) < 3 or really_drop(path)

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
    monkeypatch.setattr(page_cache_calls, "_function", lambda _: None)
    assert resident_bytes(file) is None
    eviction = evict(file)
    assert (eviction.resident_before, eviction.resident_after) == (None, None)
    assert repr(eviction) == ("features.npy: dropped; the system does not tell how much was cached")


def test_the_kernel_is_not_believed_about_a_file_that_is_not_ours(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK)
    monkeypatch.setattr(page_cache, "resident_by_cachestat", lambda *_: None)
    assert resident_bytes(file) == SIZE  # ours, though read-only
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    assert resident_bytes(file) is None


@pytest.mark.skipif(
    [int(part) for part in re.findall(r"\d+", platform.release())[:2]] < [6, 5],
    reason="this kernel has no cachestat",
)
def test_where_mincore_cannot_be_asked_cachestat_gives_the_same_answers(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evict(file)
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        os.pread(opened.fileno(), MIB, 0)
    told = [resident_bytes(file, at_most_bytes=size) for size in (None, MIB, 1)]
    monkeypatch.setattr(mmap, "mmap", fails_with(errno.ENODEV))
    assert [resident_bytes(file, at_most_bytes=size) for size in (None, MIB, 1)] == told


@pytest.mark.parametrize("status", [0, -1])
def test_on_macos_a_map_of_the_file_is_invalidated_and_what_stayed_is_told(
    file: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    calls = []

    def msync(_: int, size: int, flags: int) -> int:
        calls.append((size, flags))
        return status

    monkeypatch.delattr(os, "posix_fadvise")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    real = page_cache_calls._function
    monkeypatch.setattr(
        page_cache_calls, "_function", lambda name: msync if name == "msync" else real(name)
    )
    assert evict(file) == Eviction(file, SIZE, SIZE, SIZE, possible=status == 0)
    assert set(calls) == {(SIZE, 2)}


@pytest.mark.parametrize("handle", [7, ctypes.c_void_p(-1).value])
def test_on_windows_the_file_is_opened_without_buffers_once(
    file: Path, monkeypatch: pytest.MonkeyPatch, handle: int
) -> None:
    kernel32 = MagicMock()
    kernel32.CreateFileW.return_value = handle
    monkeypatch.delattr(os, "posix_fadvise")
    monkeypatch.setattr(ctypes, "WinDLL", lambda _: kernel32, raising=False)
    monkeypatch.setattr(page_cache, "resident_bytes", lambda _: None)
    assert evict(file) == Eviction(file, SIZE, None, None, possible=handle == 7)
    assert kernel32.CreateFileW.call_args.args[0] == str(file)
    assert kernel32.CreateFileW.call_args.args[5] == 0x20000000
    assert [call.args for call in kernel32.CloseHandle.call_args_list] == [(7,)] * (handle == 7)


def made(path: Path, kind: str) -> Path:
    """Return the path of something that is no readable file."""
    places: dict[str, Callable[[], None]] = {
        "missing": lambda: None,
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "loop": lambda: path.symlink_to(path),
        "link": lambda: path.symlink_to("nothing"),
    }
    places[kind]()
    return path


@pytest.mark.parametrize("ask", [evict, resident_bytes, sequential_read])
@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("missing", FileNotFoundError, "rows.npy does not exist: make the data first"),
        ("folder", IsADirectoryError, "rows.npy is a folder: name a file in it"),
        ("pipe", OSError, "rows.npy is not a regular file .*: name a file"),
        ("loop", OSError, r"rows.npy cannot be read \(Too many levels .*\): remove the link"),
        ("link", FileNotFoundError, "rows.npy is a link to nothing, which .*: remove the link"),
    ],
)
def test_what_is_no_file_is_told_without_waiting_for_it(
    tmp_path: Path, ask: Callable[[Path], object], kind: str, error: type[OSError], message: str
) -> None:
    path = made(tmp_path / "rows.npy", kind)
    with pytest.raises(error, match=message):
        ask(path)


def test_an_unreadable_file_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=r"features\.npy cannot be read: change its perm"):
        evict(file)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EROFS])
def test_a_file_on_a_read_only_image_is_dropped_though_it_cannot_be_synchronised(
    file: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    os.sync()
    monkeypatch.setattr(os, "fsync", fails_with(number))
    assert evict(file) == Eviction(file, SIZE, SIZE, 0)


@pytest.mark.parametrize(
    ("target", "action"),
    [
        ("os.fsync", "dropped from the page cache"),
        ("os.posix_fadvise", "dropped from the page cache"),
        ("mmap.mmap", "looked at in the page cache"),
    ],
)
def test_no_call_of_the_system_fails_without_naming_the_file_the_cause_and_the_next_step(
    file: Path, monkeypatch: pytest.MonkeyPatch, target: str, action: str
) -> None:
    monkeypatch.setattr(target, fails_with(errno.EIO))
    cause = rf"features\.npy cannot be {action} \(Input/output error\): copy it to another disk"
    with pytest.raises(OSError, match=cause):
        evict(file)


def test_a_file_on_a_squashfs_image_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "at").mkdir()
    (tmp_path / "in/rows.npy").write_bytes(os.urandom(MIB))
    image, at = str(tmp_path / "image"), str(tmp_path / "at")
    try:
        make = ["mksquashfs", str(tmp_path / "in"), image, "-quiet", "-no-progress"]
        subprocess.run(make, check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop,ro", image, at], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no image can be mounted here")
    try:
        path = tmp_path / "at/rows.npy"
        path.read_bytes()
        assert evict(path).resident_after == 0
    finally:
        subprocess.run(["umount", at], check=True)
