"""Columns: arrays of rows in .npy and HDF5 files, checked before any row is read.

A reader asks once, in its constructor, and keeps the answer: shape, dtype, where the rows lie, and
the file's identity, which tells whether it has since shrunk, grown, been replaced or written to.
Nothing is ever unpickled.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.lib import format as npy
from numpy.typing import NDArray

from helpers.loaders.contents import looks_like
from helpers.loaders.hdf5_files import files_behind, get_dataset, open_hdf5_file
from helpers.loaders.identity import NotedFile, note
from helpers.system.files import absolute_path, named, open_regular

Rows = NDArray[Any]

_NPY_HEADERS: dict[tuple[int, int], Callable[[BinaryIO], tuple[Any, ...]]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}
_SAVE_INSTEAD = {
    "V": "raw bytes, as numpy saves bfloat16 and float8: save array.view(np.uint16), or np.uint8, "
    "and give the rows their torch dtype with rows.view(torch.bfloat16)",
    "M": "times: save them as numbers, array.astype(np.int64)",
    "m": "spans of time: save them as numbers, array.astype(np.int64)",
    "S": "words: save the number of each, np.unique(words, return_inverse=True)[1]",
    "U": "words: save the number of each, np.unique(words, return_inverse=True)[1]",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One array of rows: a .npy file, or the dataset `name` of an HDF5 file."""

    path: Path
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int | None  # of the rows in the file; None where they do not lie there in one piece
    chunks: tuple[int, ...] | None  # of HDF5
    filters: tuple[int, ...]  # HDF5's numbers, in the order they were applied: shuffle 2, gzip 1
    files: tuple[NotedFile, ...]  # its own, and those in which rows of it lie

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    @property
    def torch_dtype(self) -> torch.dtype:
        """Return the dtype of tensors of these rows."""
        return torch.from_numpy(np.empty(0, self.dtype)).dtype

    @property
    def row_bytes(self) -> int:
        """Return the bytes of one row in memory."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def chunk_rows(self) -> int:
        """Return how many rows can only be read together: 1 where they lie one by one."""
        return self.chunks[0] if self.chunks else 1

    def check_unchanged(self, file: int | None = None) -> None:
        """Raise RuntimeError where a file, or the one open as `path`, is not what was noted."""
        own, *others = self.files
        own.check_unchanged(file)
        for other in others:
            other.check_unchanged()


def open_columns(
    rows_path: str | Path, rows_name: str, labels_path: str | Path | None, labels_name: str | None
) -> list[Column]:
    """Return the column of rows and, where a path or name of them is given, that of the labels."""
    columns = [_open_column(rows_path, rows_name)]
    if labels_path is not None or labels_name is not None:
        if labels_path is None and not columns[0].name:
            raise ValueError(f"{rows_path} is one array: pass the labels_path of its labels")
        columns.append(_open_column(labels_path or rows_path, labels_name or "labels"))
        check_labels(*columns)
    return columns


def check_labels(rows: Column, labels: Column) -> None:
    """Raise ValueError where there are more or fewer labels than rows."""
    if labels.rows != rows.rows:
        raise ValueError(
            f"{rows.path} has {rows.rows:,} rows, and {labels.path} {labels.rows:,} labels: "
            "pass the labels of these rows"
        )


def open_npy(path: str | Path) -> Column:
    """Return where the rows of a .npy file lie, or raise an error that says why it will not do."""
    noted = note(absolute_path(path))
    path = noted.path
    with open_regular(path) as file:
        shape, fortran_order, dtype = _read_npy_header(path, file)
        offset = file.tell()
    _check_rows(str(path), shape, dtype)
    if fortran_order and len(shape) > 1:
        raise ValueError(
            f"{path} is in Fortran order, so its rows lie scattered over the whole file: "
            "save np.ascontiguousarray(array)"
        )
    size, found = offset + math.prod(shape) * dtype.itemsize, noted.identity.size
    if found != size:
        kind = "was cut short" if found < size else "has something behind its end"
        raise ValueError(
            f"{path} {kind}: an array {shape} of {dtype} makes {size:,} bytes, and it has "
            f"{found:,}: write it again"
        )
    return Column(path, "", shape, dtype, offset, None, (), (noted,))


def open_hdf5(path: str | Path, name: str) -> Column:
    """Return what an HDF5 dataset is, or raise an error that says why it will not do."""
    noted = note(absolute_path(path))
    with open_hdf5_file(noted.path) as opened:
        return _describe(noted, name, get_dataset(opened, noted.path, name))


def _open_column(path: str | Path, name: str) -> Column:
    # An .npz archive, so that its error says what it is.
    return open_npy(path) if Path(path).suffix in (".npy", ".npz") else open_hdf5(path, name)


def _read_npy_header(path: Path, file: BinaryIO) -> tuple[Any, ...]:
    start = file.read(64)
    file.seek(0)
    if not start.startswith(npy.MAGIC_PREFIX):
        raise ValueError(f"{path} is not a .npy file but {looks_like(start)}")
    try:
        return _NPY_HEADERS[npy.read_magic(file)](file)
    except KeyError as error:  # version 3 is for names of fields that are not ASCII
        raise ValueError(
            f"{path} has .npy version {error}: save a plain array of numbers"
        ) from None
    except (ValueError, SyntaxError, TokenError) as error:
        raise ValueError(f"{path} has a damaged .npy header ({error}): write it again") from error
    except OSError as error:
        raise named(path, error) from error


def _describe(noted: NotedFile, name: str, dataset: Any) -> Column:
    import h5py

    what = f"dataset {name!r} of {noted.path}"
    _check_rows(what, dataset.shape, dataset.dtype)
    if dataset.id.get_type() != h5py.h5t.py_create(dataset.dtype, logical=True):
        raise ValueError(
            f"{what} has numbers that HDF5 converts to {dataset.dtype} while reading: save it as "
            f"{dataset.dtype}"
        )
    plist = dataset.id.get_create_plist()
    return Column(
        path=noted.path,
        name=name,
        shape=dataset.shape,
        dtype=dataset.dtype,
        # None in chunks and in other files; with a user block, nonsense where nothing was written.
        offset=dataset.id.get_offset() if dataset.id.get_storage_size() > 0 else None,
        chunks=dataset.chunks,
        filters=tuple(plist.get_filter(number)[0] for number in range(plist.get_nfilters())),
        files=(noted, *map(note, files_behind(noted.path, dataset))),
    )


def _check_rows(what: str, shape: tuple[int, ...] | None, dtype: np.dtype[Any]) -> None:
    for wrong, message in _mistakes(shape, dtype):
        if wrong:
            raise ValueError(f"{what} {message}")


def _mistakes(shape: tuple[int, ...] | None, dtype: np.dtype[Any]) -> Iterator[tuple[bool, str]]:
    """Yield what may be wrong, one by one: each may rest on what was right before."""
    if dtype.metadata and "vlen" in dtype.metadata:  # of h5py
        yield True, "holds values of any length, such as words: save an array of their numbers"
    yield (
        dtype.hasobject,
        "holds Python objects, which are never unpickled here: save an array of numbers",
    )
    yield (
        dtype.fields is not None,
        f"is compound, with fields {', '.join(dtype.names or ())}: save each field by itself",
    )
    numbers = dtype.kind in "biufc" and dtype.char not in "gG"  # torch has no long doubles
    advice = _SAVE_INSTEAD.get(dtype.kind, "save an array of plain numbers, such as float64")
    yield not numbers, f"has dtype {dtype}: {advice}"
    yield not dtype.isnative, f"has bytes in foreign order ({dtype.str}): save it in native order"
    yield not shape, "is a single value: save an array of rows"
    yield 0 in (shape or ()), f"has no rows to read, its shape is {shape}: make it with some"
