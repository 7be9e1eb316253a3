"""Mixes: read the blocks of one mix with several threads, while the mix before is handed out.

A mix has threads of its own, which end with its last block. So nothing has to be shut down: a
consumer may raise, forget its iterator or end the process, and no thread outlives its mix.
"""

import threading
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helpers.block_order import MixOrder
from helpers.columns import Column, Layout

Buffers = Sequence[NDArray[Any]]  # one for each column: the rows of a mix


def read_mixes(
    orders: Iterator[MixOrder], columns: Sequence[Column], mix_rows: int, threads: int
) -> Iterator[tuple[MixOrder, Buffers]]:
    """Yield each mix with its rows, valid until the next is asked for. Memory: two mixes."""
    layouts = [column.lay_out() for column in columns]
    halves = [[_make_buffer(column, mix_rows) for column in columns] for _ in range(2)]
    coming: _Reading | None = None
    try:
        for number, order in enumerate(orders):
            ready, coming = coming, None
            if ready:
                ready.wait()
            coming = _Reading(order, layouts, halves[number % 2], threads)
            if ready:
                yield ready.order, ready.buffers
        if coming:
            coming.wait()
            yield coming.order, coming.buffers
    finally:
        if coming:
            coming.cancel()
