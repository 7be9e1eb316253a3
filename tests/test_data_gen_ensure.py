"""`ensure` makes data once, refuses what does not fit before any work, and never harms a file."""

import errno
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refusal

from data_gen import GeneratedData, ensure
from data_gen.sizes import count_rows, size_in_bytes
from helpers.system.locks import try_lock, wait_for_lock


def make(folder: Path, file_format: str = "npy", **changes: Any) -> GeneratedData:
    return ensure(file_format, folder, **{"rows": 1000, "progress": False} | changes)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("shape", [(128,), (64, 64)])
@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_the_files_hold_the_rows_and_labels_that_the_record_expects(
    tmp_path: Path, shape: tuple[int, ...], order: str
) -> None:
    made = make(tmp_path, row_shape=shape, seed=4, order=order, classes=7)
    rows, labels = np.load(made.rows_path), np.load(made.labels_path)
    assert rows.shape == made.shape == (1000, *shape)
    assert (rows.dtype, labels.dtype) == (np.float32, np.int64)
    assert made.count_wrong(rows, range(1000)) == 0
    assert np.array_equal(labels, made.expected_labels(range(1000)))
    assert np.array_equal(rows[5], made.expected_rows(5))
    assert made.count_wrong(rows[::-1], range(1000)) == 1000


def test_files_are_named_for_what_they_hold_and_stand_side_by_side(tmp_path: Path) -> None:
    make(tmp_path)
    make(tmp_path, row_shape=(8, 8))
    make(tmp_path, order="sorted")
    assert files(tmp_path) == [
        *("features-sorted.json", "features-sorted.npy", "features.json", "features.npy"),
        *("labels-sorted.npy", "labels.npy"),
        *("spectrograms-labels.npy", "spectrograms.json", "spectrograms.npy"),
    ]


def test_bytes_depend_on_neither_jobs_nor_block_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make(tmp_path / "one", rows=30_001)
    several = make(tmp_path / "several", rows=30_001, jobs=3)
    monkeypatch.setattr(
        "data_gen.generate.spans", lambda count, _: (range(i, i + 1) for i in range(count))
    )
    single = make(tmp_path / "single", rows=300)
    assert one.rows_path.read_bytes() == several.rows_path.read_bytes()
    assert one.labels_path.read_bytes() == several.labels_path.read_bytes()
    assert np.array_equal(np.load(single.rows_path), np.load(one.rows_path)[:300])


def test_whole_data_is_found_and_not_touched_unless_it_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make(tmp_path, progress=True)
    assert re.search(r"features\.npy: 100%.*B/s", capsys.readouterr().err)
    before = [(path, path.stat()) for path in sorted(tmp_path.iterdir())]
    assert make(tmp_path, progress=True) == first
    assert [(path, path.stat()) for path in sorted(tmp_path.iterdir())] == before
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match=r"features\.json cannot be read: change its perm"):
        make(tmp_path)


def test_other_parameters_make_our_own_data_again_and_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path)
    capsys.readouterr()
    made = make(tmp_path, seed=9, rows=500)
    said = capsys.readouterr().err
    assert said == "features.npy is made again: count 1000 (now 500), seed 0 (now 9)\n"
    assert made.count_wrong(np.load(made.rows_path), range(500)) == 0
    assert len(np.load(made.labels_path)) == 500


@pytest.mark.parametrize("name", ["features.npy", "labels.npy"])
def test_a_file_of_somebody_else_is_never_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(FileExistsError, match=rf"{name} was not made by.*another folder"):
        make(tmp_path)
    assert (tmp_path / name).read_text() == "mine"
    assert files(tmp_path) == [name]


HDF5 = {"file_format": "hdf5"}
NOT_OURS = ["", "[]", "null", "[" * 60_000, "9" * 5000, "x" * 70_000, "\udc00", '{"made_from": 3}']
NO_FILES: dict[str, Callable[[Path], object]] = {
    "folder": os.mkdir,
    "pipe": os.mkfifo,
    "loop": lambda path: path.symlink_to(path),
    "link to nothing": lambda path: path.symlink_to("nothing"),
}


