import errno
import os
import pickle
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from refusals import refusal

from helpers.loaders.columns import open_columns, open_hdf5, open_npy
from helpers.loaders.identity import fingerprint

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
ENDLESS = h5py.h5s.UNLIMITED


class Explodes:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("it was unpickled",)


def write_npy(path: Path, array: Any = ROWS, **how: Any) -> bytes:
    np.save(path, array, **how)
    return path.read_bytes()


def write_hdf5(path: Path) -> None:
    with h5py.File(path.with_name("target.h5"), "w") as file:
        file["rows"] = ROWS
    with h5py.File(path, "w", userblock_size=512) as file:
        file["rows"] = ROWS
        file["inside/labels"] = np.arange(4)
        file.create_dataset("packed", data=ROWS, chunks=(2, 3), compression="gzip", shuffle=True)
        file.create_dataset("unwritten", (4, 3), "float32")
        file["words"] = ["a", "b"]
        file["times"] = np.zeros(3, "M8[s]").astype(h5py.opaque_dtype(np.dtype("M8[s]")))
        file["nothing"] = h5py.Empty("float32")
        file["link"] = h5py.ExternalLink("target.h5", "rows")
        narrow = h5py.h5t.STD_I32LE.copy()
        narrow.set_precision(20)
        h5py.h5d.create(file.id, b"narrow", narrow, h5py.h5s.create_simple((4, 3)))


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_the_header_says_where_the_rows_lie(version: tuple[int, int], tmp_path: Path) -> None:
    with (tmp_path / "rows.npy").open("wb") as file:
        np.lib.format.write_array(file, ROWS, version=version)
    column = open_npy(tmp_path / "rows.npy")
    assert (column.shape, column.dtype.str, column.row_bytes) == ((4, 3), "<f4", 12)
    assert (column.rows, column.chunks, column.chunk_rows, column.filters) == (4, None, 1, ())
    assert column.path.read_bytes()[column.offset :] == ROWS.tobytes()
    np.save(column.path, np.asfortranarray(np.arange(5)))  # in one axis, there is no order
    assert open_npy(column.path).row_bytes == 8


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.asfortranarray(ROWS), "Fortran order.*save np.ascontiguousarray"),
        (ROWS[:0], r"no rows to read, its shape is \(0, 3\)"),
        (ROWS[0, 0], "single value: save an array of rows"),
        (ROWS.astype(">f4"), r"foreign order \(>f4\): save it in native order"),
        (np.zeros(3, "f4,f4"), "compound, with fields f0, f1: save each field by itself"),
        (np.zeros(3, [("λ", "f4")]), r"version \(3, 0\): save a plain array"),
        (np.array(["a", "b"]), "dtype <U1: words: save the number of each"),
        (np.zeros(3, "S2"), r"dtype \|S2: words: save the number of each"),
        (np.zeros(3, "M8[s]"), r"times: save them as numbers, array.astype\(np.int64\)"),
        (np.zeros(3, "m8[s]"), "spans of time: save them as numbers"),
        (np.zeros((3, 2), "V2"), r"bfloat16 and float8: save array.view\(np.uint16\)"),
        (np.zeros(3, np.longdouble), "save an array of plain numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_an_array_that_is_no_rows_of_numbers_is_named(
    array: Any, message: str, tmp_path: Path
) -> None:
    write_npy(tmp_path / "rows.npy", array)
    with pytest.raises(ValueError, match=message) as raised:
        open_npy(tmp_path / "rows.npy")
    assert str(tmp_path / "rows.npy") in str(raised.value)


