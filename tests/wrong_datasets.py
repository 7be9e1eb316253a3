"""Datasets for the checks: `Right` has every property, and each of the others changes one thing.

A check's child imports this module.
"""

import os
import sys
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


class CountsInFloat(Right):
    def __len__(self) -> Any:
        return float(self.length)


class CountsInText(Right):
    def __len__(self) -> Any:
        return str(self.length)


class CountsBelowZero(Right):
    def __len__(self) -> int:
        return -1


class KnowsItsLength(Right):
    def __len__(self) -> int:
        return 40


class HasNoLength(Dataset[Any]):
    def __init__(self, path: Path) -> None:
        self.path = path

    def __getitem__(self, index: int) -> Any:
        return np.array(np.load(self.path, mmap_mode="r")[index])


class HasNoRows(Dataset[Any]):
    def __init__(self, path: Path) -> None:
        self.path = path

    def __len__(self) -> int:
        return 41


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


class OpensBesideItself(Right):
    handle: ClassVar[Any] = None

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        OpensBesideItself.handle = np.load(path, mmap_mode="r")


class EmptiesItself(Right):
    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__
        state.pop("map")
        return state


class ForgetsItsLength(Right):
    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "map": None}


# With labels


class WithLabels(Right):
    def label(self, index: int) -> Any:
        return np.load(self.path.with_name("spectrograms-labels.npy"), mmap_mode="r")[index]

    def __getitem__(self, index: int) -> Any:
        return np.array(self.view(index)), int(self.label(index))


class LabelsAsTensor(WithLabels):
    def __getitem__(self, index: int) -> Any:
        return np.array(self.view(index)), torch.tensor(self.label(index))


class LabelsOfNextRow(WithLabels):
    def __getitem__(self, index: int) -> Any:
        return np.array(self.view(index)), torch.tensor(self.label((index + 1) % self.length))


class OneLabel(WithLabels):
    def label(self, index: int) -> Any:
        return 3


class LabelsOfMirroredRows(WithLabels):
    def label(self, index: int) -> Any:
        return super().label(self.length - 1 - index)


class LabelsFirst(WithLabels):
    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index)[::-1]


class AllLabels(WithLabels):
    def __getitem__(self, index: int) -> Any:
        return np.array(self.view(index)), self.label(slice(None))  # type: ignore[arg-type]


class RowsAlone(WithLabels):
    def __getitem__(self, index: int) -> Any:
        return np.array(self.view(index))


# What they read, keep or do to the process


class LoadsAtFirstAccess(Right):
    def view(self, index: int) -> Any:
        if self.map is None:
            self.map = np.load(self.path)
        return self.map[index]


class LoadsAtEveryAccess(Right):
    def view(self, index: int) -> Any:
        return np.load(self.path)[index]


class LoadsForAll(Right):
    rows: ClassVar[Any] = None

    def view(self, index: int) -> Any:
        if LoadsForAll.rows is None:
            LoadsForAll.rows = np.load(self.path)
        return LoadsForAll.rows[index]


class LoadsForTheLastRow(LoadsForAll):
    def view(self, index: int) -> Any:
        return super().view(index) if index == self.length - 1 else Right.view(self, index)


class LoadsToCount(Right):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.length = len(np.load(path))


class ComputesThroughTheMap(Right):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.largest = float(np.load(path, mmap_mode="r").max())


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


class NeverEnds(Right):
    def __len__(self) -> int:
        while True:
            pass


class Leaves(Right):
    def __getitem__(self, index: int) -> Any:
        os._exit(0)


class Exits(Right):
    def __getitem__(self, index: int) -> Any:
        sys.exit("bye")


class WritesIntoTheMap(Right):
    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(np.asarray(self.view(index))).mul_(2)


class TakesTooMuch(Right):
    def __init__(self, path: Path) -> None:
        self.held = b"x" * 3 * 2**30
