"""What a file of rows says about itself, checked before any work. Nothing here reads a row.

The readers ask once, in their constructor, and keep the answer: shape, dtype, where the rows lie,
and the file's identity, by which a file that has since shrunk, grown or been replaced is noticed.
Nothing is ever unpickled.
"""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

_NPY_HEADERS: dict[tuple[int, int], Callable[[BinaryIO], tuple[Any, ...]]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}
_OTHER_FORMATS = {
    b"\x89HDF": "an HDF5 file: use the HDF5 reader",
    b"PK\x03\x04": "an .npz archive, which cannot be read by rows: save each array with np.save",
    b"\x80": "a Python pickle, which is never opened here: save the array itself with np.save",
}


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What tells a file from another one, and from itself before a change."""

    size: int
    mtime_ns: int
    inode: int
    device: int


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """A .npy file of rows in C order: the first byte of row i lies at `offset + i * row_bytes`."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    nbytes: int  # of all rows
    identity: FileIdentity

    @property
    def row_bytes(self) -> int:
        """Return the bytes of one row."""
        return self.nbytes // self.shape[0]


@dataclass(frozen=True, slots=True)
class Hdf5Header:
    """An HDF5 dataset of rows. `chunks` is None where it is contiguous."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...] | None
    filters: tuple[str, ...]  # in the order they were applied: ("shuffle", "deflate")
    offset: int | None  # of the rows in the file; None where they do not lie in one piece
    nbytes: int  # of all rows, decompressed
    identity: FileIdentity


def identify(file: Path | int) -> FileIdentity:
    """Return the identity of a path, or of the file that is open as a descriptor."""
    stat = os.fstat(file) if isinstance(file, int) else file.stat()
    return FileIdentity(stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_dev)


def check_unchanged(path: Path, noted: FileIdentity, file: int | None = None) -> None:
    """Raise RuntimeError where `path`, or the file open on it, is not what was noted of it."""
    try:
        found = identify(path if file is None else file)
    except FileNotFoundError:
        raise RuntimeError(f"{path} was removed while in use: make the reader again") from None
    if found == noted:
        return
    if (found.inode, found.device) != (noted.inode, noted.device):
        change = "was replaced by another file"
    elif found.size != noted.size:
        verb = "shrank" if found.size < noted.size else "grew"
        change = f"{verb} from {noted.size:,} to {found.size:,} bytes"
    else:
        change = "was written to"
    raise RuntimeError(f"{path} {change} while in use: make the reader again, and start over")


def read_npy_header(path: str | Path) -> NpyHeader:
    """Return where the rows of a .npy file lie, or raise an error that says why it will not do."""
    path = Path(path)
    with _open(path) as file:
        identity = identify(file.fileno())
        shape, fortran_order, dtype = _parse_npy_header(path, file)
        offset = file.tell()
    _check_rows(str(path), shape, dtype)
    if fortran_order and len(shape) > 1:
        raise ValueError(
            f"{path} is in Fortran order, so its rows lie scattered over the whole file: "
            "save np.ascontiguousarray(array)"
        )
    nbytes = math.prod(shape) * dtype.itemsize
    if identity.size != offset + nbytes:
        kind = (
            "was cut short" if identity.size < offset + nbytes else "has something behind its end"
        )
        raise ValueError(
            f"{path} {kind}: an array {shape} of {dtype} makes {offset + nbytes:,} bytes, "
            f"and it has {identity.size:,}: write it again"
        )
    return NpyHeader(shape, dtype, offset, nbytes, identity)


def read_hdf5_header(path: str | Path, name: str) -> Hdf5Header:
    """Return what an HDF5 dataset is, or raise an error that says why it will not do."""
    import h5py  # slow to import, and .npy files do without it

    path = Path(path)
    with _open(path) as file:
        identity = identify(file.fileno())
    try:
        with h5py.File(path, "r") as opened:
            return _describe_dataset(path, name, opened, identity)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read as HDF5 ({error}): close whatever writes it, or write it again"
        ) from error


def _open(path: Path) -> BinaryIO:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: pass one file in it")
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}: check the path") from None


def _parse_npy_header(path: Path, file: BinaryIO) -> tuple[Any, ...]:
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


def _describe_dataset(path: Path, name: str, file: Any, identity: FileIdentity) -> Hdf5Header:
    import h5py

    dataset = file.get(name)
    if not isinstance(dataset, h5py.Dataset):
        raise ValueError(f"{path} has no dataset {name!r}: it has {_dataset_names(file)}")
    _check_rows(f"dataset {name!r} of {path}", dataset.shape, dataset.dtype)
    plist = dataset.id.get_create_plist()
    filters = [plist.get_filter(position) for position in range(plist.get_nfilters())]
    for code, _flags, _values, title in filters:
        if not h5py.h5z.filter_avail(code):
            raise ValueError(
                f"dataset {name!r} of {path} needs HDF5 filter {code} ({title.decode()}), which "
                "is not installed: install hdf5plugin and import it first"
            )
    in_one_piece = (
        plist.get_layout() == h5py.h5d.CONTIGUOUS
        and dataset.id.get_storage_size() > 0  # else never written: then an offset is no place
    )
    return Hdf5Header(
        dataset.shape,
        dataset.dtype,
        dataset.chunks,
        tuple(title.decode() for *_, title in filters),
        dataset.id.get_offset() if in_one_piece else None,
        math.prod(dataset.shape) * dataset.dtype.itemsize,
        identity,
    )


def _dataset_names(file: Any) -> str:
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
