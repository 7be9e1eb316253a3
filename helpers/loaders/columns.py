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

from helpers.loaders.identity import Identity, check_unchanged, identify

Rows = NDArray[Any]

_NPY_HEADERS: dict[tuple[int, int], Callable[[BinaryIO], tuple[Any, ...]]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}
_OTHER_FORMATS = {
    b"\x89HDF": "an HDF5 file: read it with Hdf5Dataset, or name it .h5",
    b"PK\x03\x04": "an .npz archive, which cannot be read by rows: save each array with np.save",
    b"\x80": "a Python pickle, which is never opened here: save the array itself with np.save",
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
    identity: Identity

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
        """Raise RuntimeError where the file, or the one open as it, is not what was noted."""
        check_unchanged(self.path, self.identity, file)


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
    path = Path(path).absolute()
    with _open(path) as file:
        identity = identify(file.fileno())
        shape, fortran_order, dtype = _read_npy_header(path, file)
        offset = file.tell()
    _check_rows(str(path), shape, dtype)
    if fortran_order and len(shape) > 1:
        raise ValueError(
            f"{path} is in Fortran order, so its rows lie scattered over the whole file: "
            "save np.ascontiguousarray(array)"
        )
    size = offset + math.prod(shape) * dtype.itemsize
    if identity.size != size:
        kind = "was cut short" if identity.size < size else "has something behind its end"
        raise ValueError(
            f"{path} {kind}: an array {shape} of {dtype} makes {size:,} bytes, and it has "
            f"{identity.size:,}: write it again"
        )
    return Column(path, "", shape, dtype, offset, None, (), identity)


def open_hdf5(path: str | Path, name: str) -> Column:
    """Return what an HDF5 dataset is, or raise an error that says why it will not do."""
    import h5py  # slow to import, and .npy files do without it

    path = Path(path).absolute()
    with _open(path) as file:
        identity = identify(file.fileno())
    try:
        with h5py.File(path, "r") as opened:
            dataset = opened.get(name)
            if not isinstance(dataset, h5py.Dataset):
                raise ValueError(f"{path} has no dataset {name!r}: it has {_names(opened)}")
            if dataset.file.filename != opened.filename:
                raise ValueError(
                    f"{name!r} in {path} is a link into {dataset.file.filename}: pass that file"
                )
            return _describe(path, name, dataset, identity)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read as HDF5 ({error}): close whatever writes it, or write it again "
            "(an array of numpy's must be named .npy)"
        ) from error


def _open_column(path: str | Path, name: str) -> Column:
    # An .npz archive, so that its error says what it is.
    return open_npy(path) if Path(path).suffix in (".npy", ".npz") else open_hdf5(path, name)


def _open(path: Path) -> BinaryIO:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: pass one file in it")
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}: check the path") from None


def _read_npy_header(path: Path, file: BinaryIO) -> tuple[Any, ...]:
    start = file.read(len(npy.MAGIC_PREFIX))
    file.seek(0)
    if start != npy.MAGIC_PREFIX:
        for magic, what in _OTHER_FORMATS.items():
            if start.startswith(magic):
                raise ValueError(f"{path} is not a .npy file but {what}")
        raise ValueError(
            f"{path} is not a .npy file, it starts with {start!r}: write it with np.save"
        )
    try:
        return _NPY_HEADERS[npy.read_magic(file)](file)
    except KeyError as error:  # version 3 is for names of fields that are not ASCII
        raise ValueError(
            f"{path} has .npy version {error}: save a plain array of numbers"
        ) from None
    except (ValueError, SyntaxError, TokenError) as error:
        raise ValueError(f"{path} has a damaged .npy header ({error}): write it again") from error


def _describe(path: Path, name: str, dataset: Any, identity: Identity) -> Column:
    import h5py

    _check_rows(f"dataset {name!r} of {path}", dataset.shape, dataset.dtype)
    if dataset.id.get_type() != h5py.h5t.py_create(dataset.dtype, logical=True):
        raise ValueError(
            f"dataset {name!r} of {path} has numbers that HDF5 converts to {dataset.dtype} while "
            f"reading: save it as {dataset.dtype}"
        )
    plist = dataset.id.get_create_plist()
    filters = [plist.get_filter(position) for position in range(plist.get_nfilters())]
    for code, _flags, _values, title in filters:
        if not h5py.h5z.filter_avail(code):
            raise ValueError(
                f"dataset {name!r} of {path} needs HDF5 filter {code} ({title.decode()}), which "
                "is not installed: install hdf5plugin and import it first"
            )
    return Column(
        path=path,
        name=name,
        shape=dataset.shape,
        dtype=dataset.dtype,
        # None in chunks and in other files; with a user block, nonsense where nothing was written.
        offset=dataset.id.get_offset() if dataset.id.get_storage_size() > 0 else None,
        chunks=dataset.chunks,
        filters=tuple(code for code, *_ in filters),
        identity=identity,
    )


def _names(file: Any) -> str:
    import h5py

    found: list[str] = []
    file.visititems(
        lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None
    )
    return ", ".join(map(repr, found)) or "none"


def _check_rows(what: str, shape: tuple[int, ...] | None, dtype: np.dtype[Any]) -> None:
    """Raise where an array is not one or more rows of numbers, as torch has them."""
    for wrong, message in _mistakes(shape, dtype):
        if wrong:
            raise ValueError(f"{what} {message}")


def _mistakes(shape: tuple[int, ...] | None, dtype: np.dtype[Any]) -> Iterator[tuple[bool, str]]:
    yield (
        dtype.hasobject,
        "holds Python objects, which are never unpickled here: save an array of numbers",
    )
    numbers = dtype.kind in "biufc" and dtype.char not in "gG"  # torch has no long doubles
    yield not numbers, f"has dtype {dtype}: save an array of plain numbers"
    yield not dtype.isnative, f"has bytes in foreign order ({dtype.str}): save it in native order"
    yield not shape, "is a single value: save an array of rows"
    yield 0 in (shape or ()), f"has no rows to read, its shape is {shape}: make it with some"
