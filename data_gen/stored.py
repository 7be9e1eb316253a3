"""One array in a file, npy or HDF5, read part by part without mapping it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from helpers.system.files import regular_file


class Stored(NamedTuple):
    """An open array: its chunks where it has some, and how a part of it is read."""

    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"
    chunks: tuple[int, ...] | None
    read: Callable[[tuple[slice, ...]], NDArray[Any]]


@contextmanager
def stored(path: Path, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Iterator[Stored]:
    """Open the dataset `name` of an HDF5 file, or the one array of a .npy file.

    Raises OSError for what is no readable file, and ValueError, naming the file, where it holds
    another array or where reading fails within the block.
    """
    regular_file(path)
    try:
        with _opened(path, name) as array:
            if array.shape != shape or array.dtype != dtype:
                raise ValueError(f"{name} of shape {array.shape} and type {array.dtype}")
            yield array
    except PermissionError:
        raise  # it may be right all the same
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise damaged(path, f"it cannot be read ({error})") from error


def damaged(path: Path, what: str) -> ValueError:
    """Return the error about a file that is not as data_gen has made it."""
    return ValueError(f"{path} was changed or cut short, {what}: delete it and make it again")


@contextmanager
def _opened(path: Path, name: str) -> Iterator[Stored]:
    if path.suffix == ".npy":
        with path.open("rb") as file:
            yield _open_npy(file)
        return
    import h5py  # slow to import, and only HDF5 needs it

    with h5py.File(path, "r") as file:
        found = file[name]
        yield Stored(found.shape, found.dtype, found.chunks, found.__getitem__)


def _open_npy(file: BinaryIO) -> Stored:
    npy.read_magic(file)
    shape, fortran_order, dtype = npy.read_array_header_1_0(file)
    if fortran_order:
        raise ValueError("an array in the order of Fortran")
    start, row_bytes = file.tell(), dtype.itemsize * int(np.prod(shape[1:]))

    def read(place: tuple[slice, ...]) -> NDArray[Any]:
        first, stop = place[0].start, place[0].stop
        file.seek(start + first * row_bytes)  # not a map: it would read far ahead, and count as RSS
        content = file.read((stop - first) * row_bytes)
        if len(content) < (stop - first) * row_bytes:
            raise EOFError("it ends too early")
        return np.frombuffer(content, dtype).reshape(-1, *shape[1:])

    return Stored(shape, dtype, None, read)
