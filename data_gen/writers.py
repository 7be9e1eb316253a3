"""Streams of blocks into files, in constant memory. What the rows are is not known here."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

Tick = Callable[[int], object]  # told how many bytes have just been written


def write_npy(
    path: Path, blocks: Iterable[NDArray[Any]], shape: tuple[int, ...], dtype: DTypeLike, tick: Tick
) -> None:
    """Write blocks of rows as one .npy array of `shape`, and see it on the disk."""
    header = {"descr": npy.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    with path.open("wb") as file:
        npy.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(memoryview(np.ascontiguousarray(block)).cast("B"))
            tick(block.nbytes)
        file.flush()
        os.fsync(file.fileno())
