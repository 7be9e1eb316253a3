from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers.loaders.mixing import Mixing, distinct_labels

UNEQUAL = np.repeat(np.arange(5), [1, 2, 10, 40, 60])


def assert_agrees_with_shuffles(
    measure: Callable[[NDArray[np.int64]], Mixing], values: NDArray[np.int64]
) -> None:
    """Hold that the mean of 400 full shuffles is the value that is said of them."""
    rng = np.random.default_rng(0)
    measured = [measure(rng.permutation(values)).measured for _ in range(400)]
    error = np.std(measured) / np.sqrt(len(measured))
    said = measure(values).full_shuffle
    assert error < said / 50  # so that a wrong formula would be noticed
    assert abs(np.mean(measured) - said) < 4 * error


@pytest.mark.parametrize("batch_size", [7, 50])
def test_the_labels_after_a_full_shuffle_are_what_shuffling_gives(batch_size: int) -> None:
    assert_agrees_with_shuffles(lambda labels: distinct_labels(labels, batch_size), UNEQUAL)


def test_the_labels_of_a_part_are_held_to_a_full_shuffle_of_all_rows() -> None:
    assert_agrees_with_shuffles(
        lambda labels: distinct_labels(labels[:25], 7, of=labels),
        np.random.default_rng(1).permutation(UNEQUAL),
    )


@pytest.mark.parametrize(
    ("mixing", "measured", "full_shuffle"),
    [
        (distinct_labels([0, 1, 1, 2, 2, 0], 2), 2, 1.8),
        (distinct_labels([0, 0, 1], 2), 1, (5 / 3 + 1) / 2),  # the last batch has one row
        (distinct_labels([0, 0], 2, of=[2, 1, 0, 2, 1, 0]), 1, 1.8),
        (distinct_labels([0, 1, 2], 2, of=[0, 0, 1, 1, 2, 2]), 1.5, (1.8 + 1) / 2),
        (distinct_labels(UNEQUAL, 1), 1, 1),
        (distinct_labels(UNEQUAL, 200), 5, 5),
    ],
)
def test_small_orders_have_the_values_worked_out_by_hand(
    mixing: Mixing, measured: float, full_shuffle: float
) -> None:
    assert mixing.measured == pytest.approx(measured)
    assert mixing.full_shuffle == pytest.approx(full_shuffle)


def test_the_share_tells_sorted_from_shuffled_of_a_part_by_the_labels_of_all() -> None:
    labels = np.arange(10_000) // 1000
    shuffled = np.random.default_rng(0).permutation(labels)
    assert distinct_labels(labels, 100).share < 0.2
    assert distinct_labels(shuffled, 100).share == pytest.approx(1, abs=0.05)
    assert distinct_labels(labels[:1000], 100).share == 1
    assert distinct_labels(labels[:1000], 100, of=labels).share < 0.2


def test_a_label_for_every_row_takes_no_great_table() -> None:
    """A table of every label's chance in every draw would have 250 million numbers here."""
    assert distinct_labels(np.arange(1_000_000), 250).full_shuffle == pytest.approx(250)


def test_it_reads_as_a_line() -> None:
    assert repr(Mixing(3400, 900_001.2)) == (
        "distinct labels in a batch: 3,400, after a full shuffle 900,001 (0%)"
    )
    assert "1, after a full shuffle 1.8 (56%)" in repr(distinct_labels([0, 0, 1, 1, 2, 2], 2))


@pytest.mark.parametrize(
    ("labels", "of", "batch_size", "message"),
    [
        *((wrong, None, 2, "cannot be measured: pass one") for wrong in ([], [[1, 2]], [0.5], 3)),
        ([1, 2], ["a"], 2, "cannot be measured: pass one integer for each row"),
        ([1, 2], None, 0, "batch_size=0: pass 1 or more"),
        ([0, 1, 0, 1], [0, 1], 3, "of has 2 rows, less than a batch of 3: pass the labels"),
    ],
)
def test_what_cannot_be_measured_is_named(
    labels: Any, of: Any, batch_size: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        distinct_labels(labels, batch_size, of=of)
