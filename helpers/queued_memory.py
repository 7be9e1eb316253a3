"""The memory of the batches that workers have made ready: reckoned before it is measured."""

from typing import Any

from helpers.running.counting import count


def queued_bytes(batch: Any, *, num_workers: int, prefetch_factor: int = 2) -> int:
    """Return the bytes of the batches that wait in a DataLoader's queue, and of the one in hand.

    Each worker prepares `prefetch_factor` batches ahead, in shared memory. A batch is a tensor or
    array, or a list, tuple or dict of them, to any depth; strings and None count next to nothing.
    Without workers there is only the batch in hand. Raises ValueError for numbers that cannot be.
    """
    if num_workers < 0 or prefetch_factor < 1:
        raise ValueError(
            f"num_workers={num_workers}, prefetch_factor={prefetch_factor}: "
            "pass 0 or more workers, and 1 or more batches for each"
        )
    return (num_workers * prefetch_factor + 1) * count(batch)[1]
