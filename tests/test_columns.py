import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from helpers.loaders.columns import open_columns, open_hdf5, open_npy
from helpers.loaders.identity import fingerprint, identify

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


class Explodes:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("it was unpickled",)


def write_npy(path: Path, array: Any = ROWS, **how: Any) -> bytes:
    np.save(path, array, **how)
    return path.read_bytes()


def write_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["rows"] = ROWS
        file["inside/labels"] = np.arange(4)
        file.create_dataset("packed", data=ROWS, chunks=(2, 3), compression="gzip", shuffle=True)
        file.create_dataset("unwritten", (4, 3), "float32")
        file.create_dataset("empty", (0, 3), "float32")
        file["words"] = ["a", "b"]
        file["nothing"] = h5py.Empty("float32")
        file["swapped"] = ROWS.astype(">f4")


# .npy


def test_the_header_says_where_the_rows_lie(tmp_path: Path) -> None:
    content = write_npy(tmp_path / "rows.npy")
    column = open_npy(tmp_path / "rows.npy")
    assert (column.shape, column.dtype.str, column.row_bytes) == ((4, 3), "<f4", 12)
    assert (column.rows, column.chunks, column.chunk_rows, column.filters) == (4, None, 1, ())
    assert column.offset is not None
    second = content[column.offset + column.row_bytes :][: column.row_bytes]
    np.testing.assert_array_equal(np.frombuffer(second, np.float32), ROWS[1])


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_both_versions_of_a_header_are_read(version: tuple[int, int], tmp_path: Path) -> None:
    with (tmp_path / "rows.npy").open("wb") as file:
        np.lib.format.write_array(file, ROWS, version=version)
    assert open_npy(tmp_path / "rows.npy").shape == (4, 3)


def test_one_axis_is_rows_of_single_values_in_any_order(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.asfortranarray(np.arange(5)))
    assert open_npy(tmp_path / "labels.npy").row_bytes == 8


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.asfortranarray(ROWS), "Fortran order.*save np.ascontiguousarray"),
        (ROWS[:0], r"no rows to read, its shape is \(0, 3\)"),
        (ROWS[:, :0], r"no rows to read, its shape is \(4, 0\)"),
        (ROWS[0, 0], "single value: save an array of rows"),
        (ROWS.astype(">f4"), r"foreign order \(>f4\): save it in native order"),
        (np.zeros(3, "f4,f4"), "save an array of plain numbers"),
        (np.zeros(3, [("λ", "f4")]), r"version \(3, 0\): save a plain array"),
        (np.array(["a", "b"]), "dtype <U1: save an array of plain numbers"),
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


def test_python_objects_are_named_and_never_unpickled(tmp_path: Path) -> None:
    write_npy(tmp_path / "objects.npy", np.array([Explodes()], object), allow_pickle=True)
    with pytest.raises(ValueError, match="never unpickled here: save an array of numbers"):
        open_npy(tmp_path / "objects.npy")


