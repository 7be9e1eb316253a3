"""`shuffle`: every row once, in random order, with its label, in constant memory, or nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from refusals import refusal

from data_gen import Shuffled, ensure, shuffle, shuffling
from data_gen.__main__ import main
from data_gen.permutation import Permutation

ROWS = 10_000


@pytest.fixture
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffling, "BUCKET_BYTES", 1 << 14)  # dozens of them


@pytest.fixture
def npy(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.arange(ROWS * 3, dtype=np.int32).reshape(ROWS, 3))
    np.save(tmp_path / "labels.npy", np.arange(ROWS))
    return tmp_path


@pytest.fixture
def hdf5(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "data.h5", "w") as file:
        values = np.arange(ROWS * 8, dtype=np.float32).reshape(ROWS, 8)
        file.create_dataset("deep/x", data=values, chunks=(300, 4), compression="gzip")
        file.create_dataset("y", data=np.arange(ROWS), chunks=(64,), maxshape=(None,))
        file["names"] = ["cat", "dog"]
        file["deep/x"].attrs["unit"] = "mV"
        file.attrs["made by"] = "us"
    return tmp_path


def shuffled_npy(folder: Path, seed: int = 0, name: str = "new") -> tuple[Any, Any]:
    also = {folder / "labels.npy": folder / f"{name}-labels.npy"}
    target = folder / f"{name}.npy"
    shuffle(folder / "rows.npy", target, also=also, seed=seed, progress=False)
    return np.load(target), np.load(folder / f"{name}-labels.npy")


def test_every_row_comes_once_with_its_label(npy: Path, small_buckets: None) -> None:
    rows, labels = shuffled_npy(npy)
    assert sorted(labels.tolist()) == list(range(ROWS))
    assert (rows == 3 * labels[:, None] + [0, 1, 2]).all()
    assert {path.name for path in npy.iterdir()} == {
        "rows.npy",
        "labels.npy",
        "new.npy",
        "new-labels.npy",
    }


def test_rows_go_anywhere(npy: Path, small_buckets: None) -> None:
    """A full shuffle moves a row by a third of the file on average, whatever its first place."""
    _, labels = shuffled_npy(npy)
    moved = np.abs(labels - np.arange(ROWS)) / ROWS
    assert 0.31 < moved.mean() < 0.35
    for tenth in np.split(labels, 10):
        assert 0.45 < tenth.mean() / ROWS < 0.55
    assert np.count_nonzero(np.diff(labels) == 1) < 20


def test_a_seed_decides_the_bytes(npy: Path, small_buckets: None) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        shuffled_npy(npy, seed, name)
    a, b, c = ((npy / f"{name}.npy").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_the_portions_in_which_rows_come_do_not_change_the_order() -> None:
    order = Permutation.of(1000, 8, seed=3, bucket_bytes=100)
    draw, again = order.drawing(), order.drawing()
    assert np.array_equal(draw(1000), np.concatenate([again(1), again(998), again(1)]))
    assert order.buckets == 80
    assert order.sizes().sum() == 1000


def test_hdf5_keeps_its_layout_and_all_else(hdf5: Path, small_buckets: None) -> None:
    shuffled = shuffle(hdf5 / "data.h5", hdf5 / "new.h5", progress=False)
    assert repr(shuffled) == "new.h5: 10,000 rows in random order (deep/x, y)"
    with h5py.File(hdf5 / "new.h5") as new:
        x, y = new["deep/x"], new["y"]
        assert (x.chunks, x.compression, y.chunks, y.maxshape) == ((300, 4), "gzip", (64,), (None,))
        assert (x.attrs["unit"], new.attrs["made by"]) == ("mV", "us")
        assert [name.decode() for name in new["names"]] == ["cat", "dog"]
        labels = y[:]
        assert sorted(labels.tolist()) == list(range(ROWS))
        assert not np.array_equal(labels, np.arange(ROWS))
        assert (x[:] == 8 * labels[:, None] + np.arange(8)).all()


def test_npy_and_hdf5_are_shuffled_alike(hdf5: Path, small_buckets: None) -> None:
    with h5py.File(hdf5 / "data.h5") as file:
        np.save(hdf5 / "rows.npy", file["deep/x"][:])
    also = {hdf5 / "rows.npy": hdf5 / "new.npy"}
    shuffle(hdf5 / "data.h5", hdf5 / "new.h5", also=also, seed=1, progress=False)
    with h5py.File(hdf5 / "new.h5") as file:
        assert np.array_equal(file["deep/x"][:], np.load(hdf5 / "new.npy"))


def test_one_row_and_few_rows_are_shuffled(tmp_path: Path) -> None:
    for rows in (1, 2, 3):
        np.save(tmp_path / "few.npy", np.arange(rows))
        shuffle(tmp_path / "few.npy", tmp_path / "new.npy", overwrite=True, progress=False)
        assert sorted(np.load(tmp_path / "new.npy")) == list(range(rows))


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """The process's peak, for a file of 768 MiB: less than a half of it, with torch in it."""
    data = ensure("npy", tmp_path, size="768 MiB", progress=False)
    code = (
        "import sys, data_gen; data_gen.shuffle(sys.argv[1], sys.argv[2], progress=False);"
        "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('RssAnon')][0],"
        " [l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')][0])"
    )
    target = tmp_path / "new.npy"
    said = subprocess.check_output([sys.executable, "-c", code, str(data.rows_path), str(target)])
    _, peak = map(int, said.split())
    assert target.stat().st_size == data.rows_path.stat().st_size
    assert peak < 600 * 1024


