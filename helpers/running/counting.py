"""Count what a batch holds. Whatever its class, counting does not break the loop."""

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

Answer = TypeVar("Answer")
_MOST = 2**50  # a larger count is no answer, and sums of it would not fit into the shared state
_ROWS = ("crow_indices", "col_indices", "values")
_COLUMNS = ("ccol_indices", "row_indices", "values")
_SPARSE_PARTS = {
    "torch.sparse_coo": ("_indices", "_values"),  # `indices` would first have to be coalesced
    "torch.sparse_csr": _ROWS,
    "torch.sparse_bsr": _ROWS,
    "torch.sparse_csc": _COLUMNS,
    "torch.sparse_bsc": _COLUMNS,
}


def count(batch: object) -> tuple[int, int]:
    """Return a batch's samples (the length of its first array) and the bytes of its arrays."""
    samples, data_bytes = told(lambda: _count(batch)) or (None, 0)
    return (1 if samples is None else samples), data_bytes


def told(ask: Callable[[], Answer]) -> Answer | None:
    """Return the answer of a foreign object, or None where asking it fails in any way."""
    try:
        return ask()
    except Exception:  # noqa: BLE001 - it may be of any class
        return None


def whole(ask: Callable[[], Any]) -> int | None:
    """Return a count that a foreign object tells, or None where it tells none."""
    number = told(lambda: operator.index(ask()))
    return number if number is not None and 0 <= number < _MOST else None


def above_zero(number: Any) -> float | None:
    """Return a number above zero, of whatever library, as Python's own; None for anything else."""
    value = None if isinstance(number, str) else told(lambda: float(number))
    return value if value is not None and value > 0 else None


def _count(batch: Any) -> tuple[int | None, int]:
    if told(lambda: batch.shape) is not None or told(lambda: batch.nbytes) is not None:
        samples = whole(lambda: batch.shape[0])
        if samples is None:  # a nested tensor has no shape
            samples = whole(lambda: batch.size(0))
        return samples, _array_bytes(batch)
    if isinstance(batch, (bytes, str)):
        return None, len(batch)
    parts: Iterable[Any] = ()
    if isinstance(batch, Mapping):
        parts = batch.values()
    elif isinstance(batch, (list, tuple)):
        parts = batch
    counted = [_count(part) for part in parts]
    data_bytes = sum(part_bytes for _, part_bytes in counted)
    if parts and all(isinstance(part, (bytes, str)) for part in parts):
        return len(counted), data_bytes  # collated strings
    return next((samples for samples, _ in counted if samples is not None), None), data_bytes


def _array_bytes(array: Any) -> int:
    """Return the bytes that an array holds. A sparse one's `nbytes` fails, or is a dense one's."""
    parts = _SPARSE_PARTS.get(str(told(lambda: array.layout)), ())
    if not parts:
        return whole(lambda: array.nbytes) or 0
    return whole(lambda: sum(getattr(array, part)().nbytes for part in parts)) or 0
