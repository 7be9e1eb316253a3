"""Tables, shards and logs: whole or not there, and every row as it was made."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data_gen import (
    GeneratedData,
    append_log,
    ensure,
    record_type,
    streams,
    write_shards,
    write_table,
)


@pytest.fixture
def data(tmp_path: Path) -> GeneratedData:
    return ensure("npy", tmp_path / "data", rows=1000, order="sorted", progress=False)


def test_a_table_holds_every_row_in_order(data: GeneratedData, tmp_path: Path) -> None:
    path = write_table(data, tmp_path / "new folder" / "samples.db")
    with closing(sqlite3.connect(path)) as table:
        ids, labels, rows = zip(*table.execute("SELECT id, label, row FROM samples"), strict=True)
    assert list(ids) == list(range(1000))
    assert np.array_equal(labels, data.expected_labels(range(1000)))
    assert data.count_wrong(np.frombuffer(b"".join(rows), np.float32), range(1000)) == 0


def test_shards_hold_every_row_in_order(data: GeneratedData, tmp_path: Path) -> None:
    shards = [np.load(path, mmap_mode="r") for path in write_shards(data, tmp_path / "s", shards=7)]
    assert len(shards) == 7
    whole = np.concatenate(shards)
    assert np.array_equal(whole["label"], data.expected_labels(range(1000)))
    assert data.count_wrong(whole["row"], range(1000)) == 0


def test_a_log_ends_with_every_row_and_grows_in_parts_of_records(
    data: GeneratedData, tmp_path: Path
) -> None:
    append_log(data, tmp_path / "log", seconds=0)
    content = np.fromfile(tmp_path / "log", record_type(data))
    assert data.count_wrong(content["row"], range(1000)) == 0
    assert streams._PIECE_BYTES % record_type(data).itemsize


def test_what_is_there_is_left_and_other_data_makes_it_anew(
    data: GeneratedData, tmp_path: Path
) -> None:
    other = ensure("npy", tmp_path / "other", rows=900, seed=1, progress=False)
    table, shards = tmp_path / "samples.db", tmp_path / "shards"
    for each, rows in ((data, 1000), (data, 1000), (other, 900)):
        before = table.stat().st_mtime_ns if table.exists() else 0
        write_table(each, table)
        paths = write_shards(each, shards, shards=3)
        assert sum(len(np.load(path)) for path in paths) == rows
        with closing(sqlite3.connect(table)) as opened:
            assert opened.execute("SELECT count(*) FROM samples").fetchone() == (rows,)
        assert before in (0, table.stat().st_mtime_ns) or rows == 900
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "data",
        "other",
        "samples.db",
        "shards",
    ]


def test_what_is_not_ours_is_refused_and_kept(data: GeneratedData, tmp_path: Path) -> None:
    (tmp_path / "mine.db").write_text("precious")
    (tmp_path / "mine").mkdir()
    with pytest.raises(FileExistsError, match=r"mine\.db was not made by data_gen: pass another"):
        write_table(data, tmp_path / "mine.db")
    with pytest.raises(FileExistsError, match="mine was not made by data_gen"):
        write_shards(data, tmp_path / "mine")
    assert (tmp_path / "mine.db").read_text() == "precious"


@pytest.mark.parametrize(("shards", "said"), [(0, "shards=0: pass 1 to"), (1001, "1001: pass 1")])
def test_a_number_of_shards_that_cannot_be_is_refused(
    data: GeneratedData, tmp_path: Path, shards: int, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        write_shards(data, tmp_path / "shards", shards=shards)


@pytest.mark.parametrize("kind", ["table", "shards"])
def test_a_killed_writer_leaves_nothing_that_is_taken_for_whole(tmp_path: Path, kind: str) -> None:
    write: Any = {"table": write_table, "shards": write_shards}[kind]
    code = (
        "import sys, data_gen; data = data_gen.ensure('npy', sys.argv[1], rows=100_000);"
        f"data_gen.write_{kind}(data, sys.argv[2])"
    )
    data = ensure("npy", tmp_path / "data", rows=100_000, progress=False)
    target = tmp_path / "target"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "data"), str(target)]
    ) as made:
        while not list(tmp_path.glob(".target*making")):
            time.sleep(0.001)
            assert made.poll() is None
        made.kill()
    assert not target.exists()
    write(data, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "target"]
