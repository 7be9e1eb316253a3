"""What `shuffle` reads and writes: the arrays of a file, and the same rows in another order."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from data_gen.permutation import Permutation, gather, scatter
from data_gen.stream import spans
from data_gen.writers import Tick, write_npy
from helpers.system.files import open_regular

if TYPE_CHECKING:
    from helpers.loaders.columns import Column

_READ_BYTES = 1 << 25


def tables_of(path: Path) -> "list[Column]":
    """Return the arrays of a file whose rows move together, the largest first.

    Raises ValueError or OSError for a file that cannot be read, or has no rows of numbers.
    """
    from helpers.loaders.columns import open_hdf5, open_npy  # slow: they import torch
    from helpers.loaders.hdf5_files import open_hdf5_file

    if path.suffix in (".npy", ".npz"):
        return [open_npy(path)]
    with open_hdf5_file(path) as file:
        found = sorted(_datasets(file), key=lambda dataset: dataset.nbytes, reverse=True)
        names = [each.name for each in found if each.shape[0] == found[0].shape[0]]
    if not names:
        raise ValueError(f"{path} has no dataset with rows: pass a file that has one")
    return [open_hdf5(path, name.lstrip("/")) for name in names]


def shuffle_npy(path: Path, table: "Column", order: Permutation, *, tick: Tick) -> None:
    """Write the rows of a .npy file to a new one in another order."""
    write_npy(
        path,
        _shuffled(table, _npy_blocks(table), path, order, tick),
        table.shape,
        table.dtype,
        tick,
    )


def shuffle_hdf5(path: Path, *, tables: "list[Column]", order: Permutation, tick: Tick) -> None:
    """Write an HDF5 file anew, the rows of `tables` in another order and all else as it is.

    In a process that can be lost: see `hdf5_process`.
    """
    import h5py

    from helpers.loaders.hdf5_files import open_hdf5_file

    by_name = {f"/{table.name}": table for table in tables}
    target = h5py.File(path, "w")  # not `with`: after an error, to close it may crash
    with open_hdf5_file(tables[0].path) as source:
        _copy_attributes(source, target)
        _copy_the_rest(source, target, by_name)
        for name, table in by_name.items():
            new = _like(source[name], target, name)
            blocks = _hdf5_blocks(source[name], table)
            start = 0
            for rows in _in_bands(_shuffled(table, blocks, path, order, tick), table.chunk_rows):
                new[start : start + len(rows)] = rows
                start += len(rows)
                tick(rows.nbytes)
    target.close()


def _shuffled(
    table: "Column", blocks: Iterator[Any], path: Path, order: Permutation, tick: Tick
) -> Iterator[Any]:
    """Yield the rows of a table in their new order, some at a time, by way of a file."""
    scattered = path.with_name("scattered")
    as_bytes = (np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8) for rows in blocks)
    scatter(as_bytes, order, scattered, tick)
    table.check_unchanged()
    for rows in gather(scattered, table.row_bytes, order):
        yield rows.view(table.dtype).reshape(-1, *table.shape[1:])
    scattered.unlink()


def _npy_blocks(table: "Column") -> Iterator[Any]:
    with open_regular(table.path) as file:
        file.seek(table.offset or 0)
        for span in spans(table.rows, table.row_bytes, _READ_BYTES):
            content = file.read(len(span) * table.row_bytes)
            yield np.frombuffer(content, table.dtype).reshape(len(span), -1)


def _hdf5_blocks(dataset: Any, table: "Column") -> Iterator[Any]:
    for band in spans(
        -(-table.rows // table.chunk_rows), table.chunk_rows * table.row_bytes, _READ_BYTES
    ):
        yield dataset[band.start * table.chunk_rows : band.stop * table.chunk_rows]


def _in_bands(blocks: Iterator[Any], chunk_rows: int) -> Iterator[Any]:
    """Yield the same rows cut at the edges of chunks, so that each chunk is written once."""
    rest = None
    for rows in blocks:
        rows = rows if rest is None else np.concatenate([rest, rows])
        whole = len(rows) - len(rows) % chunk_rows
        if whole:
            yield rows[:whole]
        rest = rows[whole:]
    if rest is not None and len(rest):
        yield rest


def _datasets(file: Any) -> list[Any]:
    """Return all datasets that have rows, each once."""
    import h5py

    found: list[Any] = []
    file.visititems(
        lambda _, each: (
            found.append(each) if isinstance(each, h5py.Dataset) and each.shape else None
        )
    )
    return found


def _copy_the_rest(source: Any, target: Any, without: "dict[str, Column]") -> None:
    """Copy groups, and all datasets but some. Links to other files are not followed."""
    import h5py

    def copy(name: str, each: Any) -> None:
        if isinstance(each, h5py.Group):
            _copy_attributes(each, target.require_group(name))
        elif f"/{name}" not in without:
            source.copy(each, target, name)

    source.visititems(copy)


def _like(dataset: Any, target: Any, name: str) -> Any:
    """Return a new dataset of the same shape, type, chunks, filters and attributes."""
    import h5py

    elsewhere = dataset.is_virtual or dataset.external
    layout = (
        h5py.h5p.create(h5py.h5p.DATASET_CREATE) if elsewhere else dataset.id.get_create_plist()
    )
    group = target.require_group(dataset.parent.name)
    leaf = name.rpartition("/")[2].encode()
    kind, space = dataset.id.get_type(), dataset.id.get_space()
    h5py.h5d.create(group.id, leaf, kind, space, layout)
    _copy_attributes(dataset, target[name])
    return target[name]


def _copy_attributes(old: Any, new: Any) -> None:
    """Copy attributes, but for references, which would point into the old file."""
    import h5py

    for name, value in old.attrs.items():
        kind = old.attrs.get_id(name).dtype
        if not kind.hasobject or h5py.check_string_dtype(kind):
            new.attrs[name] = value
