"""`check` compares every row and label with its right value, and names the first that are wrong."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from data_gen import Checked, GeneratedData, check, ensure
from data_gen.__main__ import main
from data_gen.comparison import Wrong

ROWS = 20_003
LAYOUTS: dict[str, dict[str, Any]] = {
    "npy": {"file_format": "npy"},
    "contiguous": {"file_format": "hdf5"},
    "tiles": {"file_format": "hdf5", "chunks": (100, 5)},
    "lzf": {"file_format": "hdf5", "chunks": (64, 16), "compression": "lzf"},
}


@pytest.fixture(params=LAYOUTS)
def data(request: pytest.FixtureRequest, tmp_path: Path) -> GeneratedData:
    layout = LAYOUTS[request.param]
    return ensure(folder=tmp_path, rows=ROWS, row_shape=(16,), progress=False, **layout)


def change(data: GeneratedData, what: str, where: list[int]) -> None:
    if data.rows_path.suffix == ".npy":
        values = np.load(data.rows_path if what == "rows" else data.labels_path, mmap_mode="r+")
        values[where, ...] += 1
        values.flush()
    else:
        with h5py.File(data.rows_path, "r+") as file:
            for index in where:
                file[what][index] += 1


def test_what_was_made_is_right(data: GeneratedData, capsys: pytest.CaptureFixture[str]) -> None:
    checked = check(data)
    assert checked == Checked(data, Wrong(), Wrong())
    assert checked.ok
    assert repr(checked) == f"{data.rows_path.name}: all 20,003 rows and labels are right"
    assert "100%" in capsys.readouterr().err


def test_wrong_rows_and_labels_that_ensure_does_not_look_at_are_counted_and_named(
    data: GeneratedData,
) -> None:
    wrong = [1, 63, 64, 3000, 4000, 9999, 20_001]
    change(data, "rows", wrong)
    change(data, "labels", wrong[:1])
    checked = check(data, progress=False)
    assert checked == Checked(data, Wrong(7, (1, 63, 64, 3000, 4000)), Wrong(1, (1,)))
    assert not checked.ok
    assert repr(checked) == (
        f"{data.rows_path.name}: 7 of 20,003 rows are wrong (first 1, 63, 64, 3,000, 4,000), "
        "1 of 20,003 labels are wrong (first 1): delete it and make it again"
    )


def test_what_cannot_be_read_is_wrong_and_the_rest_is_compared_all_the_same(tmp_path: Path) -> None:
    data = ensure("npy", tmp_path, rows=1000, progress=False)
    with data.rows_path.open("r+b") as file:
        file.truncate(data.rows_path.stat().st_size - 512 * 10)
    assert check(data, progress=False).rows == Wrong(10, (990, 991, 992, 993, 994))
    gzip: dict[str, Any] = {"chunks": (64, 128), "compression": "gzip:1"}
    packed = ensure("hdf5", tmp_path, rows=1000, progress=False, **gzip)
    with h5py.File(packed.rows_path) as file:
        offset = file["rows"].id.get_chunk_info(3).byte_offset
    with packed.rows_path.open("r+b") as raw:
        raw.seek(offset)
        raw.write(b"\xff" * 100)
    assert check(packed, progress=False).rows == Wrong(64, (192, 193, 194, 195, 196))


def test_a_file_that_holds_another_array_is_named(data: GeneratedData) -> None:
    other = GeneratedData(data.rows_path, data.labels_path, type(data.recipe)(ROWS, (8, 2)))
    with pytest.raises(ValueError, match=r"was changed .*\(rows of shape \(20003, 16\)"):
        check(other, progress=False)
    data.rows_path.unlink()
    with pytest.raises(FileNotFoundError, match=f"{data.rows_path.name} does not exist: make"):
        check(data, progress=False)


def test_the_command_checks_every_dataset_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [ensure(folder=tmp_path, rows=100, progress=False, **LAYOUTS[name]) for name in LAYOUTS]
    (tmp_path / "package.json").write_text("{}")
    assert main(["check", str(tmp_path), "--quiet"]) == 0
    right = [f"{data.rows_path.name}: all 100 rows and labels are right" for data in made]
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(right)
    change(made[0], "rows", [7])
    (tmp_path / "features-contiguous.json").write_text("{}")
    assert main(["check", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "features.npy: 1 of 100 rows are wrong (first 7)" in said.out
    assert right[3] in said.out, "one that cannot be checked keeps no other from being checked"
    assert "features-contiguous.json was not made by data_gen, or was changed" in said.err
    assert "check features.npy: 100%" in said.err


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("", "holds no description of data"),
        ("gone", "gone cannot be looked through (No such file or directory): make the data first"),
        ("file", "file cannot be looked through (Not a directory): correct the path"),
    ],
)
def test_where_there_is_nothing_to_check_the_command_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str, message: str
) -> None:
    (tmp_path / "file").touch()
    assert main(["check", str(tmp_path / folder)]) == 2
    assert message in capsys.readouterr().err
