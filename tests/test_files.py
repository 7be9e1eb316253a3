"""Whoever is given a path says what is wrong with it, and what to do, without waiting for it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from data_gen import ensure
from helpers.disk import free_bytes, read_ahead_bytes, sequential_read
from helpers.loaders.columns import open_hdf5, open_npy
from helpers.page_cache import evict, resident_bytes
from helpers.system.files import absolute_path, open_regular

READERS: list[Callable[[Path], object]] = [
    *(evict, resident_bytes, sequential_read, open_regular, open_npy),
    lambda path: open_hdf5(path, "rows"),
]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (str, FileNotFoundError, r"x\.npy does not exist: make the data first"),
        (os.mkdir, IsADirectoryError, r"x\.npy is a folder: name a file in it"),
        (os.mkfifo, OSError, r"x\.npy is not a regular file .*: name a file"),
        (lambda path: path.symlink_to(path), OSError, r"read \(Too many levels .*\): remove the"),
        (lambda path: path.symlink_to("y"), FileNotFoundError, "a link to y, which .*: remove the"),
    ],
    ids=["missing", "folder", "pipe", "loop", "link to nothing"],
)
def test_a_path_that_leads_to_no_file_has_a_cause_and_a_next_step(
    tmp_path: Path,
    make: Callable[[Path], object],
    error: type[OSError],
    message: str,
    read: Callable[[Path], object],
) -> None:
    make(tmp_path / "x.npy")
    with pytest.raises(error, match=message):
        read(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("/dev/null", OSError, "/dev/null is not a regular file"),
        ("a" * 300, OSError, r"a cannot be read \(File name too long\): pass a shorter path"),
        (f"{__file__}/a", NotADirectoryError, r"a cannot be read \(Not a .*\): correct the path"),
        ("a\0.npy", ValueError, "has a NUL character in it: correct the path"),
        (7, TypeError, "7 is no path: pass a str or a Path"),
    ],
)
def test_what_is_no_path_is_named(path: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        open_npy(path)


def test_the_device_of_what_is_missing_cannot_be_looked_at(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone cannot be looked at .*: make the data"):
        read_ahead_bytes(tmp_path / "gone")


@pytest.mark.parametrize(
    "ask", [absolute_path, free_bytes, open_npy, lambda p: ensure("npy", p, rows=9)]
)
def test_a_path_within_a_folder_that_was_removed_is_named(
    gone_folder: Path, ask: Callable[[str], object]
) -> None:
    with pytest.raises(FileNotFoundError, match=r"data is meant from the working.*os\.chdir"):
        ask("data")