@pytest.mark.parametrize("text", [*NOT_OURS, '{"made_from": {"made_by": "x"}, "files": {}}'])
def test_a_description_of_somebody_else_is_never_overwritten(tmp_path: Path, text: str) -> None:
    (tmp_path / "features.json").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(FileExistsError, match=r"features\.json was not made by.*: move it"):
        make(tmp_path)
    assert (tmp_path / "features.json").read_bytes() == text.encode(errors="surrogatepass")


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("name", ["features.json", "labels.npy", "features.npy"])
def test_what_is_no_file_in_the_place_of_one_is_told_without_waiting(
    tmp_path: Path, name: str, kind: str
) -> None:
    make(tmp_path)
    (tmp_path / name).unlink()
    NO_FILES[kind](tmp_path / name)
    with pytest.raises(FileExistsError, match=f"{name} was not made by.*: move it, or pass anot"):
        make(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("count", value) for value in ("1000", 1000.0, 10**30)),
        *(("row_shape", value) for value in (128, ["128"], [16, 8])),
        *(("seed", None), ("classes", [10]), ("order", {}), ("format", "csv")),
        *(("chunks", [[512]]), ("level", "high"), ("files", ["features.npy"])),
        *(
            ("files", {name: size})
            for name, size in (("features.npy", "1"), ("../features.npy", 1))
        ),
    ],
)
def test_an_edited_description_is_not_trusted(tmp_path: Path, key: str, value: Any) -> None:
    make(tmp_path)
    path = tmp_path / "features.json"
    described = json.loads(path.read_text())
    part = described if key == "files" else described["made_from"]
    part[key] = part[key] | value if key == "files" and isinstance(value, dict) else value
    for _ in ("changed", "removed"):
        path.write_text(json.dumps(described))
        with pytest.raises(FileExistsError, match=r"features\.json was not made .* or was changed"):
            make(tmp_path)
        part.pop(key, None)


@pytest.mark.parametrize("number", [np.int64, np.uint8, np.float32, float, torch.tensor])
def test_whole_numbers_of_every_library_are_numbers(tmp_path: Path, number: Any) -> None:
    plain = make(tmp_path, rows=64, seed=3, classes=7)
    before = plain.rows_path.stat()
    given = {"rows": number(64), "seed": number(3), "classes": number(7), "jobs": number(1)}
    same = make(tmp_path, **given, row_shape=[number(128)])
    assert same == plain
    assert plain.rows_path.stat() == before
    assert type(same.recipe.count) is type(same.recipe.row_shape[0]) is int
    chunked: dict[str, Any] = {"rows": 64, "chunks": (number(8), number(128)), "progress": False}
    assert ensure("hdf5", tmp_path, **chunked).rows_path.name == "features-chunks8x128.h5"
    assert size_in_bytes(number(64)) == 64


def change_last(path: Path) -> None:
    values = np.load(path, mmap_mode="r+")
    values[-1] += 1
    values.flush()


DAMAGES: dict[str, Callable[[Path], object]] = {
    r"cut short.*5,000 bytes": lambda path: os.truncate(path, 5000),
    "not those it was made with": change_last,
    r"cannot be read .*shape \(500, ": lambda path: np.save(path, np.load(path).reshape(500, -1)),
    "cannot be read": lambda path: path.write_bytes(b"x" * path.stat().st_size),
}


@pytest.mark.parametrize("name", ["features.npy", "labels.npy"])
@pytest.mark.parametrize("message", DAMAGES)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, message: str) -> None:
    make(tmp_path)
    DAMAGES[message](tmp_path / name)
    for seed in (0, 1) if "short" in message else (0,):
        with pytest.raises(ValueError, match=rf"{name} was changed.*{message}.*: delete it"):
            make(tmp_path, seed=seed)


@pytest.mark.parametrize("name", ["features.npy", "labels.npy"])
def test_a_deleted_file_is_made_again(tmp_path: Path, name: str) -> None:
    made = make(tmp_path)
    (tmp_path / name).unlink()
    assert make(tmp_path) == made
    assert made.count_wrong(np.load(made.rows_path), range(1000)) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": None}, "rows=None and size=None: pass exactly one"),
        ({"rows": None, "size": "many"}, "'many' is not a size.*1.5x ram"),
        ({"rows": None, "size": "0x ram"}, "'0x ram' is less than one row"),
        ({"rows": None, "size": 511}, "511 is less than one row of 512 B"),
        ({"rows": None, "size": "2x budget"}, "needs a budget"),
        ({"rows": None, "size": "2x budget", "budget": "x"}, "'x' is not a size"),
        ({"jobs": 0}, "jobs=0"),
        ({"rows": 2.5}, "rows=2.5: pass a whole number"),
        ({"rows": float("nan")}, "rows=nan"),
        ({"rows": torch.tensor([5, 6])}, "rows=tensor"),
        ({"rows": None, "size": 1000.5}, "size=1000.5"),
        ({"seed": np.float64(1.5)}, r"seed=.*1\.5"),
        ({"row_shape": 128}, "row_shape=128: pass a shape"),
        ({"row_shape": (8, 2.5)}, "row_shape=2.5"),
        ({"chunks": (10, 128)}, "npy has no chunks"),
        ({"compression": "lzf"}, "npy has no .*compression"),
        ({"file_format": "parquet"}, "format 'parquet' is unknown: pass 'npy' or 'hdf5'"),
        (HDF5 | {"chunks": (512,)}, r"chunks \(512,\) do not fit data of shape \(1000, 128\)"),
        (HDF5 | {"chunks": (1001, 128)}, r"chunks \(1001, 128\) do not fit"),
        (HDF5 | {"chunks": (0, 128)}, "do not fit"),
        (HDF5 | {"chunks": (2.5, 128)}, "chunks=2.5: pass a whole number"),
        (HDF5 | {"chunks": 512}, "chunks=512: pass a shape"),
        (HDF5 | {"chunks": "a,b"}, "'a,b' is not a shape: write it as"),
        (HDF5 | {"rows": 40_000, "chunks": (40_000, 128)}, "takes 19.5 MiB: pass chunks of at"),
        (HDF5 | {"compression": "gzip:10"}, "compression 'gzip:10' is unknown: pass 'no"),
    ],
)
def test_what_cannot_be_made_is_refused_before_any_work(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(tmp_path / "new", **changes)
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("folder", "error", "message"),
    [
        ("x.npy", ValueError, "is a file's name"),
        ("file", OSError, r"file cannot be written \(.*pass another folder"),
        ("file/below", OSError, r"file/below cannot be written \(.*pass another folder"),
    ],
)
def test_what_cannot_be_a_folder_is_named(
    tmp_path: Path, folder: str, error: type[Exception], message: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(error, match=message):
        make(tmp_path / folder)


def test_too_little_free_disk_is_told_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    needed = int((1000 * 512 + 1000 * 8) * 1.05)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, needed - 1))
    for folder in (tmp_path, tmp_path / "new"):
        with pytest.raises(OSError, match=r"features.npy needs 533 KiB .* 533 KiB free: pass a"):
            make(folder)
    assert files(tmp_path) == []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, needed))
    make(tmp_path)


