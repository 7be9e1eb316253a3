"""One epoch: timed, or proved. Runs in a contestant's own environment, with numpy and torch."""

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fingerprints import Fingerprints
from .mixing import distinct_if_shuffled, distinct_per_batch
from .records import Proof, Source, Timing

_PARTS = 100  # of the file, in which its order is measured more finely than by labels
_PAGE_VALUES = 1024


def time_epoch(batches: Iterable[Any], seconds: float) -> Timing:
    """Go through an epoch, or so many seconds of it after the first batch.

    One value of every page is read: rows that are a map of a file have to be fetched too.
    """
    rows, first, whole = 0, 0.0, True
    start = time.perf_counter()
    for values, _labels in batches:
        values.numpy().reshape(-1)[::_PAGE_VALUES].sum()
        now = time.perf_counter() - start
        first = first or now
        rows += len(values)
        if now - first > seconds:
            whole = False
            break
    return Timing(rows, time.perf_counter() - start, first_batch_seconds=first, whole=whole)


def prove_epoch(
    batches: Iterable[Any], source: Source, fingerprints: Fingerprints, seconds: float
) -> Proof:
    """Go through an epoch again, comparing every value with what it should be."""
    recipe = source.recipe
    seen: list[NDArray[np.int64]] = []
    wrong_rows = wrong_labels = 0
    whole, start = True, None
    for values, labels in batches:
        start = start or time.perf_counter()  # as in the timed one: from the first batch
        given, given_labels = values.numpy(), labels.numpy()
        indices = fingerprints.indices_of(given)
        known = indices >= 0
        right = indices[known]
        wrong_rows += int((~known).sum()) + recipe.count_wrong(given[known], right)
        wrong_labels += int((given_labels[known] != recipe.labels(right)).sum())
        seen.append(right)
        if time.perf_counter() - start > seconds:
            whole = False
            break
    order = np.concatenate(seen) if seen else np.empty(0, np.int64)
    return _judge(order, source, whole, wrong_rows, wrong_labels)


def _judge(
    order: NDArray[np.int64], source: Source, whole: bool, wrong_rows: int, wrong_labels: int
) -> Proof:
    recipe, size = source.recipe, source.batch_size
    different = len(np.unique(order))
    dropped = size * max(1, source.workers)  # each worker may leave out a last, smaller batch
    left = recipe.count - different - wrong_rows
    parts = order * _PARTS // recipe.count
    every = np.arange(recipe.count)
    return Proof(
        rows=len(order) + wrong_rows,
        whole=whole,
        wrong_rows=wrong_rows,
        wrong_labels=wrong_labels,
        repeated=len(order) - different,
        missing=left if whole and left >= dropped else 0,
        labels_per_batch=distinct_per_batch(recipe.labels(order), size),
        labels_if_shuffled=distinct_if_shuffled(np.bincount(recipe.labels(every)), size),
        parts_per_batch=distinct_per_batch(parts, size),
        parts_if_shuffled=distinct_if_shuffled(np.bincount(every * _PARTS // recipe.count), size),
    )