def test_a_pickle_that_pretends_to_be_an_array_is_named_and_never_unpickled(tmp_path: Path) -> None:
    (tmp_path / "rows.npy").write_bytes(pickle.dumps(Explodes()))
    with pytest.raises(ValueError, match="a Python pickle, which is never opened here"):
        open_npy(tmp_path / "rows.npy")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda whole: whole[:-1], "was cut short: .* makes 176 bytes, and it has 175"),
        (lambda whole: whole + b"x", "something behind its end: .* 176 bytes, and it has 177"),
        (lambda whole: whole[:40], "damaged .npy header .*: write it again"),
        (lambda whole: whole.replace(b"'shape'", b"'shale'"), "damaged .npy header"),
        (lambda whole: whole.replace(b"(4, 3)", b"(4, {)"), "damaged .npy header"),
        (lambda whole: b"", "starts with b'': write it with np.save"),
        (lambda whole: b"1.0,2.0,3.0", "starts with b'1.0,2.': write it with np.save"),
        (lambda whole: b"\x89HDF\r\n\x1a\n", "an HDF5 file: read it with Hdf5Dataset"),
        (lambda whole: b"PK\x03\x04" + whole, "an .npz archive"),
    ],
)
def test_a_damaged_or_foreign_file_is_named(
    change: Callable[[bytes], bytes], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.npy"
    path.write_bytes(change(write_npy(path)))
    with pytest.raises(ValueError, match=message) as raised:
        open_npy(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("read", [open_npy, lambda path: open_hdf5(path, "rows")])
def test_a_missing_file_and_a_folder_are_named(
    read: Callable[[Path], object], tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file .*gone: check the path"):
        read(tmp_path / "gone")
    with pytest.raises(IsADirectoryError, match="is a folder: pass one file in it"):
        read(tmp_path)


# HDF5


def test_an_hdf5_column_tells_the_layout(tmp_path: Path) -> None:
    write_hdf5(tmp_path / "data.h5")
    rows = open_hdf5(tmp_path / "data.h5", "rows")
    assert (rows.shape, rows.dtype.str, rows.row_bytes) == ((4, 3), "<f4", 12)
    assert (rows.rows, rows.chunks, rows.chunk_rows, rows.filters) == (4, None, 1, ())
    assert rows.offset is not None
    found = (tmp_path / "data.h5").read_bytes()[rows.offset :][:48]
    assert found == ROWS.tobytes()
    packed = open_hdf5(tmp_path / "data.h5", "packed")
    assert (packed.chunks, packed.chunk_rows, packed.filters) == ((2, 3), 2, (2, 1))
    assert packed.offset is None
    assert open_hdf5(tmp_path / "data.h5", "unwritten").offset is None


def test_the_offset_counts_a_block_of_the_users_own(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "data.h5", "w", userblock_size=512) as file:
        file["rows"] = ROWS
    offset = open_hdf5(tmp_path / "data.h5", "rows").offset
    assert (tmp_path / "data.h5").read_bytes()[offset:][:48] == ROWS.tobytes()


def test_rows_in_another_file_have_no_offset(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "data.h5", "w") as file:
        external = [(str(tmp_path / "raw"), 0, ROWS.nbytes)]
        file.create_dataset("rows", data=ROWS, external=external)
    assert open_hdf5(tmp_path / "data.h5", "rows").offset is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone", "no dataset 'gone': it has .*'inside/labels'.* 'rows'"),
        ("inside", "no dataset 'inside': it has"),
        ("empty", r"dataset 'empty' of .* no rows to read, its shape is \(0, 3\)"),
        ("nothing", "dataset 'nothing' of .* single value"),
        ("words", "dataset 'words' of .* holds Python objects"),
        ("swapped", r"dataset 'swapped' of .* foreign order \(>f4\)"),
    ],
)
def test_a_dataset_that_will_not_do_is_named(name: str, message: str, tmp_path: Path) -> None:
    write_hdf5(tmp_path / "data.h5")
    with pytest.raises(ValueError, match=message):
        open_hdf5(tmp_path / "data.h5", name)


def test_a_link_into_another_file_is_named(tmp_path: Path) -> None:
    write_hdf5(tmp_path / "target.h5")
    with h5py.File(tmp_path / "links.h5", "w") as file:
        file["rows"] = h5py.ExternalLink(str(tmp_path / "target.h5"), "rows")
    with pytest.raises(
        ValueError, match=r"'rows' in .*links\.h5 is a link into .*target\.h5: pass"
    ):
        open_hdf5(tmp_path / "links.h5", "rows")


def test_numbers_that_hdf5_converts_are_named(tmp_path: Path) -> None:
    narrow = h5py.h5t.STD_I32LE.copy()
    narrow.set_precision(20)
    with h5py.File(tmp_path / "narrow.h5", "w") as file:
        space = h5py.h5s.create_simple((4, 3))
        h5py.h5d.create(file.id, b"rows", narrow, space).write(
            h5py.h5s.ALL, h5py.h5s.ALL, np.ones((4, 3), np.int32)
        )
    with pytest.raises(ValueError, match="converts to int32 while reading: save it as int32"):
        open_hdf5(tmp_path / "narrow.h5", "rows")


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f8", "c8", "c16"])
def test_every_type_of_numpys_numbers_is_taken(dtype: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["rows"] = np.ones((4, 3), dtype)
    assert open_hdf5(tmp_path / "x.h5", "rows").dtype == np.dtype(dtype)


def test_a_filter_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hdf5(tmp_path / "data.h5")
    monkeypatch.setattr(h5py.h5z, "filter_avail", lambda code: code != 1)
    with pytest.raises(ValueError, match=r"filter 1 \(deflate\).*install hdf5plugin and import"):
        open_hdf5(tmp_path / "data.h5", "packed")


@pytest.mark.parametrize("content", [b"", b"no HDF5", ROWS.tobytes()])
def test_a_foreign_file_is_no_hdf5(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "data.h5").write_bytes(content)
    with pytest.raises(ValueError, match=r"data.h5 cannot be read as HDF5 .*: close whatever"):
        open_hdf5(tmp_path / "data.h5", "rows")


def test_a_truncated_hdf5_file_is_named(tmp_path: Path) -> None:
    write_hdf5(tmp_path / "data.h5")
    os.truncate(tmp_path / "data.h5", (tmp_path / "data.h5").stat().st_size - 100)
    with pytest.raises(ValueError, match=r"data.h5 cannot be read as HDF5 \(.*truncated"):
        open_hdf5(tmp_path / "data.h5", "rows")


# Changes


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
    path = tmp_path / "rows.npy"
    write_npy(path)
    column = open_npy(path)
    column.check_unchanged()
    change(path)
    with pytest.raises(RuntimeError, match=message) as raised:
        column.check_unchanged()
    assert str(path) in str(raised.value)


def test_an_open_file_has_the_identity_of_its_path(tmp_path: Path) -> None:
    write_npy(tmp_path / "rows.npy")
    column = open_npy(tmp_path / "rows.npy")
    with column.path.open("rb") as file:
        assert identify(file.fileno()) == identify(column.path) == column.identity
        replace(column.path)
        column.check_unchanged(file.fileno())
        with pytest.raises(RuntimeError, match="was replaced"):
            column.check_unchanged()


def test_a_fingerprint_is_of_what_the_file_holds(tmp_path: Path) -> None:
    content = write_npy(tmp_path / "rows.npy")
    noted = fingerprint(tmp_path / "rows.npy")
    replace(tmp_path / "rows.npy")
    assert fingerprint(tmp_path / "rows.npy") == noted
    for other in (content[:-1] + b"x", content + bytes(1)):
        (tmp_path / "rows.npy").write_bytes(other)
        assert fingerprint(tmp_path / "rows.npy") != noted
    (tmp_path / "short").write_bytes(bytes(100_000))
    (tmp_path / "long").write_bytes(bytes(100_001))
    assert fingerprint(tmp_path / "short") != fingerprint(tmp_path / "long")


# Rows and their labels


def test_the_ending_of_a_name_tells_the_format(tmp_path: Path) -> None:
    write_npy(tmp_path / "rows.npy")
    write_hdf5(tmp_path / "data")
    pair = open_columns(tmp_path / "rows.npy", "rows", tmp_path / "data", "inside/labels")
    assert [(column.name, column.rows) for column in pair] == [("", 4), ("inside/labels", 4)]
    assert len(open_columns(tmp_path / "data", "packed", None, None)) == 1


def test_labels_of_other_rows_are_named(tmp_path: Path) -> None:
    write_npy(tmp_path / "labels.npy", np.arange(5))
    write_hdf5(tmp_path / "data")
    with pytest.raises(ValueError, match=r"data has 4 rows, and .*labels.npy 5 labels: pass the"):
        open_columns(tmp_path / "data", "rows", tmp_path / "labels.npy", "ignored")


def test_labels_of_the_same_file_are_found_by_their_name(tmp_path: Path) -> None:
    write_hdf5(tmp_path / "x.h5")
    rows, labels = open_columns(tmp_path / "x.h5", "rows", None, "inside/labels")
    assert (rows.name, labels.name, rows.path) == ("rows", "inside/labels", labels.path)
    np.save(tmp_path / "rows.npy", ROWS)
    with pytest.raises(ValueError, match=r"rows\.npy is one array: pass the labels_path"):
        open_columns(tmp_path / "rows.npy", "rows", None, "labels")
