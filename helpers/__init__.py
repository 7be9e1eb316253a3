"""The workshop's instruments. This file only re-exports; names load when they are first used.

A DataLoader worker that needs `track` must not pay for matplotlib, so nothing is imported here
until it is asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helpers.experiment import run as run
    from helpers.progress import track as track

_HOMES = {
    "run": "experiment",
    "track": "progress",
}

__all__ = ["run", "track"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"helpers has no {name!r}; it has {', '.join(sorted(_HOMES))}")
    return getattr(importlib.import_module(f"helpers.{_HOMES[name]}"), name)
