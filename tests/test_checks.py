"""The checks of the exercises: each passes on the cure, and names each likely mistake."""

import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import wrong_datasets as wrong
from wrong_datasets import Right

from data_gen import GeneratedData
from data_gen.recipe import Recipe
from helpers import checks
from helpers.checks import Check, check, check_dataset, check_value
from helpers.dataset_properties import (
    ALL_PROPERTIES,
    checks_its_indices,
    first_mistake,
    has_length,
    labels_are_right,
    opens_lazily,
    pickles_small,
    rows_are_copies,
    rows_are_right,
)
from helpers.hints import hint_of
from helpers.loaders.datasets import NpyDataset
from helpers.ragged_data import make_part


def described(count: int, folder: Path = Path()) -> GeneratedData:
    """Return data that lies nowhere: a check needs only to know its values."""
    return GeneratedData(
        folder / "spectrograms.npy", folder / "spectrograms-labels.npy", Recipe(count, (8, 64))
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return 41 rows of 8 x 64 values."""
    part = make_part(described(42), tmp_path_factory.mktemp("rows") / "part")
    with h5py.File(part.rows_path.with_suffix(".h5"), "w") as file:
        file["rows"] = np.load(part.rows_path)
    return part


@pytest.mark.parametrize(
    ("dataset_class", "properties"),
    [
        (Right, ALL_PROPERTIES),
        (wrong.AsTensor, ALL_PROPERTIES),
        (wrong.CopiesAsMemmap, ALL_PROPERTIES),
        (wrong.ReadsHdf5, ALL_PROPERTIES),
        (wrong.WithLabels, [labels_are_right]),
    ],
)
def test_a_good_dataset_has_every_property(data: Any, dataset_class: type, properties: Any) -> None:
    assert hint_of(first_mistake, dataset_class, data, properties) == ""


MISTAKES = [
    (has_length, wrong.CountsValues, "512, the values of one row: it should be the 41 rows"),
    (has_length, wrong.CountsInFloat, "`len` gives 41.0, a float: give a whole number"),
    (has_length, wrong.CountsBelowZero, "gives -1, and the data has 41 rows"),
    (has_length, wrong.HasNoLength, "it has no `__len__`: write one"),
    (has_length, wrong.HasNoRows, "it has no `__getitem__`: write one"),
    (has_length, wrong.StubLength, "fill in `__len__`"),
    (rows_are_right, wrong.StubRow, "fill in `__getitem__`"),
    (rows_are_right, wrong.RaisesStub, "fill in what the stub leaves open"),
    (rows_are_right, wrong.RaisesNamedStub, "fill in the line that opens"),
    (rows_are_right, wrong.RowBefore, "gives the row before"),
    (rows_are_right, wrong.SameRow, "every index gives the same row"),
    (rows_are_right, wrong.Scaled, "hold other values than the file"),
    (rows_are_right, wrong.Doubles, "a row is float64: it should be float32"),
    (rows_are_right, wrong.Flattens, "has the shape (512,): it should be (8, 64)"),
    (rows_are_right, wrong.ReadsNext, "an item depends on what was asked before it"),
    (rows_are_right, wrong.StopsAtWholeBatches, "IndexError: the dataset has 5 batches, in view"),
    (labels_are_right, wrong.LabelsOfNextRow, "the label is that of the next row"),
    (labels_are_right, wrong.LabelsOfMirroredRows, "the labels are not those of the rows"),
    (labels_are_right, wrong.OneLabel, "every row gets the label 3: use the index"),
    (labels_are_right, wrong.LabelsFirst, "(row, label), in this order: turn it round"),
    (labels_are_right, wrong.AllLabels, "a label is int64 of the shape (41,)"),
    (labels_are_right, wrong.StubRow, "fill in `__getitem__`: it returns (row, label)"),
    (opens_lazily, wrong.LoadsEverything, "`self.values` holds 82 KiB after `__init__`"),
    (opens_lazily, wrong.OpensMapAsArray, "`self.map` is open after `__init__`"),
    (opens_lazily, wrong.OpensHdf5, "`self.file` is open after `__init__`"),
    (opens_lazily, wrong.OpensBesideItself, "spectrograms.npy is open after `__init__`"),
    (pickles_small, wrong.KeepsValuesInPickle, "after `__init__`: keep the path, not the rows"),
    (pickles_small, wrong.KeepsHdf5InPickle, "cannot be pickled after the first access"),
    (pickles_small, wrong.EmptiesItself, "no attribute 'map', after pickling: change a copy"),
    (rows_are_copies, wrong.ReturnsNewView, "a view of the open file: return a copy"),
    (rows_are_copies, wrong.ReturnsTensorOfView, "share their memory"),
    (rows_are_copies, wrong.ReturnsTensorOfNewView, "the row is read-only: return a copy"),
    (rows_are_copies, wrong.ReturnsBytes, "the row is read-only: return a copy"),
    (rows_are_copies, wrong.ReturnsTensorOfWritableView, "a write to the row goes into the file"),
    (rows_are_copies, wrong.ReturnsCachedRow, "share their memory"),
    (checks_its_indices, wrong.ClampsIndices, "`dataset[41]` gives a row: raise IndexError"),
    (checks_its_indices, wrong.RefusesNegative, "IndexError: -1"),
    (checks_its_indices, wrong.TakesNegativeWrong, "`dataset[-1]` is not the last row"),
    (checks_its_indices, wrong.SaysNoLength, "IndexError('out of range'): say the length, too"),
]


@pytest.mark.parametrize(("look", "dataset_class", "hint"), MISTAKES)
def test_each_likely_mistake_is_named(data: Any, look: Any, dataset_class: type, hint: str) -> None:
    before = data.rows_path.read_bytes()
    assert hint in hint_of(first_mistake, dataset_class, data, [look])
    assert hint_of(first_mistake, dataset_class, data, [*ALL_PROPERTIES, labels_are_right])
    assert data.rows_path.read_bytes() == before


# In a child, on a file of its own


@pytest.mark.parametrize("dataset_class", [Right, NpyDataset])
def test_a_good_dataset_passes_in_a_child_and_needs_no_file(dataset_class: type) -> None:
    assert (
        repr(check_dataset(dataset_class, described(10**5))) == f"✓ done: {dataset_class.__name__}"
    )


@pytest.mark.parametrize(
    ("dataset_class", "hint"),
    [
        (wrong.ComputesThroughTheMap, "MiB of a file of 64 MiB"),
        (wrong.CountsInPieces, "`len` reads 64 MiB of a file of 64 MiB"),
        (wrong.KeepsRows, "after 4,096 rows it holds"),
        (wrong.Leaves, "crashed: the process left without a result (exit code 0)"),
        (wrong.Exits, "SystemExit: bye, in __getitem__: `sys.exit("),
        (wrong.WritesIntoTheMap, "crashed: SIGSEGV"),
        (wrong.TakesTooMuch, "killed: over its 512 MiB budget"),
    ],
)
def test_what_a_dataset_reads_keeps_and_does_to_the_process_is_seen(
    dataset_class: type, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "RAM_BUDGET", 2**29)
    found = check_dataset(dataset_class, described(10**5))
    assert repr(found).startswith(f"not yet: {dataset_class.__name__}: ")
    assert hint in found.hint


@pytest.mark.parametrize(
    ("dataset_class", "rows", "hint"),
    [
        (wrong.LoadsAtEveryAccess, 2**14, "every access reads the whole file"),  # 32 MiB
        (wrong.LoadsForTheLastRow, 10**5, "of memory: does it load all?"),  # nobody looks
    ],
)
def test_what_is_read_is_seen_in_little_data_and_in_all_of_it(
    dataset_class: type, rows: int, hint: str
) -> None:
    assert hint in check_dataset(dataset_class, described(rows), rows_are_right).hint


def test_what_the_child_cannot_import_is_asked_for_where_it_can() -> None:
    class InAFunction(Right):
        pass

    assert "define it at the top level of a file" in check_dataset(InAFunction, described(99)).hint


@pytest.mark.parametrize(
    ("stub", "hint"),
    [
        (None, "fill in the class"),
        (..., "fill in the class"),
        (np.zeros(3), "give the class itself, uncalled"),
    ],
)
def test_a_class_that_is_not_there_yet_is_asked_for(stub: Any, hint: str) -> None:
    assert hint in repr(check_dataset(stub, described(99)))


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (100.0, ""),
        (np.float32(99), ""),
        (lambda: 100, ""),
        (None, "fill in your answer"),
        (..., "fill in your answer"),
        (lambda: None, "fill in your answer"),
        ("100 rows", "'100 rows' is a str: give a number"),
        (True, "True is a bool"),
        (25.1, "four rows in a page, not one"),
        (110, "110 is too large"),
        (-100, "-100 is too small"),
        (0, "0 is too small"),
        (float("nan"), "nan is not a finite number"),
        (np.array([100.0]), "is a ndarray: give a number"),
        (np.array(100), ""),
        (lambda: sys.exit(1), "SystemExit: 1"),
        (lambda: 1 / 0, "ZeroDivisionError: division by zero, in <lambda>: `"),
    ],
)
def test_a_number_is_right_or_the_mistake_is_named(answer: Any, hint: str) -> None:
    hints = {25.0: "four rows in a page, not one"}
    found = check_value("your number", answer, 100, hints=hints)
    assert bool(found) is (not hint)
    assert hint in repr(found)


@pytest.mark.parametrize(
    ("answer", "unit", "hint"),
    [
        (294, "MiB", ""),
        ("294 MiB", "MiB", ""),
        ("0.287 GiB", "MiB", ""),
        ("308,281,344 bytes", "B", ""),
        ("308 MB", "MiB", ""),
        (0.287, "B", "0.287 is right in GiB: give it in B"),
        (0.308, "MiB", "0.308 is right in decimal GB: give it in MiB"),
        (308281344, "MiB", "is right in B: give it in MiB"),
        (308281344 * 8, "B", "is right in bits: give it in B"),
        ("294 MB", "MiB", "is too small"),
        ("many MiB", "MiB", "'many MiB' is a str: give a number"),
    ],
)
def test_a_number_in_another_unit_is_told_by_its_unit(answer: Any, unit: str, hint: str) -> None:
    expected = 294 * 2**20 if unit == "B" else 294
    found = check_value("in flight", answer, expected, unit=unit, tolerance=0.01)
    assert bool(found) is (not hint)
    assert hint in found.hint


def test_the_tolerance_is_relative() -> None:
    assert not check_value("n", 104, 100, tolerance=0.01)
    assert check_value("n", 0, 0)


def test_any_other_property_can_be_checked_by_a_function() -> None:
    assert check("order", lambda: None)
    assert repr(check("order", lambda: "too short")) == "not yet: order: too short"


def test_an_error_of_the_reader_names_their_line_and_not_the_library_s() -> None:
    found = check("numpy", lambda: str(np.stack([])))
    assert "ValueError" in found.hint
    assert "np.stack([])" in found.hint


def test_a_check_shows_a_word_and_a_mark_and_escapes_what_it_says() -> None:
    shown = Check("<b>", "a < b")._repr_html_()
    assert "not yet" in shown
    assert "&lt;b&gt;: a &lt; b" in shown
    assert "✓ done" in Check("x")._repr_html_()
