"""Whenever `data_gen` is killed or interrupted, nothing it leaves is ever taken for whole."""

import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import pytest

from data_gen import ensure

SIZE = 48 << 20
MAKE = "import sys; from data_gen.__main__ import main; sys.exit(main(sys.argv[1:]))"

# Ends the process, as a kill would, just before the n-th change that puts files in place.
DIES_IN_PLACE = """
import os, sys
from pathlib import Path
from data_gen.__main__ import main
left = int(sys.argv.pop(1))
def counted(change):
    def counting(*arguments, **options):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return change(*arguments, **options)
    return counting
remove, remove_counted = Path.unlink, counted(Path.unlink)
def unlink(path, **options):
    (remove if path.name.endswith("-lock") else remove_counted)(path, **options)
Path.replace, Path.unlink = counted(Path.replace), unlink
sys.exit(main(sys.argv[1:]))
"""


LZF: dict[str, Any] = {"chunks": (64, 128), "compression": "lzf"}


def start(folder: Path, code: str, *first: str, kind: str = "npy") -> "subprocess.Popen[str]":
    arguments = [kind, str(folder), f"--size={SIZE}", "--quiet"]
    if kind == "hdf5":
        arguments += ["--chunks=64,128", "--compression=lzf"]
    return subprocess.Popen(
        [sys.executable, "-c", code, *first, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until_written(process: "subprocess.Popen[str]", partial: Path, size: int) -> None:
    while process.poll() is None:
        try:
            if partial.stat().st_size >= size:
                return
        except FileNotFoundError:
            pass  # not begun yet, or in place already


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    made = ensure("npy", tmp_path_factory.mktemp("right"), size=SIZE, progress=False)
    content = made.rows_path.read_bytes() + made.labels_path.read_bytes()
    made.rows_path.unlink()
    return content


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_after_a_kill_at_any_of_ten_random_moments_the_data_is_made_whole(
    tmp_path: Path, right: bytes
) -> None:
    moments = random.Random(0)
    killed = 0
    for _ in range(10):
        process = start(tmp_path, MAKE)
        wait_until_written(process, tmp_path / PARTIAL["npy"], moments.randrange(SIZE))
        process.kill()
        process.communicate()
        killed += process.returncode != 0  # the last bytes may have been the quicker
        made = ensure("npy", tmp_path, size=SIZE, progress=False)
        assert made.rows_path.read_bytes() + made.labels_path.read_bytes() == right
        assert names(tmp_path) == ["features.json", "features.npy", "labels.npy"]
        made.rows_path.unlink()
    assert killed >= 5, "most kills must find it at work"


@pytest.mark.parametrize("older", [False, True])
def test_after_a_kill_at_any_step_of_putting_in_place_the_data_is_made_whole(
    tmp_path: Path, right: bytes, older: bool
) -> None:
    for step in range(9):
        folder = tmp_path / str(step)
        if older:  # data of the same size that must never be taken for the new
            ensure("npy", folder, size=SIZE, seed=1, progress=False)
        process = start(folder, DIES_IN_PLACE, str(step))
        process.communicate()
        made = ensure("npy", folder, size=SIZE, progress=False)
        assert made.rows_path.read_bytes() + made.labels_path.read_bytes() == right
        assert names(folder) == ["features.json", "features.npy", "labels.npy"]
        made.rows_path.unlink()
        if process.returncode == 0:
            break
        assert process.returncode == 9
    assert step == 5, "two removals and three renames, and then the end"


PARTIAL = {
    "npy": Path(".features.data_gen-making", "features.npy"),
    "hdf5": Path(".features-chunks64x128-lzf.data_gen-making", "features-chunks64x128-lzf.h5"),
}


def test_a_kill_ends_the_child_that_writes_hdf5_and_the_data_is_made_whole(tmp_path: Path) -> None:
    for size in (1, 1 << 20, 16 << 20):
        process = start(tmp_path, MAKE, kind="hdf5")
        wait_until_written(process, tmp_path / PARTIAL["hdf5"], size)
        process.kill()
        process.communicate()
        assert process.returncode != 0
    made = ensure("hdf5", tmp_path, size=SIZE, progress=False, **LZF)
    with h5py.File(made.rows_path) as file:
        assert made.count_wrong(file["rows"][:], range(made.rows)) == 0
    assert names(tmp_path) == [made.rows_path.name, f"{made.rows_path.stem}.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent to a process group there")
@pytest.mark.parametrize("kind", ["npy", "hdf5"])
def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path, kind: str) -> None:
    interruptible = f"import signal; signal.signal(2, signal.default_int_handler); {MAKE}"
    process = start(tmp_path, interruptible, kind=kind)
    wait_until_written(process, tmp_path / PARTIAL[kind], 1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert (process.returncode, said) == (130, "stopped: nothing is left half-written\n")
    assert names(tmp_path) == []
