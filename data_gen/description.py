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

    Raises FileExistsError for what data_gen has not written, and ValueError for a description that
    was edited into what it cannot have written. One by another version has only its files checked.
    """
    if not os.path.lexists(path):
        return None
    described = _parse(_read_small(path))
    try:
        maker = described["made_from"]["made_by"]
        ours = isinstance(maker, str) and maker.startswith("data_gen")
    except (KeyError, TypeError, IndexError):
        ours = False
    if not ours:
        raise foreign(path)
    files = described.get("files")
    if not isinstance(files, dict) or not all(type(size) is int for size in files.values()):
        raise _edited(path, "the sizes of its files")
    if maker == _MAKER:
        paths = _described_paths(path, described)
        if paths.description_path.name != path.name or set(files) != set(paths.names):
            raise _edited(path, "the names of its files")
    return dict(described)


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
        what = "values that data_gen does not write"
    except (ValueError, TypeError, KeyError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else f"{error}"
    raise _edited(path, what)


def _read_small(path: Path) -> str:
    """Return the text of a file that may be anything; what is not a text is told as foreign."""
    try:
        with errors_named(regular_file(path), "read"), path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except PermissionError:
        raise
    except OSError as error:  # a folder, a pipe, a loop of links
        raise foreign(path) from error
    return text.decode("utf-8", "replace") if len(text) <= _MOST_BYTES else ""


def foreign(path: Path) -> FileExistsError:
    """Return the error about a file that is not data_gen's to replace."""
    return FileExistsError(
        f"{path} is in the way, and data_gen did not make it as it is: "
        "move it, or pass another folder"
    )


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # the latter: thousands of brackets
        return None


def _edited(path: Path, what: str) -> ValueError:
    return ValueError(
        f"{path} was edited ({what}): delete it and the data beside it, and make the data again"
    )
