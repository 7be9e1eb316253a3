"""One epoch: timed, or proved. Runs in a contestant's own environment, with numpy and torch."""

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helpers.loaders.mixing import distinct_labels

from .fingerprints import Fingerprints
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
    every = np.arange(recipe.count)
    labels = _mixing(recipe.labels(order), recipe.labels(every), size)
    parts = _mixing(order * _PARTS // recipe.count, every * _PARTS // recipe.count, size)
    return Proof(
        rows=len(order) + wrong_rows,
        whole=whole,
        wrong_rows=wrong_rows,
        wrong_labels=wrong_labels,
        repeated=len(order) - different,
        missing=left if whole and left >= dropped else 0,
        labels_per_batch=labels[0],
        labels_if_shuffled=labels[1],
        parts_per_batch=parts[0],
        parts_if_shuffled=parts[1],
    )


def _mixing(
    labels: NDArray[np.int64], every: NDArray[np.int64], batch_size: int
) -> tuple[float, float]:
    """Return how many labels a batch has, and how many after a full shuffle of the file.

    A smaller batch at the end is left out, as some readers do: so all are held to one number.
    """
    if not len(labels):  # nothing that was handed out is in the file
        return 0.0, distinct_labels(every, batch_size).full_shuffle
    whole = len(labels) // batch_size * batch_size
    mixing = distinct_labels(labels[: whole or len(labels)], batch_size, of=every)
    return mixing.measured, mixing.full_shuffle
