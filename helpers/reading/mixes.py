"""Mixes: several threads read the runs of the next mix, while batches are made of this one."""

import threading
import zlib
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import accumulate

import numpy as np

from helpers.order import Mix, Run
from helpers.reading.columns import Column, Rows
from helpers.reading.raw_files import Bytes, make_bounce_buffers
from helpers.reading.runs import Source, announce, open_source

_ALIGNMENT = 64  # bytes, as torch has it


def read_mixes(
    mixes: Iterable[tuple[Mix, list[Rows]]], sources: Sequence[Source], threads: int, ahead: int
) -> Generator[tuple[Mix, list[Rows]]]:
    """Read each mix into its buffers, one for each column, and yield both.

    As many mixes `ahead` are being read meanwhile. When the generator is closed or forgotten, its
    threads end with the run that they are at. A process that ends waits until these mixes are read.
    """
    free = deque(make_bounce_buffers(threads))
    stop = threading.Event()
    coming: deque[tuple[Mix, list[Rows], list[Future[None]]]] = deque()

    def take() -> tuple[Mix, list[Rows]]:
        mix, rows, readers = coming.popleft()
        for reader in readers:
            reader.result()  # raises what the thread has met
        return mix, rows

    with ThreadPoolExecutor(threads, "reader of a mix") as pool:
        try:
            for mix, rows in mixes:
                for source in sources:
                    announce(source, mix.runs)
                offsets = accumulate((last - first for first, last in mix.runs), initial=0)
                left = deque(zip(mix.runs, offsets, strict=False))
                work = partial(_read_runs, left, sources, rows, free, stop)
                readers = [pool.submit(work) for _ in range(threads)]
                coming.append((mix, rows, readers))
                if len(coming) > ahead:
                    yield take()
            while coming:
                yield take()
        finally:
            stop.set()


def make_room(column: Column, rows: int) -> Rows:
    """Return an empty array for so many rows, aligned: to read into others can be far slower."""
    size = rows * column.row_bytes
    room = np.empty(size + _ALIGNMENT, np.uint8)
    first = -room.__array_interface__["data"][0] % _ALIGNMENT
    return room[first : first + size].view(column.dtype).reshape(rows, *column.shape[1:])


def _read_runs(
    left: deque[tuple[Run, int]],
    sources: Sequence[Source],
    buffers: list[Rows],
    free: deque[Bytes],
    stop: threading.Event,
) -> None:
    """Read runs into their places in the buffers, until other threads have taken the last one."""
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
                try:
                    read(first, buffer[offset : offset + last - first])
                except (OSError, zlib.error) as error:
                    raise OSError(
                        f"rows {first:,} to {last - 1:,} of {source.column.path} cannot be read "
                        f"({error}): check the disk, or write the file again"
                    ) from error
