"""A ring of buffers in shared memory: DataLoader workers read fills into it, the loop copies out.

A message between processes takes as long whatever it holds, so it only says that the next fill is
there. Fill after fill goes into the buffers in turn.
"""

from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

import torch

from helpers.disk import free_bytes
from helpers.loaders.columns import Column, Rows
from helpers.units import format_bytes

Ring = list[list[torch.Tensor]]  # buffers for a fill, each with a tensor for each column


def make_ring(columns: Sequence[Column], rows: int, buffers: int) -> Ring:
    """Make room for so many fills of `rows`.

    Raises OSError where shared memory is too small: torch would find out in the middle.
    """
    needed = buffers * rows * sum(column.row_bytes for column in columns)
    folder = Path("/dev/shm")  # noqa: S108  # where Linux has it; no file of ours
    free = free_bytes(folder) if folder.is_dir() else needed
    if free < needed:
        raise OSError(
            f"workers need {format_bytes(needed)} of shared memory, and {folder} has "
            f"{format_bytes(free)} free: pass a smaller buffer_bytes, do without workers, or give "
            "the container more (--shm-size)"
        )
    return [[_share(column, rows) for column in columns] for _ in range(buffers)]


def as_arrays(ring: Ring) -> Iterator[list[Rows]]:
    """Yield the buffers in turn, without end."""
    return cycle([[tensor.numpy() for tensor in tensors] for tensors in ring])


def _share(column: Column, rows: int) -> torch.Tensor:
    # As torch's own collation does. `share_memory_` would first make the tensor, then copy it.
    storage = torch.UntypedStorage._new_shared(rows * column.row_bytes)  # type: ignore[no-untyped-call]
    return torch.empty(0, dtype=column.torch_dtype).set_(storage).view(rows, *column.shape[1:])
