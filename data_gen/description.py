"""The small .json file beside the data that says what the data was made from.

It is read as something that anybody may have edited: what data_gen would not have written is named.
"""

import json
import os
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from data_gen.generated import GeneratedData
from data_gen.layouts import Layout, choose_layout
from data_gen.paths import DatasetPaths
from data_gen.recipe import Recipe
from helpers.system.files import absolute_path, errors_named, regular_file

_MAKER = "data_gen 1"  # another number where the same recipe comes to give other bytes
_NAME = re.compile(r"(features|spectrograms).*\.json")
_MOST_BYTES = 1 << 16  # a description has a few hundred


def made_from(paths: DatasetPaths) -> dict[str, Any]:
    """Return everything that decides the bytes of the data, as it is read back from JSON."""
    parts = {"made_by": _MAKER, **asdict(paths.recipe), **asdict(paths.layout)}
    as_read_back: dict[str, Any] = json.loads(json.dumps(parts))
    return as_read_back


def write_description(path: Path, paths: DatasetPaths, files: dict[str, int]) -> None:
    """Write what the data was made from, and the bytes of each of its files."""
    described = {"made_from": made_from(paths), "files": files}
    path.write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")


def read_description(path: Path) -> dict[str, Any] | None:
    """Return {"made_from": ..., "files": {name: bytes}}, or None where there is no description.

    Raises FileExistsError for what data_gen has not written as it is. One by another version has
    only its files checked.
    """
    if not os.path.lexists(path):
        return None
    with errors_named(path, "read"), plain_file(path).open("rb") as file:
        text = file.read(_MOST_BYTES)
    try:
        described: dict[str, Any] = json.loads(text)
        maker, files = described["made_from"]["made_by"], described["files"]
        ours = maker.startswith("data_gen ") and all(type(size) is int for size in files.values())
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        ours = False  # the last: thousands of brackets
    if ours and maker == _MAKER:
        paths = _described_paths(path, described)
        ours = paths.description_path.name == path.name and set(files) == set(paths.names)
    if not ours:
        raise foreign(path)
    return described


def descriptions_in(folder: Path) -> list[Path]:
    """Return the descriptions in a folder. Raises FileNotFoundError where there is none."""
    with errors_named(folder, "looked through"):
        found = sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))
    if not found:
        raise FileNotFoundError(
            f"{folder} holds no description of data (features.json, spectrograms.json and the "
            "like): pass the folder that the data was made in"
        )
    return found


def described_data(path: Path) -> GeneratedData:
    """Return the data that a description stands beside. Raises as `read_description` does."""
    described = read_description(path)
    if described is None:
        raise FileNotFoundError(f"{path} does not exist: make the data again")
    return _described_paths(absolute_path(path), described).data


def plain_file(path: Path) -> Path:
    """Return the path of a file; what is none, in the place of one, is not ours to replace."""
    try:
        return regular_file(path)
    except PermissionError:
        raise
    except OSError as error:  # a folder, a pipe, a link to nowhere
        raise foreign(path) from error


def foreign(path: Path) -> FileExistsError:
    """Return the error about a file that is not data_gen's to replace."""
    return FileExistsError(
        f"{path} was not made by data_gen, or was changed: move it, or pass another folder"
    )


def _described_paths(path: Path, described: dict[str, Any]) -> DatasetPaths:
    """Return the recipe, layout and paths of the data that a description stands beside."""
    parts = described["made_from"]
    try:
        recipe = Recipe(**{field.name: parts[field.name] for field in fields(Recipe)})
        method, level = parts["compression"], parts["level"]
        compression = method if level is None else f"{method}:{level}"
        layout: Layout = choose_layout(parts["format"], recipe, parts["chunks"], compression)
        paths = DatasetPaths(path.parent, recipe, layout)
        if json.dumps(made_from(paths), sort_keys=True) == json.dumps(parts, sort_keys=True):
            return paths
    except (ValueError, TypeError, KeyError) as error:
        raise foreign(path) from error
    raise foreign(path)  # values that data_gen does not write
