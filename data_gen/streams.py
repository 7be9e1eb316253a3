"""Data that can only be read in order: a table, a folder of shards, and a log that still grows.

Each is made from data that `ensure` has made, row by row; table and shards are put in place whole,
by one rename. What is there already is left as it is, if it was made from the same data.
"""

import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data_gen.generated import GeneratedData
from data_gen.paths import LOCK, MAKING
from data_gen.stream import spans
from data_gen.whole_numbers import whole_number
from helpers.running.interrupts import interrupts_held
from helpers.system.files import absolute_path, errors_named
from helpers.system.locks import wait_for_lock

_MADE_FROM = "made_from.json"  # in a folder of shards
_PIECE_BYTES = 10_000  # of a log at a time: it ends anywhere in a record


def write_table(data: GeneratedData, path: str | Path) -> Path:
    """Return a SQLite file with the table `samples (id, label, row)`, made now if it is not there.

    `id` is the row's index, the table's key; `row` holds its float32 values as bytes. Raises
    FileExistsError where another file is there.
    """

    def write(target: Path) -> None:
        with closing(sqlite3.connect(target)) as table, table:
            table.execute("CREATE TABLE made_from (recipe TEXT)")
            table.execute("INSERT INTO made_from VALUES (?)", (repr(data.recipe),))
            table.execute("CREATE TABLE samples (id INTEGER PRIMARY KEY, label INTEGER, row BLOB)")
            table.executemany("INSERT INTO samples VALUES (?, ?, ?)", _table_rows(data))

    return _put_in_place(absolute_path(path), data, _recipe_of_table, write)


def write_shards(data: GeneratedData, folder: str | Path, *, shards: int = 40) -> list[Path]:
    """Return the files of a folder of shards, made now if it is not there.

    Each is a .npy file of records with the fields "row", "label" and "id" (see `record_type`),
    and holds neighbouring rows, about equally many. Raises ValueError for more shards than rows,
    and FileExistsError where another folder is there.
    """
    shards, folder = whole_number("shards", shards), absolute_path(folder)
    if not 1 <= shards <= data.rows:
        raise ValueError(f"shards={shards}: pass 1 to {data.rows}, the number of rows")
    names = [f"shard-{number:03d}.npy" for number in range(shards)]

    def write(target: Path) -> None:
        target.mkdir()
        edges = np.linspace(0, data.rows, shards + 1).astype(int)
        for name, (start, stop) in zip(names, pairwise(edges), strict=True):
            np.save(target / name, _records(data, range(start, stop)))
        (target / _MADE_FROM).write_text(json.dumps([repr(data.recipe), shards]), "utf-8")

    def made_from(found: Path) -> str | None:
        try:
            recipe, number = json.loads((found / _MADE_FROM).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return str(recipe) if number == shards else ""

    _put_in_place(folder, data, made_from, write)
    return [folder / name for name in names]


def append_log(data: GeneratedData, path: str | Path, *, seconds: float = 2.0) -> None:
    """Append all rows to a log in `seconds`, as a program does that goes on working.

    Records (see `record_type`) follow each other without a header. They are written in pieces that
    end anywhere, so a reader meets a last record that is not whole yet.
    """
    path = absolute_path(path)
    started, written, total = time.monotonic(), 0, data.rows * record_type(data).itemsize
    with errors_named(path, "written"), path.open("ab", buffering=0) as log:
        for span in spans(data.rows, record_type(data).itemsize):
            content = _records(data, span).tobytes()
            for start in range(0, len(content), _PIECE_BYTES):
                written += log.write(content[start : start + _PIECE_BYTES])
                time.sleep(max(started + seconds * written / total - time.monotonic(), 0))


def record_type(data: GeneratedData) -> "np.dtype[Any]":
    """Return the type of a record in shards and logs: "row" (float32, of its shape), "label", "id".

    `id` is the row's index.
    """
    return np.dtype([("row", np.float32, data.row_shape), ("label", np.int64), ("id", np.int64)])


def _records(data: GeneratedData, rows: range) -> NDArray[Any]:
    records = np.empty(len(rows), record_type(data))
    records["row"], records["label"] = data.expected_rows(rows), data.expected_labels(rows)
    records["id"] = rows
    return records


def _table_rows(data: GeneratedData) -> Iterator[tuple[int, int, bytes]]:
    for span in spans(data.rows, data.recipe.row_bytes):
        rows, labels = data.expected_rows(span), data.expected_labels(span)
        for index, label, row in zip(span, labels.tolist(), rows, strict=True):
            yield index, label, row.tobytes()


def _recipe_of_table(path: Path) -> str | None:
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as table:
            return str(table.execute("SELECT recipe FROM made_from").fetchone()[0])
    except (sqlite3.Error, TypeError):
        return None


def _put_in_place(
    path: Path,
    data: GeneratedData,
    made_from: Callable[[Path], str | None],
    write: Callable[[Path], None],
) -> Path:
    """Return the path, written now if what is there was not made from this data.

    `made_from` returns the recipe of what is there, or None where it is not ours.
    """
    making = path.with_name(f".{path.name}{MAKING}")
    with errors_named(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with wait_for_lock(path.with_name(f".{path.name}{LOCK}")):
            found = made_from(path) if path.exists() else ""
            if found is None:
                raise FileExistsError(f"{path} was not made by data_gen: pass another path")
            if found == repr(data.recipe):
                return path
            try:
                _remove(making)  # a killed process has left it
                write(making)
                _remove(path)
                making.rename(path)
            finally:
                with interrupts_held():
                    _remove(making)
    return path


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}-journal").unlink(missing_ok=True)  # of SQLite
