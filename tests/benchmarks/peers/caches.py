"""The page cache before a measurement: it holds all of a file or nothing of it, and is checked."""

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
        if case.cache == "warm":
            _fetch(path)
        else:
            evict(path)
        _check(path, wanted=case.cache == "warm")


def _fetch(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(_READ_BYTES):
            pass


def _check(path: Path, *, wanted: bool) -> None:
    here, size = resident_bytes(path), path.stat().st_size
    if here is None:
        raise OSError(f"{path.name}: this system does not tell what is in its page cache")
    if (here < _ALL * size - _FEW_BYTES) if wanted else (here > _NONE * size + _FEW_BYTES):
        raise OSError(
            f"{path.name}: {here / size:.0%} of it is in the page cache, it should be {wanted:.0%}"
        )
