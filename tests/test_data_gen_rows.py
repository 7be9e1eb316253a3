"""Rows and labels follow from index and seed alone, are all different, and can be learnt."""

import pickle
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from data_gen import Recipe
from data_gen.recipe import LabelOrder

SHAPES = [(128,), (64, 64)]
BIG = 1 << 32  # as many rows as a recipe may have


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_a_row_is_the_same_alone_in_a_block_and_in_any_order(
    shape: tuple[int, ...], order: LabelOrder
) -> None:
    recipe = Recipe(3000, shape, seed=5, order=order)
    every = recipe.rows(range(3000))
    shuffled = np.random.default_rng(0).permutation(3000)
    assert np.array_equal(recipe.rows(shuffled), every[shuffled])
    assert np.array_equal(np.stack([recipe.rows(i) for i in (0, 17, 2999)]), every[[0, 17, 2999]])
    assert np.array_equal(recipe.labels(shuffled), recipe.labels(range(3000))[shuffled])


def test_shuffled_rows_do_not_depend_on_how_many_there_are() -> None:
    few, many = Recipe(100, seed=3), Recipe(BIG, seed=3)
    assert np.array_equal(few.rows(range(100)), many.rows(range(100)))
    assert np.array_equal(few.labels(range(100)), many.labels(range(100)))


def test_another_seed_shape_or_number_of_classes_gives_other_rows() -> None:
    recipe = Recipe(100, (64,))
    assert recipe.count_wrong(Recipe(100, (64,), seed=1).rows(range(100)), range(100)) == 100
    assert recipe.count_wrong(Recipe(100, (8, 8)).rows(range(100)), range(100)) == 100
    fewer = Recipe(100, (64,), classes=3)  # where a label is the same by chance, the row is too
    assert recipe.count_wrong(fewer.rows(range(100)), range(100)) > 80


def test_no_two_rows_of_a_hundred_thousand_are_equal() -> None:
    recipe = Recipe(BIG, (8,))  # the narrowest rows
    indices = np.concatenate([np.arange(50_000), np.arange(50_000, BIG, BIG // 50_000)])
    every = recipe.rows(indices).view("V32").ravel()
    assert len(np.unique(every)) == len(indices)


@given(st.integers(0, BIG - 1), st.integers(0, BIG - 1))
def test_a_row_in_the_place_of_another_is_counted(one: int, other: int) -> None:
    recipe = Recipe(BIG, (16,))
    assert recipe.count_wrong(recipe.rows(one), other) == (one != other)


@pytest.mark.parametrize("shape", SHAPES)
def test_wrong_rows_are_counted_one_by_one(shape: tuple[int, ...]) -> None:
    recipe = Recipe(5000, shape)
    indices = np.random.default_rng(1).permutation(5000)[:900]
    rows = recipe.rows(indices)
    assert recipe.count_wrong(rows, indices) == 0
    rows.reshape(900, -1)[3, -1] += 0.001
    rows.reshape(900, -1)[7, 0] = np.nan
    rows[[10, 11]] = rows[[11, 10]]
    assert recipe.count_wrong(rows, indices) == 4


def test_tensors_flat_rows_and_rows_with_a_channel_are_counted_and_too_few_are_refused() -> None:
    recipe = Recipe(50, (64, 64))
    rows = torch.from_numpy(recipe.rows(range(8)))
    assert recipe.count_wrong(rows, torch.arange(8)) == 0
    assert recipe.count_wrong(rows.reshape(8, 1, 64, 64), range(8)) == 0
    assert recipe.count_wrong(rows.reshape(8, 4096), range(1, 9)) == 8
    assert recipe.count_wrong(rows.half(), range(8)) == 8, "rounded rows are not the right rows"
    with pytest.raises(ValueError, match=r"\(8, 64, 64\) does not hold 9 rows"):
        recipe.count_wrong(rows, range(9))


@pytest.mark.parametrize(("indices", "shape"), [(7, ()), ([[1, 2, 3]], (1, 3)), ([], (0,))])
def test_shapes_follow_the_indices(indices: Any, shape: tuple[int, ...]) -> None:
    rows, labels = Recipe(50, (8, 4)).rows(indices), Recipe(50, (8, 4)).labels(indices)
    assert (rows.shape, labels.shape) == ((*shape, 8, 4), shape)
    assert rows.dtype == np.float32
    assert labels.dtype == np.int64


@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        ([3, -1], IndexError, "index -1 .* 0 to 49"),
        ([3, 50], IndexError, "index 50 .* 0 to 49"),
        ([1.5], TypeError, "float64"),
    ],
)
def test_indices_that_no_row_has_are_named(
    indices: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Recipe(50).rows(indices)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({"count": 0}, "0 rows"), ({"count": BIG + 1}, "4294967297 rows")),
        *(({"row_shape": ()}, "is empty"), ({"row_shape": (4, 0)}, "is empty")),
        *(({"row_shape": (size,)}, f"has {size} values") for size in (7, 1 << 23)),
        *(({"seed": -1}, "seed -1"), ({"classes": 1}, "1 classes"), ({"order": "ra"}, "'ra'")),
    ],
)
def test_a_recipe_that_cannot_be_made_says_why(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recipe(**{"count": 10} | changes)


def test_labels_are_balanced_and_shuffled_or_ascend() -> None:
    labels = Recipe(100_000).labels(range(100_000))
    assert np.bincount(labels, minlength=10).min() > 9_500
    assert 0.08 < (labels[1:] == labels[:-1]).mean() < 0.12
    ascending = Recipe(1003, order="sorted").labels(range(1003))
    assert (np.diff(ascending) >= 0).all()
    assert set(np.bincount(ascending, minlength=10)) <= {100, 101}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_simple_model_beats_chance_and_is_not_always_right(
    shape: tuple[int, ...], seed: int
) -> None:
    recipe = Recipe(100_000, shape, seed)
    train, test = range(10_000), range(10_000, 12_000)
    rows, labels = recipe.rows(train).reshape(10_000, -1), recipe.labels(train)
    means = np.stack([rows[labels == label].mean(axis=0) for label in range(10)])
    unseen = recipe.rows(test).reshape(2_000, -1)
    nearest = (unseen @ means.T - (means**2).sum(axis=1) / 2).argmax(axis=1)
    assert 0.6 < (nearest == recipe.labels(test)).mean() < 0.95


@pytest.mark.parametrize("shape", SHAPES)
def test_gzip_finds_little_to_save(shape: tuple[int, ...]) -> None:
    rows = Recipe(10_000, shape).rows(range((1 << 22) // (4 * np.prod(shape))))
    assert len(zlib.compress(rows.tobytes(), 4)) > 0.7 * rows.nbytes


def test_a_recipe_pickles_small() -> None:
    recipe = Recipe(BIG, (64, 64))
    recipe.rows(3)  # its tables are made, and stay behind
    assert len(pickle.dumps(recipe)) < 500
    assert pickle.loads(pickle.dumps(recipe)) == recipe
