"""Tell data that is whole from data that is not there, not ours, or damaged; put new data in place.

A small .json file beside the data says what it was made from. When data is put in place, the old
rows go first, then comes the description, then the labels, and the rows last, each by one rename.
So rows beside a description that fits them are whole, at whatever moment a process was killed.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from data_gen.description import foreign, made_from, read_description, write_description
from data_gen.paths import DatasetPaths
from helpers.system.files import regular_file


def is_complete(paths: DatasetPaths) -> bool:
    """Return whether the data is there; False if it may be made: not there, or of another recipe.

    Raises FileExistsError for a file that data_gen has not made, ValueError for a damaged one.
    """
    described = read_description(paths.description_path)
    present = [name for name in paths.names if os.path.lexists(paths.folder / name)]
    if described is None and present:
        raise foreign(paths.folder / present[0])
    if described is None:
        return False
    for name in present:
        _check_size(paths.folder / name, described["files"].get(name))
    if described["made_from"] != made_from(paths) or len(present) < len(paths.names):
        return False
    for path, right, found in _compare_some(paths):
        if found.shape != right.shape or not np.array_equal(found, right):
            raise _damaged(path, "its values are not those it was made with")
    return True


def describe_other(paths: DatasetPaths) -> str:
    """Return what tells the data that is there from the paths: 'seed 1 (now 0)', or ''."""
    described = read_description(paths.description_path) or {"made_from": {}}
    old, new = described["made_from"], made_from(paths)
    return ", ".join(f"{k} {old[k]} (now {new[k]})" for k in new if k in old and old[k] != new[k])


def put_in_place(paths: DatasetPaths) -> None:
    """Move the finished files out of `paths.making` into the folder, over older data of ours."""
    files = {name: (paths.making / name).stat().st_size for name in paths.names}
    description = paths.making / paths.description_path.name
    write_description(description, paths, files)
    for name in reversed(paths.names):
        (paths.folder / name).unlink(missing_ok=True)
    for name in (description.name, *paths.names):
        (paths.making / name).replace(paths.folder / name)


def _check_size(path: Path, expected: int | None) -> None:
    try:
        size = regular_file(path).stat().st_size
    except PermissionError:
        raise
    except OSError as error:  # a folder, a pipe, a link to nowhere
        raise foreign(path) from error
    if size != expected:
        raise _damaged(path, f"it has {size:,} bytes and was made with {expected or 0:,}")


def _compare_some(paths: DatasetPaths) -> Iterator[tuple[Path, NDArray[Any], NDArray[Any]]]:
    """Yield a few rows and labels: as they should be, and as they are in the files."""
    recipe, count = paths.recipe, paths.recipe.count
    some = sorted({0, count // 2, count - 1})
    rows_path, labels_path = (paths.folder / n for n in (paths.rows_name, paths.labels_name))
    read = _read_npy if paths.layout.format == "npy" else _read_hdf5
    for path, name, right in (
        (rows_path, "rows", recipe.rows(some)),
        (labels_path, "labels", recipe.labels(some)),
    ):
        try:
            yield path, right, read(path, name, some, count)
        except PermissionError:
            raise  # it may be whole all the same
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise _damaged(path, f"it cannot be read ({error})") from error


def _read_npy(path: Path, _name: str, some: list[int], count: int) -> NDArray[Any]:
    with path.open("rb") as file:  # seek and read: a map would read far ahead around each row
        npy.read_magic(file)
        shape, fortran_order, dtype = npy.read_array_header_1_0(file)
        if shape[0] != count or fortran_order:
            raise ValueError(f"an array of shape {shape}")
        start, row_bytes = file.tell(), dtype.itemsize * int(np.prod(shape[1:]))
        found = []
        for index in some:
            file.seek(start + index * row_bytes)
            found.append(np.frombuffer(file.read(row_bytes), dtype).reshape(shape[1:]))
    return np.stack(found)


def _read_hdf5(path: Path, name: str, some: list[int], count: int) -> NDArray[Any]:
    import h5py  # slow to import, and only HDF5 needs it

    with h5py.File(path, "r") as file:
        if len(file[name]) != count:
            raise ValueError(f"{len(file[name])} {name}")
        return np.stack([file[name][index] for index in some])


def _damaged(path: Path, what: str) -> ValueError:
    return ValueError(f"{path} was changed or cut short, {what}: delete it and make it again")