def test_python_objects_and_pickles_are_named_and_never_unpickled(tmp_path: Path) -> None:
    write_npy(path := tmp_path / "rows.npy", np.array([Explodes()], object), allow_pickle=True)
    with pytest.raises(ValueError, match="never unpickled here: save an array of numbers"):
        open_npy(path)
    path.write_bytes(pickle.dumps(Explodes()))
    with pytest.raises(ValueError, match="a Python pickle, which is never opened here"):
        open_npy(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda whole: whole[:-1], "was cut short: .* makes 176 bytes, and it has 175"),
        (lambda whole: whole + b"x", "something behind its end: .* 176 bytes, and it has 177"),
        (lambda whole: whole[:40], "damaged .npy header .*: write it again"),
        (lambda whole: whole.replace(b"'shape'", b"'shale'"), "damaged .npy header"),
        (lambda whole: whole.replace(b"(4, 3)", b"(4, {)"), "damaged .npy header"),
        (lambda whole: b"\x89HDF\r\n\x1a\n", "not a .npy file but an HDF5 file: read it with H"),
    ],
)
def test_a_damaged_or_foreign_file_is_named(
    change: Callable[[bytes], bytes], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.npy"
    path.write_bytes(change(write_npy(path)))
    with pytest.raises(ValueError, match=f"{re.escape(str(path))} .*{message}"):
        open_npy(path)


def test_an_hdf5_column_tells_the_layout(tmp_path: Path) -> None:
    write_hdf5(path := tmp_path / "data.h5")
    rows = open_hdf5(path, "rows")
    assert (rows.shape, rows.dtype.str, rows.row_bytes) == ((4, 3), "<f4", 12)
    assert (rows.rows, rows.chunks, rows.chunk_rows, rows.filters) == (4, None, 1, ())
    assert path.read_bytes()[rows.offset :][:48] == ROWS.tobytes()
    packed = open_hdf5(path, "packed")
    assert (packed.chunks, packed.chunk_rows, packed.filters) == ((2, 3), 2, (2, 1))
    assert packed.offset is None
    assert open_hdf5(path, "unwritten").offset is None
    assert open_hdf5(write_external(tmp_path), "rows").offset is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone", "no dataset 'gone': it has .*'inside/labels'.* 'rows'"),
        ("nothing", "dataset 'nothing' of .* single value"),
        ("words", "dataset 'words' of .* holds values of any length, such as words"),
        ("times", "dataset 'times' of .* has dtype datetime64.*: times: save them as numbers"),
        ("link", r"'link' in .*data\.h5 is a link into .*target\.h5: pass"),
        ("narrow", "'narrow' of .* converts to int32 while reading: save it as int32"),
    ],
)
def test_a_dataset_that_will_not_do_is_named(name: str, message: str, tmp_path: Path) -> None:
    write_hdf5(tmp_path / "data.h5")
    with pytest.raises(ValueError, match=message):
        open_hdf5(tmp_path / "data.h5", name)


def test_a_filter_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hdf5(tmp_path / "data.h5")
    monkeypatch.setattr(h5py.h5z, "filter_avail", lambda code: code != 1)
    message = r"filter 1 \(deflate\).*process has not loaded: .*`import hdf5plugin` in"
    with pytest.raises(ValueError, match=message):
        open_hdf5(tmp_path / "data.h5", "packed")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "empty: write it again"),
        (b"no HDF5", "text, it starts with b'no HDF5': save"),
        (ROWS.tobytes(), "unknown, it starts with"),
        (b"\x93NUMPY\x01\x00", "a .npy file: read it with NpyDataset, or name it .npy"),
        (b"PK\x03\x04", "a zip or .npz archive"),
        (b"\x1f\x8b\x08", "compressed with gzip: unpack it"),
        (b"version https://git-lfs.github.com/spec/v1", "a pointer of git-lfs .* git lfs pull"),
        (b"<!doctype html>", r"text, perhaps a web page \(HTML\) .* download it again"),
    ],
)
def test_a_file_that_is_no_hdf5_is_told_by_what_it_looks_like(
    content: bytes, what: str, tmp_path: Path
) -> None:
    (tmp_path / "data.h5").write_bytes(content)
    with pytest.raises(ValueError, match=rf"data.h5 is not HDF5 but {what}"):
        open_hdf5(tmp_path / "data.h5", "rows")


