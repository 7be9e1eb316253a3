"""Datasets for the checks: `Right` has every property, and each of the others changes one thing.

A check's child imports this module, so each is found in it by its name.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
import torch
from torch.utils.data import Dataset


class Right:
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


def _but(name: str, base: type = Right, **changed: Any) -> type:
    """Return a class that differs from its base in what is given: methods by their names."""
    return type(name, (base,), {"__module__": __name__, **changed})


def _also(name: str, attribute: str, make: Callable[[Path], Any]) -> type:
    """Return `Right` with one more attribute that its constructor makes."""

    def construct(self: Any, path: Path) -> None:
        Right.__init__(self, path)
        setattr(self, attribute, make(path))

    return _but(name, __init__=construct)


def _map(path: Path, mode: Any = "r") -> Any:
    return np.load(path, mmap_mode=mode)


def _raise(error: Exception) -> Any:
    raise error


class ReadsHdf5(Right):
    def view(self, index: int) -> Any:
        if self.map is None:
            self.map = h5py.File(self.path.with_suffix(".h5"))["rows"]
        if not -self.length <= index < self.length:
            raise IndexError(f"index {index}: the dataset has {self.length} rows")
        return self.map[index]


AsTensor = _but("AsTensor", __getitem__=lambda self, i: torch.from_numpy(np.array(self.view(i))))
CopiesAsMemmap = _but("CopiesAsMemmap", __getitem__=lambda self, i: self.view(i).copy())

# Their length

CountsValues = _but("CountsValues", __len__=lambda self: 8 * 64)
CountsInFloat = _but("CountsInFloat", __len__=lambda self: float(self.length))
CountsBelowZero = _but("CountsBelowZero", __len__=lambda self: -1)
StubLength = _but("StubLength", __len__=lambda self: ...)
HasNoLength = _but("HasNoLength", Dataset, __init__=Right.__init__, __getitem__=Right.__getitem__)
HasNoRows = _but("HasNoRows", Dataset, __init__=Right.__init__, __len__=Right.__len__)

# Their rows

StubRow = _but("StubRow", __getitem__=lambda self, i: ...)
RaisesStub = _but("RaisesStub", __getitem__=lambda self, i: _raise(NotImplementedError()))
RaisesNamedStub = _but(
    "RaisesNamedStub",
    __getitem__=lambda self, i: _raise(NotImplementedError("the line that opens")),
)
RowBefore = _but("RowBefore", view=lambda self, i: Right.view(self, (i - 1) % self.length))
SameRow = _but("SameRow", view=lambda self, i: Right.view(self, 0))
Scaled = _but("Scaled", __getitem__=lambda self, i: np.array(self.view(i)) / 2)
Doubles = _but("Doubles", __getitem__=lambda self, i: np.array(self.view(i), np.float64))
Flattens = _but("Flattens", __getitem__=lambda self, i: np.array(self.view(i)).ravel())


class ReadsNext(Right):
    """Gives one row after the other, whatever the index."""

    turn = -1

    def view(self, index: int) -> Any:
        self.turn += 1
        return super().view(self.turn % self.length)


class StopsAtWholeBatches(Right):
    def view(self, index: int) -> Any:
        if index >= self.length // 8 * 8:
            raise IndexError(f"the dataset has {self.length // 8} batches")
        return super().view(index)


# What they hold open, and how they travel

LoadsEverything = _also("LoadsEverything", "values", np.load)
OpensMapAsArray = _also("OpensMapAsArray", "map", lambda path: np.asarray(_map(path)))
OpensHdf5 = _also("OpensHdf5", "file", lambda path: h5py.File(path.with_suffix(".h5")))


class OpensBesideItself(Right):
    handle: ClassVar[Any] = None

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        OpensBesideItself.handle = _map(path)


KeepsValuesInPickle = _also("KeepsValuesInPickle", "values", lambda path: np.load(path).tolist())
KeepsHdf5InPickle = _but("KeepsHdf5InPickle", ReadsHdf5, __getstate__=lambda self: self.__dict__)


class EmptiesItself(Right):
    def __getstate__(self) -> dict[str, Any]:
        self.__dict__.pop("map")
        return self.__dict__


# What they hand out

ReturnsNewView = _but("ReturnsNewView", __getitem__=lambda self, i: _map(self.path)[i])
ReturnsTensorOfView = _but(
    "ReturnsTensorOfView", __getitem__=lambda self, i: torch.from_numpy(np.asarray(self.view(i)))
)
# Opened for each item: two looks share no memory, and a write would be SIGSEGV.
ReturnsTensorOfNewView = _but(
    "ReturnsTensorOfNewView",
    __getitem__=lambda self, i: torch.from_numpy(np.asarray(_map(self.path)[i])),
)
ReturnsTensorOfWritableView = _but(
    "ReturnsTensorOfWritableView",
    __getitem__=lambda self, i: torch.from_numpy(np.asarray(_map(self.path, "r+")[i])),
)
ReturnsBytes = _but(
    "ReturnsBytes",
    __getitem__=lambda self, i: np.frombuffer(self.view(i).tobytes(), "f4").reshape(8, 64),
)


class ReturnsCachedRow(Right):
    cache: ClassVar[dict[int, Any]] = {}

    def __getitem__(self, index: int) -> Any:
        return self.cache.setdefault(index, np.array(self.view(index)))


# Indices from the end, and beyond it

ClampsIndices = _but(
    "ClampsIndices",
    view=lambda self, i: Right.view(self, max(-self.length, min(i, self.length - 1))),
)
RefusesNegative = _but(
    "RefusesNegative", view=lambda self, i: _raise(IndexError(i)) if i < 0 else Right.view(self, i)
)
TakesNegativeWrong = _but("TakesNegativeWrong", view=lambda self, i: Right.view(self, abs(i)))


class SaysNoLength(Right):
    def view(self, index: int) -> Any:
        if not -self.length <= index < self.length:
            raise IndexError("out of range")
        return super().view(index)


# With labels


class WithLabels(Right):
    def label(self, index: Any) -> Any:
        return _map(self.path.with_name("spectrograms-labels.npy"))[index]

    def __getitem__(self, index: int) -> Any:
        return np.array(self.view(index)), torch.tensor(self.label(index))


def _labels(name: str, label: Callable[[WithLabels, int], Any]) -> type:
    """Return `WithLabels` with other labels."""
    return _but(name, WithLabels, label=label)


LabelsOfNextRow = _labels(
    "LabelsOfNextRow", lambda self, i: WithLabels.label(self, (i + 1) % self.length)
)
LabelsOfMirroredRows = _labels(
    "LabelsOfMirroredRows", lambda self, i: WithLabels.label(self, self.length - 1 - i)
)
OneLabel = _labels("OneLabel", lambda self, i: 3)
AllLabels = _labels("AllLabels", lambda self, i: WithLabels.label(self, slice(None)))
LabelsFirst = _but(
    "LabelsFirst", WithLabels, __getitem__=lambda self, i: WithLabels.__getitem__(self, i)[::-1]
)

# What they read, keep or do to the process

LoadsAtEveryAccess = _but("LoadsAtEveryAccess", view=lambda self, i: np.load(self.path)[i])
ComputesThroughTheMap = _also("ComputesThroughTheMap", "largest", lambda path: _map(path).max())


class LoadsForAll(Right):
    rows: ClassVar[Any] = None

    def view(self, index: int) -> Any:
        if LoadsForAll.rows is None:
            LoadsForAll.rows = np.load(self.path)
        return LoadsForAll.rows[index]


class LoadsForTheLastRow(LoadsForAll):
    def view(self, index: int) -> Any:
        return super().view(index) if index == self.length - 1 else Right.view(self, index)


class CountsInPieces(Right):
    def __len__(self) -> int:
        with self.path.open("rb") as file:
            size = sum(len(piece) for piece in iter(lambda: file.read(2**16), b""))
        return int(size // self.view(0).nbytes)


class KeepsRows(Right):
    kept: ClassVar[list[Any]] = []

    def __getitem__(self, index: int) -> Any:
        self.kept.append(np.array(self.view(index)))
        return self.kept[-1].copy()


Leaves = _but("Leaves", __getitem__=lambda self, i: os._exit(0))
WritesIntoTheMap = _but(
    "WritesIntoTheMap",
    __getitem__=lambda self, i: torch.from_numpy(np.asarray(self.view(i))).mul_(2),
)
TakesTooMuch = _but(
    "TakesTooMuch", __init__=lambda self, path: setattr(self, "held", b"x" * 3 * 2**30)
)


class Exits(Right):
    def __getitem__(self, index: int) -> Any:
        sys.exit("bye")
