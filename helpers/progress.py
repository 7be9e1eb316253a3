"""Count what a training loop gets from its loader, and what it waits for.

`track(loader)` yields the loader's batches and changes nothing else. Inside `run` it publishes its
counters in the run's shared state, where the watcher reads them; outside it is a progress bar.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from helpers.running.counting import above_zero, count, told, whole
from helpers.running.shared_state import STATE_VARIABLE, SharedState

Batch = TypeVar("Batch")


def track(
    loader: Iterable[Batch],
    *,
    seconds: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Batch]:
    """Yield the loader's batches and count samples, bytes, and seconds waited and worked.

    `seconds` ends the loop after so many seconds: a part of an epoch where a whole one would take
    too long. A batch is a tensor or array, or a list, tuple or dict of them; its samples are the
    length of the first one. Raises TypeError when `loader` cannot be iterated.
    """
    if seconds is not None:
        seconds = _seconds(seconds)
    state = _state()
    start = clock()
    if state is None:
        return _shown(_until(_iterator(loader), seconds, start, clock), _length(loader))
    if state.owner != os.getpid():  # a worker of the run: nobody reads its bar, nobody its counts
        return _until(_iterator(loader), seconds, start, clock)
    state.waiting_since = time.monotonic()  # before iter(): starting workers is waiting, too
    try:
        iterator = _iterator(loader)
    except BaseException:
        state.stop_waiting(clock() - start)
        raise
    state.expected += _length(loader) or 0
    return _published(_until(iterator, seconds, start, clock), state, start, clock)


def _iterator(loader: Iterable[Batch]) -> Iterator[Batch]:
    try:
        return iter(loader)
    except TypeError:
        if hasattr(type(loader), "__iter__"):  # it can be: a worker could not be given its dataset
            raise
        raise TypeError(
            f"track got {type(loader).__name__}, which cannot be iterated: "
            "pass a DataLoader, or any iterable of batches"
        ) from None


def _state() -> SharedState | None:
    """Return the state of the run that this process belongs to, as its child or a worker of it."""
    try:
        return SharedState.open(Path(os.environ.get(STATE_VARIABLE, "")))
    except (OSError, ValueError):  # there is none, or it is gone or cut off
        return None


def _length(loader: Any) -> int | None:
    """Return how many batches a loader says it has, if it says so."""
    return whole(lambda: len(loader))


def _until(
    batches: Iterator[Batch], seconds: float | None, start: float, clock: Callable[[], float]
) -> Iterator[Batch]:
    """Yield batches until the time is over."""
    while seconds is None or clock() - start < seconds:
        try:
            yield next(batches)
        except StopIteration:
            return


def _published(
    batches: Iterator[Batch], state: SharedState, start: float, clock: Callable[[], float]
) -> Iterator[Batch]:
    """Yield batches; every one is counted before it is handed out."""
    asked = start
    try:
        for batch in batches:
            arrived = clock()
            samples, data_bytes = count(batch)
            state.stop_waiting(arrived - asked)
            state.samples += samples
            state.batches += 1
            state.data_bytes += data_bytes
            try:
                yield batch
            finally:  # also when the loop is left early
                asked = clock()
                state.worked += asked - arrived
                state.waiting_since = time.monotonic()
    finally:  # the loader has ended, or failed, or the loop was left
        state.stop_waiting(clock() - asked)


def _shown(batches: Iterator[Batch], length: int | None) -> Iterator[Batch]:
    """Yield batches behind a progress bar, where one can be written."""
    bar: Any = told(lambda: tqdm(total=length, unit="batch"))
    try:
        for batch in batches:
            yield batch
            told(lambda: bar.update())
    finally:
        told(lambda: bar.close())


def _seconds(value: Any) -> float:
    """Return a number of seconds above zero, also of numpy or torch. Raises ValueError."""
    if (seconds := above_zero(value)) is None:
        raise ValueError(f"seconds is {value!r}: pass a number above zero, or leave it out")
    return seconds
