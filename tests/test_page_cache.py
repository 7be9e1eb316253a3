import ctypes
import errno
import mmap
import os
import platform
import re
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from ballast import MIB, Child
from refusals import refusal

from helpers import page_cache
from helpers.page_cache import Eviction, evict, resident_bytes
from helpers.system import page_cache_calls

SIZE = 8 * MIB + 123  # the last page is not full
Patch = pytest.MonkeyPatch


def read_only(path: Path, size: int, offset: int) -> None:
    """Have nothing of a file in the page cache but what is read here."""
    evict(path)
    with path.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        os.pread(opened.fileno(), size, offset)


def test_a_file_just_written_is_cached_whole_and_dropped_whole(file: Path) -> None:
    assert resident_bytes(file) == SIZE
    eviction = evict(str(file))
    assert eviction == Eviction(file, SIZE, SIZE, 0)
    assert repr(eviction) == "rows.npy: 8 MiB cached, 0 B stayed"
    assert [resident_bytes(file) for _ in range(3)] == [0, 0, 0], "asking fetches no page"
    os.truncate(file, 0)
    assert evict(file) == Eviction(file, 0, 0, 0)


@pytest.mark.parametrize("window", [1 << 28, MIB])
def test_only_the_pages_that_were_read_are_resident(
    file: Path, monkeypatch: Patch, window: int
) -> None:
    monkeypatch.setattr(page_cache_calls, "_WINDOW", window)
    assert resident_bytes(file) == SIZE
    assert resident_bytes(file, at_most_bytes=2 * MIB + 1) == 2 * MIB + 1
    read_only(file, 1, SIZE - 1)
    assert 0 < (resident_bytes(file) or 0) < SIZE // 2
    assert resident_bytes(file, at_most_bytes=MIB) == 0


def test_pages_that_a_process_maps_stay_and_the_record_says_why(file: Path) -> None:
    with Child() as child:
        child.do(f"import mmap; file = open({str(file)!r}, 'rb')")
        child.do("held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ); sum(held[::4096])")
        eviction = evict(file)
    assert eviction.resident_after is not None
    assert eviction.resident_after > SIZE // 2
    assert "stayed: a process still maps it" in repr(eviction)
    assert "rows.npy stayed in the page cache" in eviction.why_not_cold
    assert evict(file).why_not_cold == ""


def test_a_page_that_stays_at_first_is_dropped_in_the_end(file: Path, monkeypatch: Patch) -> None:
    answers = [lambda _: True, lambda _: True, page_cache._drop]
    monkeypatch.setattr(page_cache, "_drop", lambda path: answers.pop(0)(path))
    assert evict(file).resident_after == 0
    assert not answers


def test_where_nobody_tells_what_is_cached_the_record_says_so(
    file: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(page_cache_calls, "_function", lambda _: None)
    assert resident_bytes(file) is None
    eviction = evict(file)
    assert eviction == Eviction(file, SIZE, None, None)
    assert repr(eviction) == "rows.npy: dropped; the system does not tell how much was cached"


def test_the_kernel_is_not_believed_about_a_file_that_is_not_ours(
    file: Path, monkeypatch: Patch
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
    file: Path, monkeypatch: Patch
) -> None:
    read_only(file, MIB, 0)
    told = [resident_bytes(file, at_most_bytes=size) for size in (None, MIB, 1)]
    monkeypatch.setattr(mmap, "mmap", refusal(errno.ENODEV))
    assert [resident_bytes(file, at_most_bytes=size) for size in (None, MIB, 1)] == told


@pytest.mark.parametrize("status", [0, -1])
def test_on_macos_a_map_of_the_file_is_invalidated_and_what_stayed_is_told(
    file: Path, monkeypatch: Patch, status: int
) -> None:
    msync, real = MagicMock(return_value=status), page_cache_calls._function
    monkeypatch.delattr(os, "posix_fadvise")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(
        page_cache_calls, "_function", lambda name: msync if name == "msync" else real(name)
    )
    eviction = evict(file)
    assert eviction == Eviction(file, SIZE, SIZE, SIZE, possible=status == 0)
    assert {call.args[1:] for call in msync.call_args_list} == {(SIZE, 2)}
    said = "this system cannot drop rows.npy from its page cache: what follows may be warm"
    assert (repr(eviction) == said) is bool(status)


@pytest.mark.parametrize("handle", [7, ctypes.c_void_p(-1).value])
def test_on_windows_the_file_is_opened_without_buffers_once(
    file: Path, monkeypatch: Patch, handle: int
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


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EROFS])
def test_a_file_on_a_read_only_image_is_dropped_though_it_cannot_be_synchronised(
    file: Path, monkeypatch: Patch, number: int
) -> None:
    os.sync()
    monkeypatch.setattr(os, "fsync", refusal(number))
    assert evict(file) == Eviction(file, SIZE, SIZE, 0)


@pytest.mark.parametrize("target", ["os.fsync", "os.posix_fadvise", "mmap.mmap"])
def test_no_call_of_the_system_fails_without_naming_the_file_the_cause_and_the_next_step(
    file: Path, monkeypatch: Patch, target: str
) -> None:
    monkeypatch.setattr(target, refusal(errno.EIO))
    action = "looked at in" if target == "mmap.mmap" else "dropped from"
    cause = rf"rows\.npy cannot be {action} the page cache \(Input.*\): copy it to another disk"
    with pytest.raises(OSError, match=cause):
        evict(file)