def test_a_truncated_hdf5_file_is_named(tmp_path: Path) -> None:
    write_hdf5(tmp_path / "data.h5")
    os.truncate(tmp_path / "data.h5", (tmp_path / "data.h5").stat().st_size - 100)
    with pytest.raises(ValueError, match=r"data.h5 was cut short \(.*truncated.*: copy it again"):
        open_hdf5(tmp_path / "data.h5", "rows")


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EAGAIN, "open in a program that writes it .* close it there"),
        (errno.ENOLCK, "cannot lock files .* HDF5_USE_FILE_LOCKING=FALSE before Python starts"),
    ],
)
def test_a_lock_that_cannot_be_had_has_the_advice_of_its_cause(
    number: int, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hdf5(tmp_path / "data.h5")
    refuse = refusal(number, "Unable to open file (unable to lock file)")
    monkeypatch.setattr(h5py, "File", refuse)
    with pytest.raises(OSError, match=rf"data.h5 .*{advice}"):
        open_hdf5(tmp_path / "data.h5", "rows")


def write_virtual(folder: Path) -> Path:
    """Write rows in source.h5, a dataset over them, and one over that, in a folder of their own."""
    with h5py.File(folder / "source.h5", "w") as file:
        file["rows"] = ROWS
    inner, outer = h5py.VirtualLayout((4, 3), "f4"), h5py.VirtualLayout((4, 3), "f4")
    inner[:] = h5py.VirtualSource("source.h5", "rows", (4, 3))
    outer[:] = h5py.VirtualSource("inner.h5", "rows", (4, 3))
    for name, layout in (("inner.h5", inner), ("outer.h5", outer)):
        with h5py.File(folder / name, "w") as file:
            file.create_virtual_dataset("rows", layout)
    return folder / "outer.h5"


def write_external(folder: Path) -> Path:
    with h5py.File(folder / "data.h5", "w") as file:
        places = [(str(folder / "first"), 8, 20), (str(folder / "second"), 0, h5py.h5f.UNLIMITED)]
        file.create_dataset("rows", data=ROWS, external=places)
    return folder / "data.h5"


@pytest.mark.parametrize(
    ("write", "behind"),
    [(write_virtual, ["inner.h5", "source.h5"]), (write_external, ["first", "second"])],
)
def test_files_behind_a_dataset_are_checked_as_its_own(
    write: Callable[[Path], Path], behind: list[str], tmp_path: Path
) -> None:
    column = open_hdf5(path := write(tmp_path), "rows")
    assert [file.path.name for file in column.files] == [path.name, *behind]
    column.check_unchanged()
    for name in behind:
        stat = (tmp_path / name).stat()
        os.utime(tmp_path / name, ns=(1, 1))
        with pytest.raises(RuntimeError, match=f"{name} was written to while in use"):
            column.check_unchanged()
        os.utime(tmp_path / name, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        (tmp_path / name).rename(tmp_path / "gone")
        with pytest.raises(RuntimeError, match=f"{name} was removed while in use"):
            column.check_unchanged()
        with pytest.raises(FileNotFoundError, match=f"'/?rows' of .* has rows in .*{name}, and"):
            open_hdf5(path, "rows")
        (tmp_path / "gone").rename(tmp_path / name)


@pytest.mark.parametrize("name", ["first", "second"])
def test_an_external_file_that_is_short_is_named(name: str, tmp_path: Path) -> None:
    write_external(tmp_path)
    os.truncate(tmp_path / name, 27)
    with pytest.raises(ValueError, match=f"{name} was cut short: .* first 28 bytes, and it has 27"):
        open_hdf5(tmp_path / "data.h5", "rows")


@pytest.mark.parametrize(("origin", "where"), [("", "raw"), ("${ORIGIN}", "x/raw")])
def test_an_external_file_is_looked_for_where_hdf5_does(
    origin: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path)
    with h5py.File("x/data.h5", "w") as file:
        file.create_dataset("rows", data=ROWS, external=[("raw", 0, ROWS.nbytes)])
    (tmp_path / "raw").rename(tmp_path / where)
    monkeypatch.setenv("HDF5_EXTFILE_PREFIX", origin)
    column = open_hdf5("x/data.h5", "rows")
    assert column.files[1].path == tmp_path / where
    monkeypatch.chdir(tmp_path / "x")
    column.check_unchanged()  # a relative path holds when the folder changes


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other", r"source\.h5 has no dataset 'rows': it has 'other'"),
        ("rows", r"source\.h5 is \(3, 3\), smaller than what .* takes from it: write it again"),
    ],
)
def test_a_source_that_cannot_give_all_rows_is_named(
    name: str, message: str, tmp_path: Path
) -> None:
    path = write_virtual(tmp_path)
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file[name] = ROWS[:3]
    with pytest.raises(ValueError, match=message):
        open_hdf5(path, "rows")


