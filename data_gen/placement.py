"""Finished files that belong together are put in place together, also where a kill comes between.

Each file is written to a hidden folder beside its target, on the same disk. Then all are renamed.
A plan in the first target's folder says which they are, until the last has arrived: so the next
start knows which half to take away.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from data_gen.paths import LOCK, MAKING
from helpers.running.interrupts import interrupts_held
from helpers.system.locks import wait_for_lock

_PLAN = "plan.json"


def unfinished(target: Path) -> Path:
    """Return where the file for `target` is written, in a hidden folder of its own."""
    return _folder(target) / target.name


@contextmanager
def placing(targets: Sequence[Path]) -> Iterator[None]:
    """Hold the targets for this process alone, and their hidden folders empty before and after.

    What a killed process has left of these targets is taken away first: its unfinished files, and
    those that had arrived without the others.
    """
    with ExitStack() as stack:
        for target in sorted({*targets}):  # all in one order, so that two never wait for another
            stack.enter_context(wait_for_lock(target.with_name(f".{target.name}{LOCK}")))
        _take_back(targets)
        try:
            for target in targets:
                _folder(target).mkdir()
            yield
        finally:
            with interrupts_held():
                _clear(targets)


def take_back_half(targets: Sequence[Path]) -> None:
    """Take away what a killed process has put in place of these targets without the others."""
    if (_folder(targets[0]) / _PLAN).exists():
        with placing(targets):
            pass


def place(targets: Sequence[Path]) -> None:
    """Rename the finished files to their targets, the first one last. Old ones go before.

    So a first target that is there has the others with it.
    """
    plan = {str(target): _identity(unfinished(target)) for target in targets}
    with interrupts_held():
        (_folder(targets[0]) / _PLAN).write_text(json.dumps(plan), "utf-8")
        for target in targets:
            target.unlink(missing_ok=True)
        for target in reversed(targets):
            unfinished(target).replace(target)


def _take_back(targets: Sequence[Path]) -> None:
    try:
        plan = json.loads((_folder(targets[0]) / _PLAN).read_text("utf-8"))
        arrived = {path for path in targets if path.exists() and plan[str(path)] == _identity(path)}
    except (OSError, ValueError, KeyError, TypeError):  # no plan, or not a whole one: none arrived
        arrived = set()
    if targets[0] not in arrived:
        for path in arrived:
            path.unlink()
    _clear(targets)


def _clear(targets: Sequence[Path]) -> None:
    for target in reversed(targets):  # the plan last
        shutil.rmtree(_folder(target), ignore_errors=True)


def _folder(target: Path) -> Path:
    return target.with_name(f".{target.name}{MAKING}")


def _identity(path: Path) -> list[int]:
    """Return what stays with a file when it is renamed: two files have not the same."""
    found = path.stat()
    return [found.st_ino, found.st_size, found.st_mtime_ns]
