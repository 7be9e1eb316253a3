import errno
import os
import shutil
from pathlib import Path

import pytest
from ballast import MIB
from refusals import refusal

from helpers import disk
from helpers.disk import ReadSpeed, free_bytes, read_ahead_bytes, sequential_read
from helpers.page_cache import evict, resident_bytes

SIZE = 8 * MIB + 123


def test_a_cold_read_begins_with_nothing_cached_and_reads_it_all(file: Path) -> None:
    speed = sequential_read(file, clock=iter((10.0, 10.5)).__next__)
    assert speed == ReadSpeed(SIZE, 0.5, cached_bytes=0)
    assert speed.cold
    assert speed.bytes_per_second == 2 * SIZE
    assert resident_bytes(file) == SIZE


def test_a_read_that_is_not_asked_to_be_cold_tells_what_it_found(file: Path) -> None:
    speed = sequential_read(file, cold=False, clock=iter((0.0, 1.0)).__next__)
    assert speed == ReadSpeed(SIZE, 1.0, cached_bytes=SIZE)
    evict(file)
    assert sequential_read(file, cold=False, at_most_bytes=MIB).cached_bytes == 0
    assert sequential_read(file, cold=False, at_most_bytes=MIB).cached_bytes == MIB, "of the part"


@pytest.mark.parametrize("block_bytes", [1000, 4096, 2 * SIZE])
def test_a_part_is_read_in_blocks_of_any_size(
    file: Path, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_BLOCK_BYTES", block_bytes)
    for asked, read in ((MIB + 1, MIB + 1), (2 * SIZE, SIZE), (None, SIZE)):
        assert sequential_read(file, at_most_bytes=asked).read_bytes == read


@pytest.mark.parametrize(
    ("speed", "shown"),
    [
        (ReadSpeed(SIZE, 0.5, 0), "cold: 8 MiB in 0.5 s, 16 MiB/s"),
        (ReadSpeed(MIB, 0.0123, MIB), "warm: 1 MiB in 0.012 s, 81.3 MiB/s"),
        (ReadSpeed(100 * MIB, 1.68, 50 * MIB), "50% cached: 100 MiB in 1.7 s, 59.5 MiB/s"),
        (
            ReadSpeed(100 * MIB, 123.4, None),
            "cold or warm, this system does not tell: 100 MiB in 123 s, 830 KiB/s",
        ),
    ],
)
def test_a_read_says_whether_it_was_cold_and_how_fast(speed: ReadSpeed, shown: str) -> None:
    assert repr(speed) == shown
    assert speed.cold is shown.startswith("cold: ")


def test_sizes_that_are_not_positive_and_an_empty_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at_most_bytes is -1: pass a positive"):
        sequential_read(tmp_path, at_most_bytes=-1)
    (tmp_path / "empty.npy").touch()
    with pytest.raises(ValueError, match=r"empty\.npy is empty"):
        sequential_read(tmp_path / "empty.npy")


def test_a_read_that_fails_is_told_with_the_file_and_the_next_step(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "open", refusal(errno.EIO))
    monkeypatch.setattr(disk, "resident_bytes", lambda *_, **__: None)
    with pytest.raises(OSError, match=r"rows\.npy cannot be read \(Input.*\): copy it to another"):
        sequential_read(file, cold=False)


@pytest.mark.parametrize(
    "queue", ["class/bdi/{}", "devices/disk/partition/queue", "devices/disk/queue"]
)
def test_the_read_ahead_is_the_devices(tmp_path: Path, queue: str) -> None:
    device = tmp_path.stat().st_dev
    name, partition = f"{os.major(device)}:{os.minor(device)}", tmp_path / "devices/disk/partition"
    for folder in (partition, tmp_path / "dev/block", tmp_path / queue.format(name)):
        folder.mkdir(parents=True, exist_ok=True)
    (tmp_path / "dev/block" / name).symlink_to(partition)
    assert read_ahead_bytes(tmp_path, system=str(tmp_path)) is None, "not told yet"
    (tmp_path / queue.format(name) / "read_ahead_kb").write_text("128\n")
    assert read_ahead_bytes(tmp_path, system=str(tmp_path)) == 128 * 1024


def test_free_space_is_known_before_the_folder_exists(tmp_path: Path) -> None:
    expected = shutil.disk_usage(tmp_path).free
    assert free_bytes(tmp_path / "not" / "yet") == pytest.approx(expected, rel=0.1)
