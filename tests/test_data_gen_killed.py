"""Whenever `data_gen` is killed or interrupted, nothing it leaves is ever taken for whole."""

import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from data_gen import check, ensure

SIZE = 48 << 20
MAKE = "import sys; from data_gen.__main__ import main; sys.exit(main(sys.argv[1:]))"

# Ends the process, as a kill would, just before the n-th change that puts files in place.
DIES_IN_PLACE = """
import os, sys
from pathlib import Path
from data_gen.__main__ import main
left = int(sys.argv.pop(1))
def counted(change):
    def counting(path, *arguments, **options):
        global left
        left -= not path.name.endswith("-lock")
        if left < 0:
            os._exit(9)
        return change(path, *arguments, **options)
    return counting
Path.replace, Path.unlink = counted(Path.replace), counted(Path.unlink)
sys.exit(main(sys.argv[1:]))
"""


LAYOUTS: dict[str, dict[str, Any]] = {"npy": {}, "hdf5": {"chunks": "64,128", "compression": "lzf"}}
NAMES = {"npy": "features.npy", "hdf5": "features-chunks64x128-lzf.h5"}


def start(folder: Path, code: str, *first: str, kind: str = "npy") -> "subprocess.Popen[str]":
    options = [f"--{name}={value}" for name, value in LAYOUTS[kind].items()]
    arguments = [*first, kind, str(folder), f"--size={SIZE}", "--quiet", *options]
    command, pipe = [sys.executable, "-c", code, *arguments], subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


def wait_until_written(writer: "subprocess.Popen[str]", folder: Path, kind: str, size: int) -> None:
    partial = folder / f".{Path(NAMES[kind]).stem}.data_gen-making" / NAMES[kind]
    while writer.poll() is None:
        with suppress(FileNotFoundError):  # not begun yet, or in place already
            if partial.stat().st_size >= size:
                return


def assert_it_is_made_whole(folder: Path, kind: str = "npy") -> None:
    made = ensure(kind, folder, size=SIZE, progress=False, **LAYOUTS[kind])
    assert check(made, progress=False).ok
    files = {made.rows_path, made.labels_path, made.rows_path.with_suffix(".json")}
    assert set(folder.iterdir()) == files
    made.rows_path.unlink()


@pytest.mark.parametrize(("kind", "rounds"), [("npy", 10), ("hdf5", 3)])
def test_after_kills_at_random_moments_the_data_is_made_whole(
    tmp_path: Path, kind: str, rounds: int
) -> None:
    moments, killed = random.Random(0), 0
    for _ in range(rounds):
        process = start(tmp_path, MAKE, kind=kind)
        wait_until_written(process, tmp_path, kind, moments.randrange(SIZE))
        process.kill()
        process.communicate()
        killed += process.returncode != 0  # the last bytes may have been the quicker
        assert_it_is_made_whole(tmp_path, kind)
    assert killed >= rounds // 2, "most kills must find it at work"


@pytest.mark.parametrize("older", [False, True])
def test_after_a_kill_at_any_step_of_putting_in_place_the_data_is_made_whole(
    tmp_path: Path, older: bool
) -> None:
    for step in range(9):
        folder = tmp_path / str(step)
        if older:  # data of the same size that must never be taken for the new
            ensure("npy", folder, size=SIZE, seed=1, progress=False)
        process = start(folder, DIES_IN_PLACE, str(step))
        process.communicate()
        assert_it_is_made_whole(folder)
        if process.returncode == 0:
            break
        assert process.returncode == 9
    assert step == 5, "two removals and three renames, and then the end"


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent to a process group there")
@pytest.mark.parametrize("kind", LAYOUTS)
def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path, kind: str) -> None:
    interruptible = f"import signal; signal.signal(2, signal.default_int_handler); {MAKE}"
    process = start(tmp_path, interruptible, kind=kind)
    wait_until_written(process, tmp_path, kind, 1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert (process.returncode, said) == (130, "stopped: nothing is left half-written\n")
    assert not [*tmp_path.iterdir()]
