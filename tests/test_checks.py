"""The checks of the exercises: each passes on the cure, and names each likely mistake."""

import pickle
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
import pytest
import torch

from helpers.checks import Check, check, check_dataset, check_value
from helpers.dataset_properties import (
    checks_its_indices,
    has_length,
    opens_lazily,
    pickles_small,
    rows_are_copies,
    rows_are_right,
)


class MadeUp:
    """What the checks ask of generated data, for 40 rows of 8 x 64 values."""

    rows = 40
    row_shape = (8, 64)

    def __init__(self, folder: Path) -> None:
        values = np.random.default_rng(1).random((self.rows, *self.row_shape), np.float32)
        self.values = values
        self.rows_path = folder / "rows.npy"
        np.save(self.rows_path, values)
        with h5py.File(folder / "rows.h5", "w") as file:
            file["rows"] = values

    def expected_rows(self, indices: Any) -> Any:
        return self.values[np.asarray(indices)]

    def count_wrong(self, rows: Any, indices: Any) -> int:
        differs = np.asarray(rows) != self.expected_rows(indices)
        return int(differs.reshape(len(differs), -1).any(axis=1).sum())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> MadeUp:
    return MadeUp(tmp_path_factory.mktemp("rows"))


class Right:
    """Has every property. The wrong ones below change one thing each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.map: Any = None
        self.length = len(np.load(path, mmap_mode="r"))

    def __len__(self) -> int:
        return self.length

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "map": None}

    def view(self, index: int) -> Any:
        if not -self.length <= index < self.length:
            raise IndexError(f"index {index}: the dataset has {self.length:,} rows")
        if self.map is None:
            self.map = np.load(self.path, mmap_mode="r")
        return self.map[index]

    def __getitem__(self, index: int) -> Any:
        return index, np.array(self.view(index))


class AsTensor(Right):
    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(np.array(self.view(index)))


class CopiesAsMemmap(Right):
    def __getitem__(self, index: int) -> Any:
        return self.view(index).copy()


class ReadsHdf5(Right):
    def view(self, index: int) -> Any:
        if self.map is None:
            self.map = h5py.File(self.path.with_suffix(".h5"))["rows"]
        if not -self.length <= index < self.length:
            raise IndexError(f"index {index}: the dataset has {self.length} rows")
        return self.map[index]


@pytest.mark.parametrize("dataset_class", [Right, AsTensor, CopiesAsMemmap, ReadsHdf5])
def test_a_good_dataset_passes_every_check(data: MadeUp, dataset_class: type) -> None:
    found = check_dataset(dataset_class, data)
    assert found, found
    assert repr(found) == f"✓ done: {dataset_class.__name__}"


class CountsValues(Right):
    def __len__(self) -> int:
        return 8 * 64


class CountsBatches(Right):
    def __len__(self) -> int:
        return self.length // 8


class StubLength(Right):
    def __len__(self) -> Any: ...


class StubRow(Right):
    def __getitem__(self, index: int) -> Any: ...


class RaisesStub(Right):
    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError


class RaisesNamedStub(Right):
    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError("the line that opens")


class NextRow(Right):
    def view(self, index: int) -> Any:
        return super().view((index + 1) % self.length)


class RowBefore(Right):
    def view(self, index: int) -> Any:
        return super().view((index - 1) % self.length)


class SameRow(Right):
    def view(self, index: int) -> Any:
        return super().view(0)


class Scaled(Right):
    def __getitem__(self, index: int) -> Any:
        return np.array(self.view(index)) / 2


class Doubles(Right):
    def __getitem__(self, index: int) -> Any:
        return np.array(self.view(index), dtype=np.float64)


class Flattens(Right):
    def __getitem__(self, index: int) -> Any:
        return np.array(self.view(index)).ravel()


class LoadsEverything(Right):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.values = np.load(path)


class OpensMap(Right):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.map = np.load(path, mmap_mode="r")


class OpensMapAsArray(Right):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.map = np.asarray(np.load(path, mmap_mode="r"))


class OpensFile(Right):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.file = path.open("rb")

    def __del__(self) -> None:
        self.file.close()


class OpensHdf5(Right):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.file = h5py.File(path.with_suffix(".h5"))


class KeepsMapInPickle(Right):
    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__


class KeepsValuesInPickle(KeepsMapInPickle):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.values = np.load(path).tolist()


class KeepsHdf5InPickle(ReadsHdf5):
    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__


class ForgetsThePath(Right):
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "map": None, "path": self.path.parent / "gone.npy"}


class ReturnsView(Right):
    def __getitem__(self, index: int) -> Any:
        return self.view(index)


class ReturnsTensorOfView(Right):
    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(np.asarray(self.view(index)))


class ReturnsTensorOfNewView(Right):
    """The map is opened for each item: two looks share no memory, and a write would be SIGSEGV."""

    def __getitem__(self, index: int) -> Any:
        self.map = None
        return torch.from_numpy(np.asarray(self.view(index)))


class ReturnsTensorOfWritableView(Right):
    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(np.asarray(np.load(self.path, mmap_mode="r+")[index]))


class ReturnsBytes(Right):
    def __getitem__(self, index: int) -> Any:
        return np.frombuffer(self.view(index).tobytes(), np.float32).reshape(8, 64)


class ReturnsNewView(Right):
    def __getitem__(self, index: int) -> Any:
        return np.load(self.path, mmap_mode="r")[index]


class ReturnsCachedRow(Right):
    cache: ClassVar[dict[int, Any]] = {}

    def __getitem__(self, index: int) -> Any:
        return self.cache.setdefault(index, np.array(self.view(index)))


class ClampsIndices(Right):
    def view(self, index: int) -> Any:
        return super().view(max(-self.length, min(index, self.length - 1)))


class RefusesNegative(Right):
    def view(self, index: int) -> Any:
        if index < 0:
            raise IndexError(index)
        return super().view(index)


class TakesNegativeWrong(Right):
    def view(self, index: int) -> Any:
        return super().view(abs(index))


class SaysNoLength(Right):
    def view(self, index: int) -> Any:
        if not -self.length <= index < self.length:
            raise IndexError("out of range")
        return super().view(index)


class RaisesAnother(Right):
    def __getitem__(self, index: int) -> Any:
        return self.no_such_name[index]  # type: ignore[attr-defined]


MISTAKES = [
    (has_length, CountsValues, "512, the values of one row: it should be the 40 rows"),
    (has_length, CountsBatches, "gives 5, and the data has 40 rows"),
    (has_length, StubLength, "fill in `__len__`"),
    (rows_are_right, StubRow, "fill in `__getitem__`"),
    (rows_are_right, RaisesStub, "fill in what the stub leaves open"),
    (rows_are_right, RaisesNamedStub, "fill in the line that opens"),
    (rows_are_right, NextRow, "gives the next row"),
    (rows_are_right, RowBefore, "gives the row before"),
    (rows_are_right, SameRow, "every index gives the same row"),
    (rows_are_right, Scaled, "hold other values than the file"),
    (rows_are_right, Doubles, "a row is float64: it should be float32"),
    (rows_are_right, Flattens, "has the shape (512,): it should be (8, 64)"),
    (rows_are_right, RaisesAnother, "AttributeError: 'RaisesAnother' object has no attribute"),
    (rows_are_right, RaisesAnother, "in __getitem__: `return self.no_such_name[index]"),
    (opens_lazily, LoadsEverything, "`self.values` holds 80 KiB after `__init__`"),
    (opens_lazily, OpensMap, "`self.map` is open after `__init__`"),
    (opens_lazily, OpensMapAsArray, "`self.map` is open after `__init__`"),
    (opens_lazily, OpensFile, "`self.file` is open after `__init__`"),
    (opens_lazily, OpensHdf5, "`self.file` is open after `__init__`"),
    (pickles_small, KeepsMapInPickle, "after the first access: leave what is open out of"),
    (pickles_small, KeepsValuesInPickle, "after `__init__`: keep the path, not the rows"),
    (pickles_small, KeepsHdf5InPickle, "cannot be pickled after the first access"),
    (pickles_small, ForgetsThePath, "FileNotFoundError"),
    (rows_are_copies, ReturnsView, "share their memory"),
    (rows_are_copies, ReturnsNewView, "a view of the open file: return a copy"),
    (rows_are_copies, ReturnsTensorOfView, "share their memory"),
    (rows_are_copies, ReturnsTensorOfNewView, "the row is read-only: return a copy"),
    (rows_are_copies, ReturnsBytes, "the row is read-only: return a copy"),
    (rows_are_copies, ReturnsTensorOfWritableView, "a write to the row goes into the file"),
    (rows_are_copies, ReturnsCachedRow, "share their memory"),
    (checks_its_indices, ClampsIndices, "`dataset[40]` gives a row: raise IndexError"),
    (checks_its_indices, RefusesNegative, "IndexError: -1"),
    (checks_its_indices, TakesNegativeWrong, "`dataset[-1]` is not the last row"),
    (checks_its_indices, SaysNoLength, "IndexError('out of range'): say the length, too"),
]


@pytest.mark.parametrize(
    ("look", "dataset_class", "hint"), MISTAKES, ids=[c.__name__ for _, c, _ in MISTAKES]
)
def test_each_likely_mistake_is_named(
    data: MadeUp, look: Any, dataset_class: type, hint: str
) -> None:
    before = data.rows_path.read_bytes()
    found = check_dataset(dataset_class, data, look)
    assert not found
    assert repr(found).startswith(f"not yet: {dataset_class.__name__}: ")
    assert hint in found.hint
    assert not check_dataset(dataset_class, data)  # and among all properties
    assert data.rows_path.read_bytes() == before


@pytest.mark.parametrize("stub", [None, ..., 3])
def test_a_class_that_is_not_there_yet_is_asked_for(data: MadeUp, stub: Any) -> None:
    assert "fill in the class" in repr(check_dataset(stub, data))


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (100.0, ""),
        (104, ""),
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
        (100 * 2**20, "1,048,576 times too large: look at the unit"),
        (100 / 2**30, "right in GiB: give it in the unit"),
        (lambda: 1 / 0, "ZeroDivisionError: division by zero, in <lambda>: `"),
    ],
)
def test_a_number_is_right_or_the_mistake_is_named(answer: Any, hint: str) -> None:
    hints = {25.0: "four rows in a page, not one"}
    found = check_value("your number", answer, 100, hints=hints)
    assert bool(found) is (not hint)
    assert hint in repr(found)


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


def test_a_check_can_come_back_from_a_child_process() -> None:
    found = Check("x", "hint")
    assert pickle.loads(pickle.dumps(found)) == found
