from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers.loaders.mixing import Mixing, displacement, distinct_labels, label_runs

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


@pytest.mark.parametrize("count", [7, 200])
def test_the_displacement_of_a_full_shuffle_is_what_shuffling_gives(count: int) -> None:
    assert_agrees_with_shuffles(displacement, np.arange(count))


@pytest.mark.parametrize("batch_size", [1, 7, 50, 113, 200])
def test_the_labels_after_a_full_shuffle_are_what_shuffling_gives(batch_size: int) -> None:
    if batch_size in (1, 113, 200):  # nothing is left to chance
        expected = 1 if batch_size == 1 else 5
        assert distinct_labels(UNEQUAL, batch_size).full_shuffle == expected
    else:
        assert_agrees_with_shuffles(lambda labels: distinct_labels(labels, batch_size), UNEQUAL)


def test_the_labels_of_a_part_are_held_to_a_full_shuffle_of_all_rows() -> None:
    assert_agrees_with_shuffles(
        lambda labels: distinct_labels(labels[:25], 7, of=labels),
        np.random.default_rng(1).permutation(UNEQUAL),
    )


@pytest.mark.parametrize("labels", [UNEQUAL, np.repeat(np.arange(30), 3), np.array([0, 1])])
def test_the_runs_after_a_full_shuffle_are_what_shuffling_gives(labels: NDArray[np.int64]) -> None:
    if len(labels) == 2:
        assert label_runs(labels).full_shuffle == 2
    else:
        assert_agrees_with_shuffles(label_runs, labels)


@pytest.mark.parametrize(
    ("mixing", "measured", "full_shuffle"),
    [
        (displacement([0, 1, 2]), 0, 8 / 9),
        (displacement([2, 1, 0]), 4 / 3, 8 / 9),
        (displacement([1, 0]), 1, 0.5),
        (displacement([0]), 0, 0),
        (distinct_labels([0, 0, 1, 1, 2, 2], 2), 1, 1.8),
        (distinct_labels([0, 1, 1, 2, 2, 0], 2), 2, 1.8),
        (distinct_labels([0, 0, 1], 2), 1, (5 / 3 + 1) / 2),  # the last batch has one row
        (distinct_labels([0, 0], 2, of=[2, 1, 0, 2, 1, 0]), 1, 1.8),
        (distinct_labels([0, 1, 2], 2, of=[0, 0, 1, 1, 2, 2]), 1.5, (1.8 + 1) / 2),
        (distinct_labels([0, 1], 2, of=[0, 1]), 2, 2),
        (label_runs([0, 0, 1, 1]), 2, 3),
        (label_runs([0, 1, 0, 1]), 4, 3),
        (label_runs([7]), 1, 1),
    ],
)
def test_small_orders_have_the_values_worked_out_by_hand(
    mixing: Mixing, measured: float, full_shuffle: float
) -> None:
    assert mixing.measured == pytest.approx(measured)
    assert mixing.full_shuffle == pytest.approx(full_shuffle)


def test_the_share_tells_sorted_from_shuffled() -> None:
    order = np.arange(10_000)
    shuffled = np.random.default_rng(0).permutation(order)
    for measure in (
        displacement,
        lambda order: distinct_labels(order // 1000, 100),
        lambda order: label_runs(order // 1000),
    ):
        assert measure(order).share < 0.2
        assert measure(shuffled).share == pytest.approx(1, abs=0.05)


def test_a_part_of_a_sorted_file_looks_mixed_until_all_labels_are_known() -> None:
    labels = np.arange(10_000) // 1000
    assert distinct_labels(labels[:1000], 100).share == 1
    assert distinct_labels(labels[:1000], 100, of=labels).share < 0.2


def test_nothing_to_mix_is_mixed() -> None:
    assert displacement([0]).share == 1


def test_a_label_for_every_row_takes_no_great_table() -> None:
    """A table of every label's chance in every draw would have 250 million numbers here."""
    assert distinct_labels(np.arange(1_000_000), 250).full_shuffle == pytest.approx(250)


def test_it_reads_as_a_line() -> None:
    assert repr(Mixing("runs of one label", 3400, 900_001.2)) == (
        "runs of one label: 3,400, after a full shuffle 900,001 (0%)"
    )
    assert repr(distinct_labels([0, 0, 1, 1, 2, 2], 2)) == (
        "distinct labels in a batch: 1, after a full shuffle 1.8 (56%)"
    )


@pytest.mark.parametrize("values", [[], [[1, 2]], [0.5], 3, ["a"]])
@pytest.mark.parametrize(
    "measure",
    [
        displacement,
        label_runs,
        lambda values: distinct_labels(values, 2),
        lambda values: distinct_labels([1, 2], 2, of=values),
    ],
)
def test_what_is_no_list_of_integers_is_named(
    measure: Callable[[Any], Mixing], values: Any
) -> None:
    with pytest.raises(ValueError, match="cannot be measured: pass one integer for each row"):
        measure(values)


@pytest.mark.parametrize("order", [[0, 0], [1, 2], [0, -1], [0, 2]])
def test_an_order_that_is_no_permutation_is_named(order: list[int]) -> None:
    with pytest.raises(ValueError, match="an order of 2 rows has each of 0 to 1 once"):
        displacement(order)


def test_a_batch_size_of_nothing_is_named() -> None:
    with pytest.raises(ValueError, match="batch_size=0: pass 1 or more"):
        distinct_labels([1, 2], 0)


def test_too_few_rows_for_a_batch_are_named() -> None:
    with pytest.raises(ValueError, match="of has 2 rows, less than a batch of 3: pass the labels"):
        distinct_labels([0, 1, 0, 1], 3, of=[0, 1])