REFUSALS: list[tuple[str, str, dict[str, Any], str]] = [
    ("rows.npy", "rows.npy", {}, "read or written twice: pass another target"),
    ("rows.npy", "labels.npy", {}, "labels.npy is there already: delete it, or pass overwrite"),
    ("rows.npy", "new.h5", {}, "another format than .*: pass the same ending"),
    ("rows.npy", "no/new.npy", {}, "no is no folder: make it"),
    ("rows.npy", "new.npy", {"seed": -1}, "seed=-1: pass 0 or more"),
    ("rows.npy", "new.npy", {"seed": 0.5}, "seed=0.5: pass a whole number"),
    ("missing.npy", "new.npy", {}, "missing.npy .*does not exist"),
    ("text.h5", "new.h5", {}, "text.h5 is not HDF5 but"),
    ("empty.h5", "new.h5", {}, "has no dataset with rows"),
    ("objects.npy", "new.npy", {}, "Python objects"),
    ("rows.npy", "new.npy", {"also": {"short.npy": "b.npy"}}, "5 rows .* 10,000: pass files"),
    ("rows.npy", "new.npy", {"also": {"labels.npy": "new.npy"}}, "read or written twice"),
    ("rows.npy", "new.npy", {"also": {"rows.npy": "b.npy"}}, "rows.npy is to be shuffled twice"),
]


@pytest.mark.parametrize(("source", "target", "how", "said"), REFUSALS)
def test_what_cannot_be_shuffled_is_refused_and_nothing_is_made(
    npy: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    target: str,
    how: dict[str, Any],
    said: str,
) -> None:
    monkeypatch.chdir(npy)
    np.save("short.npy", np.zeros(5))
    np.save("objects.npy", np.array([{}, {}]))
    Path("text.h5").write_text("no")
    h5py.File("empty.h5", "w").close()
    before = sorted(npy.iterdir())
    with pytest.raises((ValueError, OSError), match=said):
        shuffle(source, target, progress=False, **how)
    assert sorted(npy.iterdir()) == before


def test_too_little_disk_is_told_before_any_work(
    npy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffling, "free_bytes", lambda _: 1000)
    with pytest.raises(OSError, match=r"shuffling needs .* has \S+ \S+ free: free some"):
        shuffle(npy / "rows.npy", npy / "new.npy", progress=False)