def test_an_error_in_a_thread_that_makes_rows_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ArithmeticError("no rows today")

    monkeypatch.setattr("data_gen.recipe.Recipe.rows", broken)
    with pytest.raises(ArithmeticError, match="no rows today"):
        make(tmp_path, jobs=2)
    assert files(tmp_path) == []


def test_sizes_are_bytes_ram_that_can_be_had_or_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("data_gen.sizes.machine_ram_bytes", lambda: 3 << 30)
    assert (size_in_bytes("2 GiB"), size_in_bytes(4096)) == (2 << 30, 4096)
    assert size_in_bytes("1.5xram") == size_in_bytes("1.5x RAM") == 9 << 29
    assert size_in_bytes("4x budget", budget="512 MiB") == 2 << 30
    assert count_rows(None, 1535, 512, None) == 2, "only whole rows"
    assert count_rows(7, None, 512, None) == 7


def test_the_record_is_small_says_what_it_is_and_survives_pickling(tmp_path: Path) -> None:
    made = make(tmp_path, row_shape=(64, 64), rows=2048)
    assert repr(made) == (
        "spectrograms.npy: 2,048 rows of 64 x 64 float32, 32 MiB, 10 classes, seed 0"
    )
    assert (made.rows, made.row_shape) == (2048, (64, 64))
    assert made.nbytes == 2048 * 16384
    assert len(pickle.dumps(made)) < 1000
    assert pickle.loads(pickle.dumps(made)) == made
    assert made.rows_path.is_absolute(), "a child process may have another working directory"


def test_what_a_dead_process_left_is_removed_and_what_a_live_one_writes_is_not(
    tmp_path: Path,
) -> None:
    dead = tmp_path / ".features-contiguous.data_gen-making"
    live = tmp_path / ".spectrograms.data_gen-making"
    for left in (dead, live, tmp_path / ".features.data_gen-making"):
        left.mkdir()
        (left / "features.npy").write_bytes(b"half")
    with try_lock(tmp_path / ".spectrograms.data_gen-lock") as held:
        assert held
        make(tmp_path)
        assert not dead.exists()
        assert (live / "features.npy").read_bytes() == b"half"
    assert files(tmp_path) == [live.name, "features.json", "features.npy", "labels.npy"]


def test_two_processes_at_once_make_the_data_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "data_gen", "npy", str(tmp_path), "--size", "64MiB", "--quiet"]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert files(tmp_path) == ["features.json", "features.npy", "labels.npy"]
    made = make(tmp_path, rows=None, size="64MiB")
    assert made.count_wrong(np.load(made.rows_path), range(made.rows)) == 0
    made.rows_path.unlink()


def test_a_lock_is_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entered = threading.Event()

    def wait() -> None:
        with wait_for_lock(tmp_path / "lock"):
            entered.set()

    waiting = threading.Thread(target=wait)
    with try_lock(tmp_path / "lock") as held:
        assert held
        with try_lock(tmp_path / "lock") as again:
            assert not again
        waiting.start()
        while "waiting for it" not in (said := capsys.readouterr().err):
            assert not entered.is_set(), said
    waiting.join()
    assert entered.is_set()
    assert files(tmp_path) == []


def test_whole_data_is_found_in_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(tmp_path)
    monkeypatch.setattr("helpers.system.locks.os.open", refusal(errno.EACCES))
    assert make(tmp_path) == made
    with pytest.raises(PermissionError, match="cannot be written"):
        make(tmp_path, seed=1)
