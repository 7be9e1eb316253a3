"""Tell complete data from data that is not there, not ours, or damaged; put new data in place.

A small .json file beside the data says what it was made from. When data is put in place, the old
rows go first, then comes the description, then the labels, and the rows last, each by one rename.
So rows beside a description that fits them are complete, at whatever moment a process was killed.
"""

import os
from pathlib import Path

import numpy as np

from data_gen.description import foreign, made_from, plain_file, read_description, write_description
from data_gen.paths import DatasetPaths
from data_gen.stored import damaged, stored


def is_complete(paths: DatasetPaths) -> bool:
    """Return whether the data is there; False if it may be made: not there, or of another recipe.

    Looked at are the description, the files' sizes, and the first, middle and last row and label:
    `check` compares them all. Raises FileExistsError for a file that data_gen has not made, and
    ValueError for one that was seen to be damaged.
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
    _check_some(paths)
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
    size = plain_file(path).stat().st_size
    if size != expected:
        raise damaged(path, f"it has {size:,} bytes and was made with {expected or 0:,}")


def _check_some(paths: DatasetPaths) -> None:
    """Compare the first, the middle and the last row and label with their right values."""
    recipe, some = paths.recipe, sorted({0, paths.recipe.count // 2, paths.recipe.count - 1})
    for path, name, right in (
        (paths.folder / paths.rows_name, "rows", recipe.rows(some)),
        (paths.folder / paths.labels_name, "labels", recipe.labels(some)),
    ):
        shape = (recipe.count, *right.shape[1:])
        with stored(path, name, shape, right.dtype) as array:
            found = np.concatenate([array.read((slice(row, row + 1),)) for row in some])
        if not np.array_equal(found, right):
            raise damaged(path, "its values are not those it was made with")
