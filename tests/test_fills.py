import inspect
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.loaders import raw_files
from helpers.loaders.columns import Column, Rows, open_npy
from helpers.loaders.fills import make_buffer, read_fills
from helpers.loaders.order import Fill
from helpers.loaders.sources import find_source

VALUES = np.arange(400, dtype=np.float32).reshape(100, 4)
Read = Callable[[Any, int, Any], None]


@pytest.fixture
def column(tmp_path: Path) -> Column:
    np.save(tmp_path / "x.npy", VALUES)
    return open_npy(tmp_path / "x.npy")


def fill(*starts: int, rows: int = 10) -> Fill:
    return Fill([(start, start + rows) for start in starts], [0, rows * len(starts)], (0,))


def reading(
    fills: list[Fill], column: Column, *, threads: int = 1, past_cache: bool = False
) -> Generator[tuple[Fill, list[Rows]]]:
    """Read each fill into buffers of its own, one ahead."""
    buffers = [[make_buffer(column, fill.edges[-1])] for fill in fills]
    source = find_source(column, fills[0].edges[-1], past_cache)
    assert source.past_cache == past_cache
    return read_fills(zip(fills, buffers, strict=True), [source], threads, ahead=1)


def watch(monkeypatch: pytest.MonkeyPatch, read: Callable[[int, Read, Any], None]) -> None:
    """Let the reading of a range go through `read`, which gets its first row."""
    really = raw_files._read_bytes

    def instead(file: Any, offset: int, into: Any) -> None:
        read((offset - 128) // 16, really, (file, offset, into))

    monkeypatch.setattr(raw_files, "_read_bytes", instead)


def test_threads_read_at_the_same_time(column: Column, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(3)

    def meet(row: int, read: Read, arguments: Any) -> None:
        together.wait(60)
        read(*arguments)

    watch(monkeypatch, meet)
    assert len(list(reading([fill(0, 10, 20)], column, threads=3))) == 1


def test_a_closed_reading_leaves_out_what_was_not_begun(
    column: Column, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, begun, closing = [], threading.Event(), threading.Event()

    def wait_in_the_second_fill(row: int, read: Read, arguments: Any) -> None:
        read(*arguments)
        seen.append(row)
        if row == 10:
            begun.set()
            closing.wait(60)

    watch(monkeypatch, wait_in_the_second_fill)
    fills = reading([fill(0), fill(10, 20, 30)], column)
    next(fills)
    assert begun.wait(60)
    stop = inspect.getgeneratorlocals(fills)["stop"]
    closer = threading.Thread(target=fills.close)
    closer.start()
    assert stop.wait(60)
    closing.set()
    closer.join(60)
    assert seen == [0, 10]


def test_threads_that_read_past_the_cache_never_share_a_bounce_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where one is still at a range of a fill while another has begun with the next fill."""
    values = np.arange(4 * 32768, dtype=np.float32).reshape(4, -1)
    np.save(tmp_path / "x.npy", values)
    column, read = open_npy(tmp_path / "x.npy"), raw_files._read_pages
    if not find_source(column, 1, past_cache=True).past_cache:
        pytest.skip("this file system has a page cache only")
    in_use, shared, begun = set[int](), list[int](), list[int]()
    next_fill, lock = threading.Event(), threading.Lock()

    def note(file: Any, bounce: Any, offset: int, into: Any) -> None:
        with lock:
            begun.append((offset - 128) // values[0].nbytes)
            shared.extend(in_use & {bounce.ctypes.data})
            in_use.add(bounce.ctypes.data)
        if begun[0] == (offset - 128) // values[0].nbytes:
            next_fill.wait(60)
        elif offset > values[:2].nbytes:
            next_fill.set()
        read(file, bounce, offset, into)
        with lock:
            in_use.discard(bounce.ctypes.data)

    fills = reading([fill(0, 1, rows=1), fill(2, 3, rows=1)], column, threads=2, past_cache=True)
    monkeypatch.setattr(raw_files, "_read_pages", note)
    np.testing.assert_array_equal(np.concatenate([rows for _, (rows,) in fills]), values)
    assert not shared
    assert next_fill.is_set()


def test_room_is_aligned_and_of_the_shape_of_the_rows(column: Column) -> None:
    for count in range(1, 5):
        room = make_buffer(column, count)
        assert (room.shape, room.dtype, room.ctypes.data % 64) == ((count, 4), column.dtype, 0)
