"""The streams that lesson 07 shows, where their source is damaged, locked or grows."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from notebook_tools import NOTEBOOKS, code_cells, python_source, read, tags

from data_gen import GeneratedData, ensure, write_shards, write_table
from helpers import ShuffleBuffer


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """What the lesson's %%importable cells define."""
    names: dict[str, Any] = {"__name__": "lesson"}
    for cell in code_cells(read(NOTEBOOKS / "07_ordered_stream.ipynb")):
        if "%%importable" in cell.source and not tags(cell) & {"exercise", "solution"}:
            exec(python_source(cell), names)
    return names


@pytest.fixture
def data(tmp_path: Path) -> GeneratedData:
    return ensure("npy", tmp_path / "data", rows=1000, order="sorted", progress=False)


@pytest.mark.parametrize("stream", ["ReadsTable", "MixesBlocks", "Resumes"])
def test_a_table_that_grows_meanwhile_is_written_and_read_as_it_was(
    shown: dict[str, Any], data: GeneratedData, tmp_path: Path, stream: str
) -> None:
    path = write_table(data, tmp_path / "samples.db")
    items = iter(shown[stream](path))
    taken = [next(items)]
    with closing(sqlite3.connect(path, timeout=0)) as writer, writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("INSERT INTO samples VALUES (1000, 0, ?)", (bytes(512),))
    taken += items
    assert sorted(item[2] for item in taken) == list(range(1000))
    assert len([*shown[stream](path)]) == 1001


def test_a_locked_table_is_an_error_and_not_an_empty_stream(
    shown: dict[str, Any], data: GeneratedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_table(data, tmp_path / "samples.db")
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path: real(path, timeout=0.05))
    with closing(real(path)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            next(iter(shown["ReadsTable"](path)))


def test_a_shard_that_is_damaged_in_mid_epoch_is_named_and_nothing_is_skipped(
    shown: dict[str, Any], data: GeneratedData, tmp_path: Path
) -> None:
    shards = write_shards(data, tmp_path / "shards", shards=4)
    shards[2].write_bytes(shards[2].read_bytes()[:5000])
    numbers, got = iter(shown["ReadsShards"](shards)), []
    with pytest.raises(OSError, match=r"shard-002\.npy is damaged .*: copy it again"):
        got.extend(numbers)
    assert got == list(range(500))


def test_a_buffer_larger_than_the_stream_shuffles_all_of_it_and_one_of_0_is_refused() -> None:
    assert sorted(ShuffleBuffer(range(10), 100)) == list(range(10))
    with pytest.raises(ValueError, match="buffer_size=0"):
        ShuffleBuffer(range(10), 0)


def test_a_log_is_followed_past_half_a_record(
    shown: dict[str, Any], data: GeneratedData, tmp_path: Path
) -> None:
    record = np.dtype([("id", np.int64)])
    path = tmp_path / "log"
    path.write_bytes(np.arange(3).tobytes()[:-2])
    items = iter(shown["FollowsLog"](path, record, patience=0.2))
    assert [next(items), next(items)] == [0, 1]
    with path.open("ab") as log:
        log.write(np.arange(3).tobytes()[-2:])
    assert list(items) == [2]
