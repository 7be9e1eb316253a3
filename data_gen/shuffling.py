"""Shuffle a file once, when the data is written: then training reads it in order, at full speed.

`shuffle` takes `.npy` and HDF5 files of the reader's own. See `permutation` for the method.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data_gen.failures import writing_failed
from data_gen.hdf5_process import write_apart
from data_gen.permutation import BUCKET_BYTES, Permutation
from data_gen.placement import place, placing, take_back_half, unfinished
from data_gen.progress_bar import Bar
from data_gen.shuffled_files import shuffle_hdf5, shuffle_npy, tables_of
from data_gen.whole_numbers import whole_number
from data_gen.writers import Tick
from helpers.disk import free_bytes
from helpers.system.files import absolute_path, errors_named
from helpers.units import format_bytes

if TYPE_CHECKING:
    from helpers.loaders.columns import Column

    Tables = Mapping[Path, list[Column]]

_RESERVE = 0.05  # of what is written: for file systems' own needs


@dataclass(frozen=True, slots=True, repr=False)
class Shuffled:
    """What was shuffled, and where it lies now."""

    paths: tuple[Path, ...]
    rows: int
    names: tuple[str, ...]  # of the datasets and files whose rows were moved together

    def __repr__(self) -> str:
        files = ", ".join(path.name for path in self.paths)
        return f"{files}: {self.rows:,} rows in random order ({', '.join(self.names)})"


def shuffle(
    source: str | Path,
    target: str | Path,
    *,
    also: Mapping[Any, str | Path] | None = None,
    seed: int = 0,
    overwrite: bool = False,
    progress: bool = True,
) -> Shuffled:
    """Write the rows of `source` to the new file `target` in random order, in constant memory.

    `source` is a .npy file, or an HDF5 file: there all datasets with as many rows as the largest
    one are shuffled together, in their chunks and filters, and everything else is copied as it is.
    `also` names further files with as many rows, such as the labels of a .npy file, and where they
    go: {"labels.npy": "shuffled-labels.npy"}; a row and its label stay together.

    The same seed gives the same order for as many rows of the same size (with numpy's generator,
    which may change with its major versions). Memory stays near 300 MiB up to files of 128 GiB.
    The disk of `target` needs twice the data for a while.

    Raises ValueError or OSError before any work: for what is no array of rows of numbers, files of
    other lengths, a target that is there (unless `overwrite`) or is a source, and too little disk.
    Raises OSError, and leaves nothing, when the disk fills up meanwhile. Where it is killed, no
    target is left without the others once it is called again, and `target` never is.
    """
    seed = whole_number("seed", seed)
    if seed < 0:
        raise ValueError(f"seed={seed}: pass 0 or more")
    pairs = _pairs([(source, target), *(also or {}).items()])
    take_back_half([*pairs.values()])
    _check_targets(pairs, overwrite)
    tables = {path: tables_of(path) for path in pairs}
    order = _order(tables, seed)
    _check_disk(pairs, tables)
    _make(pairs, tables, order, overwrite=overwrite, progress=progress)
    names = [table.name or path.name for path, found in tables.items() for table in found]
    return Shuffled(tuple(pairs.values()), order.count, tuple(names))


def _pairs(given: Iterable[tuple[str | Path, str | Path]]) -> dict[Path, Path]:
    pairs: dict[Path, Path] = {}
    for source, target in given:
        if absolute_path(source) in pairs:
            raise ValueError(f"{source} is to be shuffled twice: name each file once")
        pairs[absolute_path(source)] = absolute_path(target)
    return pairs


def _order(tables: "Tables", seed: int) -> Permutation:
    first = next(iter(tables.values()))[0]
    for path, (largest, *_) in tables.items():
        if largest.rows != first.rows:
            raise ValueError(
                f"{path} has {largest.rows:,} rows and {first.path} has {first.rows:,}: "
                "pass files of equally many rows"
            )
    return Permutation.of(first.rows, first.row_bytes, seed, BUCKET_BYTES)


def _check_targets(pairs: Mapping[Path, Path], overwrite: bool) -> None:
    targets = list(pairs.values())
    for source, target in pairs.items():
        if target in pairs or targets.count(target) > 1:
            raise ValueError(f"{target} is to be read or written twice: pass another target")
        if (source.suffix == ".npy") != (target.suffix == ".npy"):
            raise ValueError(f"{target} is another format than {source}: pass the same ending")
        if not target.parent.is_dir():
            raise FileNotFoundError(f"{target.parent} is no folder: make it, or pass another")
        if target.is_dir() or (target.exists() and not overwrite):
            advice = "pass another target" if target.is_dir() else "delete it, or pass overwrite"
            raise FileExistsError(f"{target} is there already: {advice}")
        with errors_named(source):
            if target.exists() and target.samefile(source):
                raise ValueError(f"{target} and {source} are one file: pass another target")


def _check_disk(pairs: Mapping[Path, Path], tables: "Tables") -> None:
    by_disk: dict[int, list[Path]] = {}
    for source, target in pairs.items():
        by_disk.setdefault(target.parent.stat().st_dev, []).append(source)
    for sources in by_disk.values():
        largest = max(_nbytes(tables[source][0]) for source in sources)
        needed = int((largest + sum(path.stat().st_size for path in sources)) * (1 + _RESERVE))
        folder = pairs[sources[0]].parent
        if needed > (free := free_bytes(folder)):
            raise OSError(
                f"shuffling needs {format_bytes(needed)} for a while and the disk of {folder} has "
                f"{format_bytes(free)} free: free some, or pass a target on another disk"
            )


def _nbytes(table: "Column") -> int:
    return table.rows * table.row_bytes


def _make(
    pairs: Mapping[Path, Path],
    tables: "Tables",
    order: Permutation,
    *,
    overwrite: bool,
    progress: bool,
) -> None:
    targets = list(pairs.values())
    total = 2 * sum(_nbytes(table) for found in tables.values() for table in found)
    bar = Bar(targets[0].name, total, shown=progress)
    with errors_named(targets[0].parent, "write"), placing(targets):
        _check_targets(pairs, overwrite)  # another process may have made them meanwhile
        try:
            with bar:
                for source, found in tables.items():
                    _write(found, unfinished(pairs[source]), order, bar.update)
            place(targets)
        except (OSError, RuntimeError) as error:
            raise writing_failed(error, targets[0], bar.done, total) or error from error


def _write(found: "list[Column]", path: Path, order: Permutation, tick: Tick) -> None:
    if path.suffix == ".npy":
        shuffle_npy(path, found[0], order, tick=tick)
    else:
        write_apart(partial(shuffle_hdf5, tables=found, order=order), path, tick)
