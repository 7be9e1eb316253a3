"""Make a dataset once: find it complete, or write it beside and put it in place."""

import shutil
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from data_gen.completeness import describe_other, is_complete, put_in_place
from data_gen.failures import writing_failed
from data_gen.generated import GeneratedData
from data_gen.hdf5_process import write_apart
from data_gen.layouts import choose_layout
from data_gen.paths import LOCK, MAKING, DatasetPaths
from data_gen.progress_bar import Bar
from data_gen.recipe import LabelOrder, Recipe
from data_gen.sizes import count_rows
from data_gen.stream import ahead, spans
from data_gen.whole_numbers import whole_number, whole_numbers
from data_gen.writers import Tick, write_npy
from helpers.disk import free_bytes
from helpers.running.interrupts import interrupts_held
from helpers.system.files import absolute_path
from helpers.system.locks import try_lock, wait_for_lock
from helpers.units import format_bytes

_LABEL_BYTES = 8
_RESERVE = 0.05  # of what is written: for file systems' own needs


def ensure(
    file_format: str,
    folder: str | Path,
    *,
    rows: int | None = None,
    size: str | int | None = None,
    row_shape: Sequence[int] = (128,),
    seed: int = 0,
    chunks: Sequence[int] | str | None = None,
    compression: str | None = None,
    jobs: int = 1,
    progress: bool = True,
    classes: int = 10,
    order: LabelOrder = "shuffled",
    budget: str | int | None = None,
) -> GeneratedData:
    """Return the dataset in `folder`, made now if it is not there: 'npy' or 'hdf5'.

    Pass `rows`, or a `size` of all rows: '4 GiB', '1.5x ram', or '4x budget' with `budget`.
    HDF5 takes `chunks` (a shape, or 'auto' for what h5py would pick; None: contiguous) and
    `compression` ('lzf', 'gzip', 'gzip:9'). `jobs` threads make the rows, and do not change
    their bytes. Rows of one axis are named features, others spectrograms.

    Data that is there is taken when its description fits, its files have the right sizes, and its
    first, middle and last row and label are right; `check` compares all of them.

    Raises ValueError or OSError before any work: for sizes, shapes and layouts that do not fit, too
    little free disk, a folder that cannot be written, files that are not ours, and files that this
    look shows to be damaged. Raises OSError, and leaves nothing, when the disk fills up meanwhile.
    """
    if Path(folder).suffix in (".npy", ".h5"):
        raise ValueError(f"{folder} is a file's name: pass the folder it is to lie in")
    jobs = whole_number("jobs", jobs)
    if jobs < 1:
        raise ValueError(f"jobs={jobs}: pass 1 or more")
    shape = whole_numbers("row_shape", row_shape)
    one = Recipe(1, shape, seed, classes, order)  # judged before its size is a measure
    recipe = replace(one, count=count_rows(rows, size, one.row_bytes, budget))
    layout = choose_layout(file_format, recipe, chunks, compression)
    paths = DatasetPaths(absolute_path(folder), recipe, layout)
    if not _found(paths):
        _make_folder(paths)
        with wait_for_lock(paths.lock):
            if not is_complete(paths):
                _make(paths, jobs=jobs, progress=progress)
    return paths.data


def _found(paths: DatasetPaths) -> bool:
    """Look without the lock: complete data must be found in a folder that cannot be written too."""
    with suppress(OSError, ValueError):  # somebody may be replacing it: judged under the lock
        return is_complete(paths)
    return False


def _make(paths: DatasetPaths, *, jobs: int, progress: bool) -> None:
    _remove_abandoned(paths)
    _check_disk(paths)
    other = describe_other(paths)
    if other:
        sys.stderr.write(f"{paths.rows_name} is made again: {other}\n")
    bar = Bar(paths.rows_name, paths.recipe.nbytes, shown=progress)
    try:
        with bar:
            paths.making.mkdir()
            _write(paths, jobs, bar.update)
        put_in_place(paths)
    except (OSError, RuntimeError) as error:
        told = writing_failed(error, paths.folder / paths.rows_name, bar.done, paths.recipe.nbytes)
        if told is None:
            raise
        raise told from error
    finally:
        with interrupts_held():
            shutil.rmtree(paths.making, ignore_errors=True)


def _write(paths: DatasetPaths, jobs: int, tick: Tick) -> None:
    recipe, rows_path = paths.recipe, paths.making / paths.rows_name
    if paths.layout.format == "hdf5":
        from data_gen.hdf5 import write_hdf5  # h5py is slow to import

        write_apart(
            partial(write_hdf5, recipe=recipe, layout=paths.layout, jobs=jobs), rows_path, tick
        )
        return
    labels = map(recipe.labels, spans(recipe.count, _LABEL_BYTES))
    write_npy(paths.making / paths.labels_name, labels, (recipe.count,), "int64", lambda _: None)
    spans_of_rows = spans(recipe.count, recipe.row_bytes)
    with closing(ahead(recipe.rows, spans_of_rows, jobs=jobs)) as rows:  # ends its threads too
        write_npy(rows_path, rows, (recipe.count, *recipe.row_shape), "float32", tick)


def _remove_abandoned(paths: DatasetPaths) -> None:
    """Remove what killed processes have left in this folder; whoever still works holds a lock."""
    shutil.rmtree(paths.making, ignore_errors=True)
    for left in paths.folder.glob(f".*{MAKING}"):
        with try_lock(left.with_name(left.name.replace(MAKING, LOCK))) as abandoned:
            if abandoned:
                shutil.rmtree(left, ignore_errors=True)


def _make_folder(paths: DatasetPaths) -> None:
    if not paths.folder.exists():
        _check_disk(paths)
    try:
        paths.folder.mkdir(parents=True, exist_ok=True)
        with try_lock(paths.lock):
            pass  # a file of ours can be made here
    except OSError as error:
        raise type(error)(
            f"{paths.folder} cannot be written ({error.strerror}): pass another folder"
        ) from error


def _check_disk(paths: DatasetPaths) -> None:
    needed = int((paths.recipe.nbytes + paths.recipe.count * _LABEL_BYTES) * (1 + _RESERVE))
    free = free_bytes(paths.folder)
    if needed > free:
        raise OSError(
            f"{paths.rows_name} needs {format_bytes(needed)} and the disk of {paths.folder} has "
            f"{format_bytes(free)} free: pass a smaller size, or another folder"
        )
