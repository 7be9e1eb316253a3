"""HDF5 files hold the same rows in every layout, and each layout has its own file."""

import os
from collections.abc import Callable
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


LAYOUTS: list[tuple[tuple[int, ...], dict[str, Any], str]] = [
    ((128,), {}, "features-contiguous.h5"),
    ((128,), {"chunks": (512, 128)}, "features-chunks512x128.h5"),
    ((128,), {"chunks": "512,128"}, "features-chunks512x128.h5"),
    ((128,), {"chunks": [512, 128], "compression": "gzip:4"}, "features-chunks512x128-gzip4.h5"),
    ((128,), {"chunks": (100, 50), "compression": "gzip:0"}, "features-chunks100x50-gzip0.h5"),
    ((128,), {"chunks": (1003, 1), "compression": "gzip"}, "features-chunks1003x1-gzip4.h5"),
    ((128,), {"chunks": (64, 128), "compression": "lzf"}, "features-chunks64x128-lzf.h5"),
    (
        (16, 16),
        {"chunks": (16, 16, 16), "compression": "gzip:1"},
        "spectrograms-chunks16x16x16-gzip1.h5",
    ),
    ((16, 16), {"chunks": (500, 3, 9)}, "spectrograms-chunks500x3x9.h5"),
    ((16, 16), {"chunks": (1, 16, 10), "compression": "none"}, "spectrograms-chunks1x16x10.h5"),
]


@pytest.mark.parametrize(("shape", "layout", "name"), LAYOUTS)
@pytest.mark.parametrize("jobs", [1, 2])
def test_every_layout_holds_the_right_rows_and_labels_and_is_found_again(
    tmp_path: Path, shape: tuple[int, ...], layout: dict[str, Any], name: str, jobs: int
) -> None:
    made = make(tmp_path, row_shape=shape, seed=2, jobs=jobs, **layout)
    assert made.rows_path == made.labels_path == tmp_path / name
    with h5py.File(made.rows_path) as file:
        rows, labels = file["rows"], file["labels"]
        chunks = f"chunks{'x'.join(map(str, rows.chunks))}" if rows.chunks else "contiguous"
        level = f"-{rows.compression}{rows.compression_opts or 0}".replace("lzf0", "lzf")
        assert name.endswith(f"s-{chunks}{level if rows.compression else ''}.h5")
        assert (rows.dtype, labels.dtype) == (np.float32, np.int64)
        assert made.count_wrong(rows[:], range(1003)) == 0
        assert np.array_equal(labels[:], made.expected_labels(range(1003)))
    written = made.rows_path.stat().st_mtime_ns
    assert make(tmp_path, row_shape=shape, seed=2, **layout) == made
    assert made.rows_path.stat().st_mtime_ns == written


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


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def change_labels(path: Path, labels: int) -> None:
    description = path.with_suffix(".json")
    size = path.stat().st_size
    with h5py.File(path, "r+") as file:
        del file["labels"]
        if labels:
            file["labels"] = np.zeros(labels, np.int64)
    # The size alone would tell: it is written down anew, so that the look inside has to.
    now = path.stat().st_size
    description.write_text(description.read_text().replace(str(size), str(now)))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut_short, "bytes and was made with"),
        (lambda path: path.write_bytes(b"x" * path.stat().st_size), "cannot be read"),
        (lambda path: change_labels(path, 1002), r"labels of shape \(1002,"),
        (lambda path: change_labels(path, 0), "labels"),
    ],
)
def test_a_damaged_file_is_named(
    tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(make(tmp_path).rows_path)
    with pytest.raises(ValueError, match=rf"contiguous\.h5 was changed or cut short.*{message}"):
        make(tmp_path)
