"""Fill shuffle buffers: threads read the next one's rows while batches are made of this one."""

import os
import threading
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import accumulate

import numpy as np

from helpers.loaders.columns import Column, Rows
from helpers.loaders.order import Fill, RowRange
from helpers.loaders.raw_files import Bytes, make_bounce_buffers
from helpers.loaders.sources import Source, announce, named_rows, open_source

_ALIGNMENT = 64  # bytes, as torch has it
_THREAD_NAME = "reader of a fill"


def read_fills(
    fills: Iterable[tuple[Fill, list[Rows]]], sources: Sequence[Source], threads: int, ahead: int
) -> Generator[tuple[Fill, list[Rows]]]:
    """Read each fill into its buffers, one for each column, and yield both.

    As many fills `ahead` are being read meanwhile. When the generator is closed or forgotten, or
    its process ends, its threads end with the range that they are at.
    """
    process = os.getpid()
    free = deque(make_bounce_buffers(threads))
    stop = threading.Event()
    coming: deque[tuple[Fill, list[Rows], list[Future[None]]]] = deque()

    def take() -> tuple[Fill, list[Rows]]:
        fill, rows, readers = coming.popleft()
        for reader in readers:
            reader.result()  # raises what the thread has met
        for source in sources:
            source.column.check_unchanged()  # no row of the fill is of another time
        return fill, rows

    pool = ThreadPoolExecutor(threads, _THREAD_NAME)
    try:
        for fill, rows in fills:
            for source in sources:
                announce(source, fill.ranges)
            offsets = accumulate((last - first for first, last in fill.ranges), initial=0)
            left = deque(zip(fill.ranges, offsets, strict=False))
            work = partial(_read_ranges, left, sources, rows, free, stop)
            readers = [pool.submit(work) for _ in range(threads)]
            coming.append((fill, rows, readers))
            if len(coming) > ahead:
                yield take()
        while coming:
            yield take()
    finally:
        stop.set()
        # The garbage collector may run this in such a thread, and none can wait for itself. In a
        # forked process there are none.
        wait = not threading.current_thread().name.startswith(_THREAD_NAME)
        if os.getpid() == process:
            pool.shutdown(wait)


def make_buffer(column: Column, rows: int) -> Rows:
    """Return an empty array for so many rows, aligned: to read into others can be far slower."""
    size = rows * column.row_bytes
    room = np.empty(size + _ALIGNMENT, np.uint8)
    first = -room.__array_interface__["data"][0] % _ALIGNMENT
    return room[first : first + size].view(column.dtype).reshape(rows, *column.shape[1:])


def _read_ranges(
    left: deque[tuple[RowRange, int]],
    sources: Sequence[Source],
    buffers: list[Rows],
    free: deque[Bytes],
    stop: threading.Event,
) -> None:
    """Read ranges into their places in the buffers, until other threads have taken the last one."""
    with ExitStack() as files:
        bounce = free.pop()  # one is: no more of us run at a time than there are
        files.callback(free.append, bounce)
        reads = [files.enter_context(open_source(source, bounce)) for source in sources]
        while not stop.is_set():
            try:
                (first, last), offset = left.popleft()
            except IndexError:  # asking before would not do: another thread may take the last
                return
            for source, read, buffer in zip(sources, reads, buffers, strict=True):
                with named_rows(source.column, first, last - 1):
                    read(first, buffer[offset : offset + last - first])
