import errno
import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ballast import MIB, need_a_disk

from helpers import disk
from helpers.disk import ReadSpeed, free_bytes, read_ahead_bytes, sequential_read
from helpers.page_cache import evict, resident_bytes

SIZE = 8 * MIB + 123


@pytest.fixture
def file(tmp_path: Path) -> Path:
    need_a_disk(tmp_path)
    path = tmp_path / "rows.npy"
    path.write_bytes(os.urandom(SIZE))
    return path


def clock_of(*times: float) -> Callable[[], float]:
    ticks: Iterator[float] = iter(times)
    return lambda: next(ticks)


def test_a_cold_read_begins_with_nothing_cached_and_reads_it_all(file: Path) -> None:
    speed = sequential_read(file, clock=clock_of(10.0, 10.5))
    assert speed == ReadSpeed(SIZE, 0.5, cached_bytes=0)
    assert speed.cold
    assert speed.bytes_per_second == 2 * SIZE
    assert repr(speed) == "cold: 8 MiB in 0.5 s, 16 MiB/s"
    assert resident_bytes(file) == SIZE


def test_a_warm_read_finds_it_all_in_the_page_cache(file: Path) -> None:
    speed = sequential_read(file, cold=False, clock=clock_of(0.0, 1.0))
    assert speed == ReadSpeed(SIZE, 1.0, cached_bytes=SIZE)
    assert not speed.cold
    assert repr(speed).startswith("warm: 8 MiB in 1 s")


def test_a_read_asked_warm_of_a_cold_file_does_not_call_itself_warm(file: Path) -> None:
    evict(file)
    assert repr(sequential_read(file, cold=False)).startswith("cold: ")


def test_a_part_is_read_in_blocks_of_any_size(file: Path) -> None:
    speed = sequential_read(file, at_most_bytes=MIB + 1, block_bytes=1000)
    assert speed.read_bytes == MIB + 1
    assert sequential_read(file, at_most_bytes=2 * SIZE).read_bytes == SIZE


def test_warm_means_the_part_that_is_read(file: Path) -> None:
    sequential_read(file, at_most_bytes=MIB)
    assert sequential_read(file, cold=False, at_most_bytes=MIB).cached_bytes == MIB


def test_what_stayed_in_the_page_cache_is_told() -> None:
    half = ReadSpeed(100 * MIB, 2.0, cached_bytes=50 * MIB)
    assert not half.cold
    assert repr(half) == "50% cached: 100 MiB in 2 s, 50 MiB/s"
    unknown = ReadSpeed(100 * MIB, 2.0, cached_bytes=None)
    assert not unknown.cold
    assert repr(unknown).startswith("cold or warm, this system does not tell: 100 MiB")


def test_where_the_cache_cannot_be_asked_the_read_is_not_called_cold(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "resident_bytes", lambda *_, **__: None)
    assert sequential_read(file).cached_bytes is None


def test_every_byte_passes_through_the_buffer(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert disk._read(file, 4096, None) == SIZE
    assert disk._read(file, SIZE * 2, None) == SIZE


@pytest.mark.parametrize("size", [0, -1])
def test_sizes_that_are_not_positive_are_refused(file: Path, size: int) -> None:
    with pytest.raises(ValueError, match=f"block_bytes is {size}: pass a positive"):
        sequential_read(file, block_bytes=size)
    with pytest.raises(ValueError, match=f"at_most_bytes is {size}: pass a positive"):
        sequential_read(file, at_most_bytes=size)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.npy"
    empty.touch()
    with pytest.raises(ValueError, match=r"empty\.npy is empty"):
        sequential_read(empty)


@pytest.mark.parametrize("missing", ["gone.npy", "gone/rows.npy"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    for cold in (True, False):
        with pytest.raises(FileNotFoundError, match=rf"{missing} does not exist: make the data"):
            sequential_read(tmp_path / missing, cold=cold)
    with pytest.raises(FileNotFoundError, match=rf"{missing} cannot be looked at .*: make"):
        read_ahead_bytes(tmp_path / missing)


def test_a_read_that_fails_is_told_with_the_file_and_the_next_step(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(mmap, "mmap", fails)
    monkeypatch.setattr(disk, "resident_bytes", lambda *_, **__: None)
    with pytest.raises(OSError, match=r"rows\.npy cannot be read \(Input.*\): copy it to another"):
        sequential_read(file, cold=False)


def made_up_system(folder: Path, kind: str, path: Path) -> str:
    """Return a /sys in which the device that holds `path` reads 128 KiB ahead."""
    device = path.stat().st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    (folder / "dev/block").mkdir(parents=True)
    if kind == "bdi":
        queue = folder / "class/bdi" / name
    else:
        partition = folder / "devices/disk/partition"
        partition.mkdir(parents=True)
        (folder / "dev/block" / name).symlink_to(partition)
        queue = (partition if kind == "disk" else partition.parent) / "queue"
    queue.mkdir(parents=True)
    (queue / "read_ahead_kb").write_text("128\n")
    return str(folder)


@pytest.mark.parametrize("kind", ["bdi", "disk", "partition"])
def test_the_read_ahead_is_the_devices(tmp_path: Path, kind: str) -> None:
    system = made_up_system(tmp_path / "sys", kind, tmp_path)
    assert read_ahead_bytes(tmp_path, system=system) == 128 * 1024


def test_the_read_ahead_is_none_where_the_system_does_not_tell(tmp_path: Path) -> None:
    assert read_ahead_bytes(tmp_path, system=str(tmp_path)) is None


def test_free_space_is_known_before_the_folder_exists(tmp_path: Path) -> None:
    free = os.statvfs(tmp_path)
    expected = free.f_bavail * free.f_frsize
    assert free_bytes(tmp_path / "not" / "yet") == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(("seconds", "shown"), [(0.0123, "0.012"), (1.68, "1.7"), (123.4, "123")])
def test_seconds_are_shown_as_people_say_them(seconds: float, shown: str) -> None:
    assert f" in {shown} s, " in repr(ReadSpeed(MIB, seconds, 0))