@pytest.mark.parametrize("kind", ["npy", "h5"])
def test_a_disk_that_fills_up_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    data = ensure("npy" if kind == "npy" else "hdf5", tmp_path / "data", rows=2000, progress=False)
    monkeypatch.setattr(os, "fsync", refusal(28))
    monkeypatch.setattr("data_gen.hdf5_process._START", "import os; os.abort()")
    with pytest.raises(OSError, match=r"the disk of .* filled up at .*: free some"):
        shuffle(data.rows_path, tmp_path / f"new.{kind}", progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
@pytest.mark.parametrize("kind", ["npy", "hdf5"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_shuffle_that_is_ended_leaves_nothing_that_is_taken_for_whole(
    tmp_path: Path, kind: str, how: signal.Signals
) -> None:
    data = ensure(kind, tmp_path / "data", size="64 MiB", progress=False)
    target = tmp_path / f"new{data.rows_path.suffix}"
    command = [sys.executable, "-m", "data_gen", "shuffle", "--quiet", str(data.rows_path)]
    with subprocess.Popen([*command, str(target)], stderr=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.glob(".*making/scattered")):
            time.sleep(0.002)
            assert process.poll() is None
        process.send_signal(how)
        said = process.communicate()[1]
    assert not target.exists()
    if how == signal.SIGINT:
        assert said == "stopped: nothing is left half-written\n"
        assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert isinstance(shuffle(data.rows_path, target, progress=False), Shuffled)
    assert {path.name for path in tmp_path.iterdir()} == {"data", target.name}


_KILLED_AT = """
import os, signal, sys
from pathlib import Path
from data_gen import shuffle
real, left = {call: getattr(Path, call) for call in ("unlink", "replace")}, [int(sys.argv[1])]
def patched(call):
    def killed(path, *args, **options):
        if "data_gen" not in path.name and path.suffix == ".npy":
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return real[call](path, *args, **options)
    return killed
for call in real:
    setattr(Path, call, patched(call))
shuffle("rows.npy", "new.npy", also={"labels.npy": "new-labels.npy"}, seed=1, progress=False,
        overwrite=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
@pytest.mark.parametrize(
    ("calls", "left"), [(0, "rows and labels"), (1, "labels"), (2, ""), (3, "")]
)
def test_rows_are_never_left_with_other_labels_wherever_the_kill_comes(
    npy: Path, calls: int, left: str
) -> None:
    """The targets are there before, in another order: both are removed, then both replaced."""
    old = shuffled_npy(npy, seed=0)
    command = [sys.executable, "-c", _KILLED_AT, str(calls)]
    assert subprocess.run(command, cwd=npy).returncode == -signal.SIGKILL
    if left:  # what is left is old
        assert (npy / "new.npy").exists() is ("rows" in left)
        assert np.array_equal(np.load(npy / "new-labels.npy"), old[1])
        with pytest.raises(FileExistsError, match="is there already"):
            shuffled_npy(npy)
        subprocess.run([sys.executable, "-c", _KILLED_AT, "9"], cwd=npy, check=True)
    else:  # half of a new pair is taken away
        assert not (npy / "new.npy").exists()
        shuffled_npy(npy, seed=1)
    rows, labels = np.load(npy / "new.npy"), np.load(npy / "new-labels.npy")
    assert (rows[:, 0] == 3 * labels).all()
    assert len([*npy.iterdir()]) == 4


def test_the_command_line_shuffles(npy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["shuffle", "rows.npy", "new.npy", "--also", "labels.npy", "new-labels.npy", "--quiet"]
    words = [str(npy / word) if word.endswith(".npy") else word for word in words]
    assert main(words) == 0
    said = "new.npy, new-labels.npy: 10,000 rows in random order (rows.npy, labels.npy)\n"
    assert capsys.readouterr().out == said
    assert main(words) == 2
    assert "is there already" in capsys.readouterr().err
    assert main([*words, "--overwrite"]) == 0
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--also", str(npy / "labels.npy"), str(npy / "b.npy")])
    assert "labels.npy is to be shuffled twice: name each file once" in capsys.readouterr().err
