"""Mixes: read the blocks of one mix with several threads while the mix before is handed out.

Each mix has threads of its own, and they end with its last block. So there is nothing to shut down:
whether a consumer raises, forgets its iterator or ends the process, no thread outlives its mix.
"""

import math
import threading
import zlib
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack
from itertools import accumulate

import numpy as np

from helpers.reading.block_order import Mix, Run
from helpers.reading.block_reads import Chunks, Read, Rows, find_chunks, open_rows
from helpers.reading.columns import Column
from helpers.reading.raw_files import Bytes, make_rooms

_ALIGNMENT = 64  # bytes, as torch has it


def read_mixes(
    mixes: Iterable[Mix],
    columns: Sequence[Column],
    mix_rows: int,
    *,
    threads: int,
    past_cache: bool | None = None,
) -> Generator[tuple[Mix, list[Rows]]]:
    """Yield each mix with its rows of each column, in buffers that the mix after the next reuses.

    There are two sets of buffers, each with room for `mix_rows` rows.
    """
    sources = [(column, find_chunks(column, past_cache)) for column in columns]
    buffers = [[make_room(column, mix_rows) for column in columns] for _ in range(2)]
    rooms = make_rooms(threads)
    coming = None
    try:
        for number, mix in enumerate(mixes):
            if coming:
                coming.wait()
            ready, coming = coming, _Reading(mix, sources, buffers[number % 2], rooms)
            if ready:
                yield ready.mix, ready.buffers
        if coming:
            coming.wait()
            yield coming.mix, coming.buffers
    finally:
        if coming:
            coming.cancel()


def copy_rows(
    mixes: Generator[tuple[Mix, list[Rows]]], targets: Iterable[list[Rows]]
) -> Generator[list[Rows]]:
    """Fill one list of arrays after the other, an array for each column, and yield it."""
    picks, buffers = np.empty(0, np.int64), list[Rows]()
    for target in targets:
        done, size = 0, len(target[0])
        while done < size:
            if not len(picks):
                (_, picks), buffers = next(mixes)
            now, picks = picks[: size - done], picks[size - done :]
            for rows, buffer in zip(target, buffers, strict=True):
                part = rows[done : done + len(now)]
                np.take(buffer, now, axis=0, out=part, mode="clip")  # "clip" spares a copy
            done += len(now)
        yield target


def make_room(column: Column, *shape: int) -> Rows:
    """Return an empty array of rows, aligned for reading into it and for vector instructions.

    Aligned here: glibc's own way to do it leaves holes that the next batch does not fit into.
    """
    shape += column.header.shape[1:]
    size = math.prod(shape) * column.header.dtype.itemsize
    room = np.empty(size + _ALIGNMENT, np.uint8)
    first = -room.__array_interface__["data"][0] % _ALIGNMENT
    return room[first : first + size].view(column.header.dtype).reshape(shape)


class _Reading:
    """A mix on its way from the file into its buffers."""

    def __init__(
        self,
        mix: Mix,
        sources: Sequence[tuple[Column, Chunks | None]],
        buffers: list[Rows],
        rooms: Sequence[Bytes],
    ) -> None:
        self.mix = mix
        self.buffers = buffers
        self._sources = sources
        offsets = accumulate((stop - start for start, stop in mix.runs), initial=0)
        self._left = deque(zip(mix.runs, offsets, strict=False))
        self._errors: list[Exception] = []
        self._threads = [
            threading.Thread(target=self._work, args=[room], name="reader of a mix")
            for room in rooms[: len(mix.runs)]
        ]
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Wait for the last block, and raise what a thread has met."""
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors.pop()

    def cancel(self) -> None:
        """Read no further; afterwards no thread writes into the buffers."""
        self._left.clear()
        for thread in self._threads:
            thread.join()

    def _work(self, room: Bytes) -> None:
        try:
            with ExitStack() as files:
                reads = [files.enter_context(open_rows(*source, room)) for source in self._sources]
                while block := self._next_block():
                    self._read(reads, *block)
        except Exception as error:  # noqa: BLE001  # raised again where the rows are wanted
            self._errors.append(error)
            self._left.clear()

    def _next_block(self) -> tuple[Run, int] | None:
        try:
            return self._left.popleft()
        except IndexError:  # asking first would not do: another thread may take the last
            return None

    def _read(self, reads: Sequence[Read], run: Run, offset: int) -> None:
        start, stop = run
        for (column, _), read, buffer in zip(self._sources, reads, self.buffers, strict=True):
            try:
                read(start, buffer[offset : offset + stop - start])
            except (OSError, zlib.error) as error:
                raise OSError(
                    f"rows {start:,} to {stop - 1:,} of {column.path} cannot be read ({error}): "
                    "check the disk, or write the file again"
                ) from error
