"""Work done ahead by threads and handed over in order: one block is made while one is written."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

BLOCK_BYTES = 1 << 22


def ahead(
    make: Callable[[Item], Result], items: Iterable[Item], *, jobs: int
) -> Generator[Result, None, None]:
    """Yield `make(item)` for each item, in order; `jobs` threads are at most one result each ahead.

    numpy and zlib let go of the interpreter while they work, so threads are enough, and a killed
    process leaves none behind.
    """
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(jobs, thread_name_prefix="data_gen") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(make, item))
                if len(waiting) > jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:  # left early: begin nothing that nobody will take
                future.cancel()


def spans(count: int, item_bytes: int, block_bytes: int = BLOCK_BYTES) -> Iterator[range]:
    """Yield ranges of about `block_bytes` that cover 0 to `count`."""
    step = max(1, block_bytes // item_bytes)
    for start in range(0, count, step):
        yield range(start, min(start + step, count))
