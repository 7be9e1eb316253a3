"""The command line makes what `ensure` makes, and says in one line what is wrong."""

import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from data_gen import Recipe
from data_gen.__main__ import main


def test_it_makes_npy_as_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--size=1MiB", "--shape=64,64", "--seed=3", "--classes=5", "--order=sorted"]
    assert main(["npy", str(tmp_path), *asked]) == 0
    said = capsys.readouterr()
    path = tmp_path / "spectrograms-sorted.npy"
    what = "64 rows of 64 x 64 float32, 1 MiB, 5 classes, labels in order, seed 3"
    assert said.out.splitlines() == [f"{path.name}: {what}", str(path)]
    assert "100%" in said.err
    recipe = Recipe(64, (64, 64), seed=3, classes=5, order="sorted")
    assert recipe.count_wrong(np.load(path), range(64)) == 0


def test_it_makes_hdf5_with_chunks_and_compression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = ["--chunks", "512,128", "--compression", "gzip:4", "--jobs", "2", "--quiet"]
    assert main(["hdf5", str(tmp_path), "--rows", "2000", *layout]) == 0
    assert capsys.readouterr().err == ""
    with h5py.File(tmp_path / "features-chunks512x128-gzip4.h5") as file:
        assert (file["rows"].chunks, file["rows"].compression_opts) == ((512, 128), 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["csv", "x", "--rows", "5"], "csv"),
        (["npy", "x"], "--rows --size"),
        (["npy", "x", "--rows", "5", "--size", "5"], "not allowed with"),
        (["npy", "x", "--rows", "many"], "many"),
        (["npy", "x", "--rows", "5", "--shape", "a"], "--shape 'a'"),
        (["npy", "file", "--rows", "5"], "cannot be written"),
    ],
)
def test_bad_input_ends_with_one_line_and_status_2(
    tmp_path: Path,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        sys.exit(main(arguments))
    out, said = capsys.readouterr()
    assert out == ""
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert message in said
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_help_shows_every_option_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    said = capsys.readouterr().out
    for word in ("--rows", "--size", "--shape", "--seed", "--chunks", "--compression", "--jobs"):
        assert word in said
    assert "python -m data_gen hdf5 data --size 1GiB" in said
