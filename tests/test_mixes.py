import inspect
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.reading import raw_files
from helpers.reading.block_order import Mix
from helpers.reading.columns import Column, open_column
from helpers.reading.mixes import copy_rows, read_mixes

VALUES = np.arange(400, dtype=np.float32).reshape(100, 4)


@pytest.fixture
def column(tmp_path: Path) -> Column:
    np.save(tmp_path / "x.npy", VALUES)
    return open_column(tmp_path / "x.npy", "")


def mix(*starts: int) -> Mix:
    return Mix([(start, start + 10) for start in starts], np.arange(10 * len(starts))[::-1])


def test_a_mix_holds_its_runs_end_to_end(column: Column) -> None:
    mixes = read_mixes([mix(0, 50), mix(20), mix(90)], [column], 20, threads=3)
    found = [rows[0][: len(mix.picks)].copy() for mix, rows in mixes]
    np.testing.assert_array_equal(found[0], np.concatenate([VALUES[:10], VALUES[50:60]]))
    np.testing.assert_array_equal(found[1], VALUES[20:30])
    np.testing.assert_array_equal(found[2], VALUES[90:])


def test_rows_are_copied_in_the_order_of_the_picks_over_the_borders_of_mixes(
    column: Column,
) -> None:
    mixes = read_mixes([mix(0), mix(50)], [column], 10, threads=1)
    targets = [[np.empty((size, 4), np.float32)] for size in (3, 9, 8)]
    copied = [rows[0] for rows in copy_rows(mixes, targets)]
    wanted = np.concatenate([VALUES[:10][::-1], VALUES[50:60][::-1]])
    np.testing.assert_array_equal(np.concatenate(copied), wanted)
    assert [len(rows) for rows in copied] == [3, 9, 8]


def test_threads_read_at_the_same_time(column: Column, monkeypatch: pytest.MonkeyPatch) -> None:
    read, together = raw_files._read_bytes, threading.Barrier(3)

    def meet(file: Any, offset: int, into: Any) -> None:
        together.wait(60)
        read(file, offset, into)

    monkeypatch.setattr(raw_files, "_read_bytes", meet)
    assert len(list(read_mixes([mix(0, 10, 20)], [column], 30, threads=3))) == 1


def test_what_comes_next_is_read_while_a_mix_is_in_use_and_no_more(
    column: Column, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, seen = raw_files._read_bytes, []

    def note(file: Any, offset: int, into: Any) -> None:
        seen.append((offset - 128) // 16)
        read(file, offset, into)

    monkeypatch.setattr(raw_files, "_read_bytes", note)
    mixes = read_mixes([mix(0), mix(10), mix(20)], [column], 10, threads=1)
    next(mixes)
    for thread in threading.enumerate():
        if thread.name == "reader of a mix":
            thread.join()
    assert seen == [0, 10]
    mixes.close()


def test_a_closed_reading_leaves_out_what_was_not_begun(
    column: Column, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, seen = raw_files._read_bytes, []
    begun, closing = threading.Event(), threading.Event()

    def wait_in_the_second_mix(file: Any, offset: int, into: Any) -> None:
        read(file, offset, into)
        seen.append((offset - 128) // 16)
        if seen[-1] == 10:
            begun.set()
            closing.wait(60)

    monkeypatch.setattr(raw_files, "_read_bytes", wait_in_the_second_mix)
    mixes = read_mixes([mix(0), mix(10, 20, 30)], [column], 30, threads=1)
    next(mixes)
    begun.wait(60)
    reading = inspect.getgeneratorlocals(mixes)["coming"]
    closer = threading.Thread(target=mixes.close)
    closer.start()
    while reading._left:
        assert closer.is_alive()
    closing.set()
    closer.join(60)
    assert seen == [0, 10]
