"""Streams of blocks into files, in constant memory. What the rows are is not known here."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

Tick = Callable[[int], object]  # told how many bytes have just been written

_FLUSH_BYTES = 1 << 25


def write_npy(
    path: Path, blocks: Iterable[NDArray[Any]], shape: tuple[int, ...], dtype: DTypeLike, tick: Tick
) -> None:
    """Write blocks of rows as one .npy array of `shape`, and see it on the disk.

    The disk is kept busy from the start, by a thread, instead of being waited for at the end.
    """
    header = {"descr": npy.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    flushing, unflushed = Future[None](), 0
    flushing.set_result(None)
    with path.open("wb") as file, ThreadPoolExecutor(1) as beside:
        npy.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block).data)
            tick(block.nbytes)
            unflushed += block.nbytes
            if unflushed >= _FLUSH_BYTES and flushing.done():
                flushing.result()  # a write error is reported once, to the first that asks
                flushing, unflushed = beside.submit(os.fsync, file.fileno()), 0
        flushing.result()
        file.flush()
        os.fsync(file.fileno())
