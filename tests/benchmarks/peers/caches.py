"""The page cache before a measurement: all pages of a file are there, or none, and it is checked."""

from collections.abc import Iterable
from pathlib import Path

from helpers.page_cache import evict, resident_bytes

from .records import Case

_READ_BYTES = 8 << 20
_ALL, _NONE = 0.99, 0.01  # shares of a file: a page may come or go while we look
_FEW_BYTES = 1 << 16  # in a small file a page is a large share


def set_cache(case: Case, files: Iterable[Path]) -> None:
    """Fetch or drop the pages of all files, or raise OSError where that does not hold."""
    for path in files:
        (_fetch if case.cache == "warm" else _drop)(path)


def _fetch(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(_READ_BYTES):
            pass
    here, size = resident_bytes(path), path.stat().st_size
    if here < _ALL * size - _FEW_BYTES:
        raise OSError(f"{path.name}: only {here / size:.0%} stayed in the page cache")


def _drop(path: Path) -> None:
    evict(path)
    here, size = resident_bytes(path), path.stat().st_size
    if here > _NONE * size + _FEW_BYTES:
        raise OSError(f"{path.name}: {here / size:.0%} stayed in the page cache")
