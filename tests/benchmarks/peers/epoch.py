"""One epoch: timed, or compared value by value with what it should hand out.

Runs in a contestant's own environment, with numpy and torch. No contestant has to carry an index
along: a row is looked up by a fingerprint of its first values.
"""

import gc
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing import active_children
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from helpers.loaders.mixing import distinct_labels

from .contestants import common, find
from .records import Contestant, Proof, Source, Timing

_PAGE_VALUES = 1024
_FINGERPRINT = 4  # values of a row: two rows that agree in all of these are refused


def measure(
    one: Contestant, source: Source, tiny: Source, seconds: float, proves: bool
) -> tuple[Timing, Proof | None]:
    """Time an epoch, or so many seconds of one, and then perhaps prove another.

    A tiny store is read before, so that nobody's imports and first calls are timed: the first time
    imports, the second does what every epoch has to, and starts its workers.
    """
    load, start_up, reads = find(one.function), 0.0, one.group != "limit"
    load = partial(common.load, open_rows=load, gives=one.gives) if one.gives else load
    for before in [tiny, tiny] if reads else []:
        start_up = time_epoch(load(before), before, seconds).first_batch_seconds
    gc.collect()  # what was imported, or it falls into somebody's epoch and no other's
    timing = time_epoch(load(source), source, seconds)
    if not timing.whole:  # an epoch has its start-up once, and a part should have only its part
        timing = replace(timing, seconds=timing.seconds - start_up)
    return timing, prove_epoch(load(source), source, seconds) if proves and reads else None


def time_epoch(batches: Iterable[Any], source: Source, seconds: float) -> Timing:
    """Go through an epoch, or so many seconds of it after the first batch.

    One value of every page is read: rows that are a map of a file have to be fetched too. A limit
    hands out nothing, and says how many rows it went through.
    """
    rows, first, whole = 0, 0.0, True
    cpu, start = _cpu_seconds(), time.perf_counter()
    for batch in batches:
        if not isinstance(batch, int):
            batch[0].numpy().reshape(-1)[::_PAGE_VALUES].sum()
        now = time.perf_counter() - start
        first = first or now
        rows += batch if isinstance(batch, int) else len(batch[0])
        if now - first > seconds:
            whole = False
            break
    taken, cpu = time.perf_counter() - start, _cpu_seconds() - cpu
    return Timing(rows, taken, cpu / max(rows * source.recipe.row_bytes, 1) * 2**30, first, whole)


def _cpu_seconds() -> float:
    """Return the user and system time of this process and its children, ended or running."""
    running = active_children()  # some libraries keep their workers beyond an epoch
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    for child in running:
        with suppress(psutil.Error):  # it may end while we look
            seconds += sum(psutil.Process(child.pid).cpu_times()[:2])
    return seconds


def prove_epoch(batches: Iterable[Any], source: Source, seconds: float) -> Proof:
    """Go through an epoch, or so many seconds of it, and compare every value and label."""
    recipe, wrong_rows, wrong_labels = source.recipe, 0, 0
    prints = np.concatenate([_fingerprints(recipe.rows(block)) for block in source.blocks])
    numbers = np.argsort(prints)
    prints = prints[numbers]
    assert (prints[1:] != prints[:-1]).all(), f"two rows have one fingerprint: {recipe}"
    seen, whole, start = [np.empty(0, np.int64)], True, None
    for values, labels in batches:
        start = start or time.perf_counter()  # as in the timed one: from the first batch
        wanted = _fingerprints(values.numpy())
        places = np.minimum(np.searchsorted(prints, wanted), recipe.count - 1)
        known = prints[places] == wanted
        right = numbers[places[known]]
        wrong_rows += int((~known).sum()) + recipe.count_wrong(values.numpy()[known], right)
        wrong_labels += int((labels.numpy()[known] != recipe.labels(right)).sum())
        seen.append(right)
        if time.perf_counter() - start > seconds:
            whole = False
            break
    return _judge(np.concatenate(seen), source, whole, wrong_rows, wrong_labels)


def _fingerprints(rows: NDArray[np.float32]) -> NDArray[np.bytes_]:
    first = np.ascontiguousarray(rows.reshape(len(rows), -1)[:, :_FINGERPRINT], np.float32)
    return first.view(f"S{4 * _FINGERPRINT}")[:, 0]


def _judge(
    order: NDArray[np.int64], source: Source, whole: bool, wrong_rows: int, wrong_labels: int
) -> Proof:
    count, size = source.recipe.count, source.batch_size
    repeated = len(order) - len(np.unique(order))
    left = count - (len(order) - repeated) - wrong_rows
    dropped = size * max(1, source.workers)  # each worker may leave out a last, smaller batch
    faults = wrong_rows, wrong_labels, repeated, left if whole and left >= dropped else 0
    # A smaller batch at the end is left out, as some readers do: so all are held to one number.
    kept = order[: len(order) // size * size or len(order)] if len(order) else np.zeros(size, int)
    labels = distinct_labels(
        source.recipe.labels(kept), size, of=source.recipe.labels(range(count))
    )
    return Proof(len(order) + wrong_rows, whole, *faults, labels.measured, labels.full_shuffle)
