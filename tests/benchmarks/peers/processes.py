"""Who runs where: the environment, the memory group and the process of each measurement."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helpers.budget import Group, make_group

from .environments import find_python
from .launch import Child, ChildError
from .records import Contestant


class Processes:
    """Starts a fresh process for each measurement, or keeps one for a whole smoke test."""

    def __init__(self, homes: Path, environments: Path, *, keep: bool) -> None:
        self._homes, self._environments, self._keep = homes, environments, keep
        self._kept: dict[str, Child] = {}

    def close(self) -> None:
        """End the processes that were kept."""
        for child in self._kept.values():
            child.end()
        self._kept.clear()

    @contextmanager
    def open(self, contestant: Contestant, limit_bytes: int | None = None) -> Iterator[Child]:
        """Lend a process, inside a kernel memory limit if there is one to hold."""
        if self._keep:
            if contestant.environment not in self._kept:
                self._kept[contestant.environment] = self._start(contestant, None)
            yield self._kept[contestant.environment]
            return
        with _group(limit_bytes) as group:
            child = self._start(contestant, group)
            try:
                yield child
            finally:
                child.end()

    def _start(self, contestant: Contestant, group: Group | None) -> Child:
        python = find_python(contestant.environment, self._environments)
        return Child(python, self._homes / contestant.name, group)


@contextmanager
def _group(limit_bytes: int | None) -> Iterator[Group | None]:
    if limit_bytes is None:
        yield None
        return
    group = make_group()
    if group is None:
        raise ChildError("no memory group can be made here, so the kernel holds no limit")
    try:
        group.set_limit(limit_bytes)
        yield group
    finally:
        group.remove()
