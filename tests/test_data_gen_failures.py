"""A disk that takes no more, and a process that dies while it writes, are told in one sentence."""

import errno
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from refusals import refusal

from data_gen import Recipe, ensure, hdf5_process
from data_gen.hdf5 import write_hdf5
from data_gen.layouts import Layout

LAYOUTS = [
    ["npy"],
    ["hdf5"],
    ["hdf5", "--chunks=64,128"],
    ["hdf5", "--chunks=64,128", "--compression=lzf"],
    ["hdf5", "--chunks=64,128", "--compression=gzip:1"],
]
MAKE = "import data_gen.generate, sys; from data_gen.__main__ import main; {}; sys.exit(main())"
LIMITED = MAKE.format("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 23,) * 2)")
# As when the disk fills up while the data is made: at first there was enough.
UNCHECKED = MAKE.format("data_gen.generate._check_disk = lambda _: None")


def said_by(code: str, folder: Path, layout: list[str]) -> str:
    """Make 64 MiB in vain, see that nothing is left, and return what was said."""
    command = [sys.executable, "-c", code, layout[0], str(folder), "--size=64MiB", "--quiet"]
    ended = subprocess.run([*command, *layout[1:]], capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stderr
    assert list(folder.iterdir()) == []
    return ended.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(tmp_path)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nothing can be mounted here")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_disk_that_fills_up_is_named(small_disk: Path, layout: list[str]) -> None:
    said = said_by(UNCHECKED, small_disk, layout)
    assert said.startswith(f"error: the disk of {small_disk} filled up at ")
    assert said.endswith(" MiB of 64 MiB: free some, or pass another folder\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_limit_on_the_size_of_files_is_named(tmp_path: Path, layout: list[str]) -> None:
    said = said_by(LIMITED, tmp_path, layout)
    assert f"of 64 MiB in {tmp_path}: raise the limit" in said


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "the disk of .* filled up at 500 KiB of 500 KiB: free some"),
        (errno.EDQUOT, "your quota on the disk of .* was used up at 500 KiB of .*: delete"),
        (errno.EFBIG, r"features\.npy may not grow further than 500 KiB .*ulimit -f"),
        (errno.EIO, r"could not be written at .* \(Input/output error\): pass another folder"),
    ],
)
def test_an_error_while_writing_is_told_leaves_nothing_and_the_next_call_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, message: str
) -> None:
    before = threading.active_count()
    with monkeypatch.context() as patch:
        real, refuse = os.fsync, refusal(number)
        patch.setattr(os, "fsync", lambda file: (real(file), patch.setattr(os, "fsync", refuse)))
        with pytest.raises(OSError, match=message):  # the labels are written, the rows are not
            ensure("npy", tmp_path, rows=1000, progress=False)
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() == before
    ensure("npy", tmp_path, rows=1000, progress=False)


DIES = "import os, sys; sys.stderr.write('last\\nwords\\n'); sys.stderr.flush(); os.abort()"
BREAKS = "import data_gen.recipe; data_gen.recipe.Recipe.labels = lambda *_: 1 / 0\nmain()"


@pytest.mark.parametrize(
    ("start", "fsync", "error", "said"),
    [
        (DIES, refusal(errno.ENOSPC), OSError, "the disk of .* filled up"),
        (DIES, os.fsync, ChildProcessError, "ended .*: words; if memory ran out"),
        (hdf5_process._START.replace("main()", BREAKS), os.fsync, ZeroDivisionError, "by zero"),
    ],
    ids=["a full disk", "a death", "an error"],
)
@pytest.mark.parametrize("children", [signal.SIG_DFL, signal.SIG_IGN])  # the latter: no status
def test_the_end_of_the_writing_process_is_told_as_what_it_was(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    start: str,
    fsync: Any,
    error: Any,
    said: str,
    children: Any,
) -> None:
    monkeypatch.setattr(hdf5_process, "_START", start)
    monkeypatch.setattr(os, "fsync", fsync)
    before = signal.signal(signal.SIGCHLD, children)
    try:
        with pytest.raises(error, match=said):
            ensure("hdf5", tmp_path, rows=1000, progress=False)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert list(tmp_path.iterdir()) == []


def test_a_child_whose_caller_was_killed_cannot_reach_the_file_that_is_made_anew(
    tmp_path: Path,
) -> None:
    making = tmp_path / "making"
    making.mkdir()
    write = partial(write_hdf5, recipe=Recipe(100), layout=Layout("hdf5"), jobs=1)
    request = (making.name, write)
    words = pickle.dumps(sys.path) + pickle.dumps(request)
    command = [sys.executable, "-c", hdf5_process._START]
    child = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, cwd=making)
    making.rmdir()  # as the next caller does, who then makes it anew
    making.mkdir()
    told, _ = child.communicate(words)
    assert isinstance(pickle.loads(told), OSError)
    assert list(making.iterdir()) == []


def test_a_script_without_a_guard_can_make_hdf5(tmp_path: Path) -> None:
    make = "import data_gen; print('once'); data_gen.ensure('hdf5', 'data', rows=9, progress=False)"
    (tmp_path / "script.py").write_text(make)
    command = [sys.executable, "script.py"]
    assert subprocess.check_output(command, cwd=tmp_path, text=True) == "once\n"
