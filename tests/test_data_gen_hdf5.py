"""HDF5 files hold the same rows in every layout, and each layout has its own file."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from data_gen import GeneratedData, Recipe, ensure
from data_gen.hdf5 import write_hdf5
from data_gen.layouts import Layout


def make(folder: Path, **changes: Any) -> GeneratedData:
    return ensure("hdf5", folder, **{"rows": 1003, "progress": False} | changes)


LAYOUTS = [
    ((128,), None, None, "features-contiguous.h5"),
    ((128,), (512, 128), None, "features-chunks512x128.h5"),
    ((128,), (512, 128), "gzip:4", "features-chunks512x128-gzip4.h5"),
    ((128,), (100, 50), "gzip:0", "features-chunks100x50-gzip0.h5"),
    ((128,), (1003, 1), "gzip", "features-chunks1003x1-gzip4.h5"),
    ((128,), (64, 128), "lzf", "features-chunks64x128-lzf.h5"),
    ((16, 16), (16, 16, 16), "gzip:1", "spectrograms-chunks16x16x16-gzip1.h5"),
    ((16, 16), (500, 3, 9), None, "spectrograms-chunks500x3x9.h5"),
    ((16, 16), (1, 16, 10), "none", "spectrograms-chunks1x16x10.h5"),
]


@pytest.mark.parametrize(("shape", "chunks", "compression", "name"), LAYOUTS)
@pytest.mark.parametrize("jobs", [1, 2])
def test_every_layout_holds_the_right_rows_and_labels(
    tmp_path: Path,
    shape: tuple[int, ...],
    chunks: tuple[int, ...] | None,
    compression: str | None,
    name: str,
    jobs: int,
) -> None:
    made = make(
        tmp_path, row_shape=shape, chunks=chunks, compression=compression, seed=2, jobs=jobs
    )
    assert made.rows_path == made.labels_path == tmp_path / name
    with h5py.File(made.rows_path) as file:
        rows, labels = file["rows"], file["labels"]
        assert rows.chunks == chunks
        assert rows.compression == (
            None if compression in (None, "none") else compression[:4].rstrip(":")
        )
        assert (rows.dtype, labels.dtype) == (np.float32, np.int64)
        assert made.count_wrong(rows[:], range(1003)) == 0
        assert np.array_equal(labels[:], made.expected_labels(range(1003)))


def test_rows_are_those_of_npy(tmp_path: Path) -> None:
    npy = ensure("npy", tmp_path, rows=100, progress=False)
    with h5py.File(make(tmp_path, rows=100, chunks=(7, 5)).rows_path) as file:
        assert np.array_equal(file["rows"][:], np.load(npy.rows_path))


def test_pieces_too_large_for_memory_are_made_in_several_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("data_gen.pieces._PIECE_BYTES", 1 << 14)
    monkeypatch.setattr("data_gen.pieces.BLOCK_BYTES", 1 << 13)
    recipe, layout = Recipe(1003), Layout("hdf5", (500, 10), "gzip", 1)
    write_hdf5(tmp_path / "rows.h5", recipe, layout, jobs=1, tick=lambda _: None)
    with h5py.File(tmp_path / "rows.h5") as file:
        assert recipe.count_wrong(file["rows"][:], range(1003)) == 0


def test_compressed_data_without_chunks_gets_those_that_h5py_picks(tmp_path: Path) -> None:
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        picked = file.create_dataset("x", (1003, 16, 16), "f4", chunks=True).chunks
    for changes in ({"compression": "lzf"}, {"chunks": "auto"}):
        made = make(tmp_path, row_shape=(16, 16), **changes)
        with h5py.File(made.rows_path) as file:
            assert file["rows"].chunks == picked


def test_chunks_may_be_written_as_text(tmp_path: Path) -> None:
    made = make(tmp_path, chunks="512,128")
    assert made.rows_path.name == "features-chunks512x128.h5"
    assert make(tmp_path, chunks=[512, 128]) == made


def test_variants_stand_side_by_side_and_are_found_again(tmp_path: Path) -> None:
    variants: list[dict[str, Any]] = [{}, {"chunks": (10, 128)}, {"compression": "gzip"}]
    made = [make(tmp_path, **variant) for variant in variants]
    times = [one.rows_path.stat().st_mtime_ns for one in made]
    assert [make(tmp_path, **variant) for variant in variants] == made
    assert [one.rows_path.stat().st_mtime_ns for one in made] == times


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chunks": (512,)}, r"chunks \(512,\) do not fit data of shape \(1003, 128\)"),
        ({"chunks": (512, 129)}, r"chunks \(512, 129\) do not fit"),
        ({"chunks": (1004, 128)}, r"chunks \(1004, 128\) do not fit"),
        ({"chunks": (0, 128)}, "do not fit"),
        ({"chunks": (2.5, 128)}, "chunks=2.5: pass a whole number"),
        ({"chunks": 512}, "chunks=512: pass a shape"),
        ({"chunks": "a,b"}, "'a,b' is not a shape: write it as"),
        ({"rows": 40_000, "chunks": (40_000, 128)}, "takes 19.5 MiB: pass chunks of at most"),
        ({"compression": "zip"}, "compression 'zip' is unknown: pass 'none', 'lzf' or 'gzip:4'"),
        ({"compression": "gzip:10"}, "'gzip:10' is unknown"),
    ],
)
def test_layouts_that_do_not_fit_are_refused_before_any_work(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(tmp_path / "new", **changes)
    assert list(tmp_path.iterdir()) == []


def test_a_truncated_or_foreign_file_is_named(tmp_path: Path) -> None:
    made = make(tmp_path)
    size = made.rows_path.stat().st_size
    with made.rows_path.open("r+b") as file:
        file.truncate(size // 2)
    with pytest.raises(ValueError, match=r"features-contiguous\.h5 was changed or cut short"):
        make(tmp_path)
    made.rows_path.write_bytes(b"x" * size)
    with pytest.raises(ValueError, match=r"contiguous\.h5 was changed.*cannot be read"):
        make(tmp_path)
    (tmp_path / "features-contiguous.json").unlink()
    with pytest.raises(FileExistsError, match=r"contiguous\.h5 is in the way"):
        make(tmp_path)


def test_labels_of_another_length_or_missing_are_named(tmp_path: Path) -> None:
    made = make(tmp_path)
    description = tmp_path / "features-contiguous.json"
    for labels in (np.zeros(1002, np.int64), None):
        size = made.rows_path.stat().st_size
        with h5py.File(made.rows_path, "r+") as file:
            del file["labels"]
            if labels is not None:
                file["labels"] = labels
        # The size alone would tell: it is written down anew, so that the look inside has to.
        now = made.rows_path.stat().st_size
        description.write_text(description.read_text().replace(str(size), str(now)))
        with pytest.raises(ValueError, match=r"contiguous\.h5 was changed.*labels"):
            make(tmp_path)
