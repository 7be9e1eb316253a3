"""What a container costs where processes share it: its size, and what reading it copies.

    >>> read_in_a_fork(lambda: [f"photo_{i}.jpg" for i in range(1_000_000)])
    68.7 MiB, 99% of it copied by reading, 61 ns an item

Each container is made in a process of its own, forked from this one, so that no memory is used
again; one that is forked from there reads every item, as a DataLoader worker would. What is counted
is the anonymous memory of all these processes, in which a shared page counts once.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from typing import Any

from helpers.memory import anonymous_bytes
from helpers.units import format_bytes


@dataclass(frozen=True)
class ForkedRead:
    """A container in the process that made it, and what another one copied by reading it.

    `seconds_per_item` is of a second reading, when nothing is left to copy.
    """

    size_bytes: int
    copied_bytes: int
    seconds_per_item: float

    @property
    def copied_share(self) -> float:
        """Return the part of the container that reading it copied: 0 to about 1."""
        return self.copied_bytes / self.size_bytes if self.size_bytes > 0 else 0.0

    @property
    def size_words(self) -> str:
        """Return the size, never below zero."""
        return format_bytes(max(self.size_bytes, 0))

    @property
    def copied_words(self) -> str:
        """Return the part that was copied, in per cent, never below zero."""
        return f"{max(self.copied_share, 0):.0%}"

    @property
    def time_words(self) -> str:
        """Return the time of one access."""
        return f"{self.seconds_per_item * 1e9:,.0f} ns"

    def __repr__(self) -> str:
        copied = f"{self.copied_words} of it copied by reading"
        return f"{self.size_words}, {copied}, {self.time_words} an item"


def read_in_a_fork(make: Callable[[], Any]) -> ForkedRead:
    """Call `make` in a forked process, and read items 0, 1, 2 ... of what it returns in a second.

    `make()` returns a container with a length whose items are found by number, as in a list or an
    array. Raises TypeError for anything but a function, RuntimeError where there is no fork, and
    what `make` or the container raises.
    """
    if not callable(make):
        raise TypeError(
            f"read_in_a_fork got a {type(make).__name__}: pass a function that makes the "
            "container, as in read_in_a_fork(lambda: list(names))"
        )
    if "fork" not in get_all_start_methods():
        raise RuntimeError("this system has no fork: nothing is shared, and nothing can be copied")
    made: ForkedRead = _in_a_fork(_make_and_read, make, os.getpid())
    return made


def _make_and_read(make: Callable[[], Any], root: int) -> ForkedRead:
    before = _settled(root)
    container = make()
    size = anonymous_bytes(root) - before
    copied, seconds = _in_a_fork(_read, container, root)
    return ForkedRead(size, copied, seconds)


def _read(container: Any, root: int) -> tuple[int, float]:
    """Read every item twice.

    Returns the bytes that this added to the tree below `root`, and the second reading's seconds for
    one item.
    """
    before = _settled(root)
    for _ in range(2):
        start = time.perf_counter()
        for number in range(len(container)):
            container[number]
        seconds = (time.perf_counter() - start) / max(len(container), 1)
    return anonymous_bytes(root) - before, seconds


def _settled(root: int) -> int:
    anonymous_bytes(root)  # what looking itself takes is there from now on
    return anonymous_bytes(root)


def _in_a_fork(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return `function(*arguments)` as called in a fork of this process, or raise its error."""
    fork = get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    child = fork.Process(target=_answer, args=(sender, function, arguments))
    child.start()
    sender.close()
    try:
        value, error = receiver.recv()
    except EOFError:
        child.join()
        raise RuntimeError(
            f"the forked process ended early, with exit code {child.exitcode}"
        ) from None
    finally:
        receiver.close()
    child.join()
    if error is not None:
        raise error
    return value


def _answer(sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    answer: tuple[Any, Exception | None]
    try:
        answer = function(*arguments), None
    except Exception as error:  # noqa: BLE001 - it belongs to whoever has asked
        answer = None, error
    sender.send(answer)