@pytest.mark.parametrize(
    ("source", "rows", "message"),
    [
        (("source%b.h5", "rows", (1, 3)), 1, "any files named source%b.h5 rows, which cannot be"),
        (("source.h5", "rows%b", (1, 3)), 1, "any files named source.h5 rows%b, which cannot be"),
        (("source.h5", "rows", (4, 3), None, (None, 3)), ENDLESS, "grows with its sources, which"),
    ],
)
def test_a_dataset_of_any_number_of_sources_is_refused(
    source: Any, rows: int, message: str, tmp_path: Path
) -> None:
    for name in ("source.h5", "source0.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            file.create_dataset("rows", chunks=(2, 3), data=ROWS, maxshape=(None, 3))
            file["rows0"] = ROWS
    layout = h5py.VirtualLayout((4, 3), "f4", maxshape=(None, 3))
    layout[:ENDLESS:2] = h5py.VirtualSource(*source)[:rows]
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file.create_virtual_dataset("rows", layout)
    with pytest.raises(ValueError, match=message):
        open_hdf5(tmp_path / "data.h5", "rows")


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EACCES, "change its permissions"),
        (errno.ESTALE, "the file server has replaced it"),
        (errno.EIO, "copy it to another disk"),
    ],
)
def test_an_error_of_the_system_at_any_time_has_a_cause_and_a_next_step(
    number: int, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_npy(path := tmp_path / "rows.npy")
    column = open_npy(path)
    message = rf"rows\.npy cannot be read \(.*\): {advice}"
    for ask in (column.check_unchanged, lambda: open_npy(path), lambda: fingerprint(path)):
        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", refusal(number))
            patch.setattr(Path, "stat", refusal(number))
            with pytest.raises(OSError, match=message):
                ask()


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: os.truncate(path, 100), "shrank from 176 to 100 bytes while in use"),
        (lambda path: os.truncate(path, 200), "grew from 176 to 200 bytes while in use"),
        (replace, "was replaced by another file while in use"),
        (lambda path: os.utime(path, ns=(1, 1)), "was written to while in use"),
        (Path.unlink, "was removed while in use: make the reader again"),
    ],
)
def test_a_change_of_the_file_is_noticed_and_named(
    change: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    write_npy(path := tmp_path / "rows.npy")
    column = open_npy(path)
    column.check_unchanged()
    change(path)
    with pytest.raises(RuntimeError, match=f"{re.escape(str(path))} {message}"):
        column.check_unchanged()


def test_an_open_file_has_the_identity_of_its_path(tmp_path: Path) -> None:
    write_npy(tmp_path / "rows.npy")
    column = open_npy(tmp_path / "rows.npy")
    with column.path.open("rb") as file:
        replace(column.path)
        column.check_unchanged(file.fileno())
        with pytest.raises(RuntimeError, match="was replaced"):
            column.check_unchanged()


def test_a_new_inode_or_link_of_the_same_file_is_no_change(tmp_path: Path) -> None:
    write_npy(path := tmp_path / "rows.npy")
    noted, stat = open_npy(path), path.stat()
    replace(path)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_ino != stat.st_ino
    noted.check_unchanged()
    path.chmod(0o400)
    noted.check_unchanged()
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(RuntimeError, match="was replaced by another file"):
        noted.check_unchanged()


@pytest.mark.parametrize(("age", "waits"), [(0, 1), (19_000_000, 1), (20_000_000, 0), (-1, 0)])
def test_a_file_is_noted_only_when_the_next_write_would_have_another_time(
    age: int, waits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_npy(tmp_path / "rows.npy")
    now, slept = (tmp_path / "rows.npy").stat().st_ctime_ns + age, list[float]()
    monkeypatch.setattr(time, "time_ns", lambda: now)
    monkeypatch.setattr(time, "sleep", slept.append)
    open_npy(tmp_path / "rows.npy")
    assert slept == [0.02] * waits


def test_a_fingerprint_is_of_what_the_file_holds(tmp_path: Path) -> None:
    found = set()
    for content in (bytes(100_000), bytes(100_001), b"x" + bytes(99_999)):
        (tmp_path / "rows").write_bytes(content)
        found.add(noted := fingerprint(tmp_path / "rows"))
        replace(tmp_path / "rows")
        assert fingerprint(tmp_path / "rows") == noted
    assert len(found) == 3


def test_labels_are_in_another_file_or_in_the_same_one_by_their_name(tmp_path: Path) -> None:
    write_npy(npy := tmp_path / "rows.npy")
    write_hdf5(hdf5 := tmp_path / "data")  # the ending tells the format
    for rows, labels, names in ((npy, hdf5, ""), (hdf5, None, "rows")):
        pair = open_columns(rows, "rows", labels, "inside/labels")
        assert [(column.name, column.rows) for column in pair] == [(names, 4), ("inside/labels", 4)]
    assert len(open_columns(hdf5, "packed", None, None)) == 1
    with pytest.raises(ValueError, match=r"rows\.npy is one array: pass the labels_path"):
        open_columns(npy, "rows", None, "labels")
    write_npy(npy, np.arange(5))
    with pytest.raises(ValueError, match=r"data has 4 rows, and .*rows\.npy 5 labels: pass the"):
        open_columns(hdf5, "rows", npy, "ignored")
