"""What lies on the disk: the same rows in every format that somebody reads."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from data_gen import Recipe, ensure

from .launch import Child
from .records import Job, Source

_CHUNK_BYTES = 1 << 18  # of HDF5 chunks: 512 rows of 512 bytes
_MAKING_SECONDS = 3600.0
_STAMP = "whole.json"


@dataclass(frozen=True, slots=True)
class Store:
    """A format. Ours are written by data_gen, a peer's by the module that reads it."""

    name: str
    module: str = ""  # in contestants/, with a function make()
    chunked: bool = False
    compression: str | None = None
    extra_row_bytes: int = 16  # beside the values of a row: headers, indices, padding

    def bytes_on_disk(self, recipe: Recipe) -> int:
        """Return about what it takes, and never much less."""
        return recipe.count * (recipe.row_bytes + self.extra_row_bytes)


_ALL = (
    Store("npy"),
    Store("hdf5"),
    Store("hdf5-lzf", chunked=True, compression="lzf"),
    Store("hdf5-gzip", chunked=True, compression="gzip:4"),
    Store("tensordict", "tensordict"),
    Store("zarr", "zarr"),
    Store("parquet", "parquet"),
    Store("huggingface", "huggingface"),
    Store("webdataset", "webdataset", extra_row_bytes=2048),  # two tar headers, padded to 512
    Store("litdata", "litdata", extra_row_bytes=64),
    Store("mosaicml", "mosaicml", extra_row_bytes=64),
    Store("grain", "grain", extra_row_bytes=64),
)
STORES = {store.name: store for store in _ALL}


def find_store(store: Store, source: Source, child: Child) -> Source:
    """Return the source with the paths of its files, made now if they are not there.

    A peer's are made by a process of its own environment.
    """
    if not store.module:
        return _ensure(store, source)
    stamp = source.folder / _STAMP
    asked = json.dumps([repr(source.recipe), source.block_rows])
    if not stamp.exists() or stamp.read_text() != asked:
        shutil.rmtree(source.folder, ignore_errors=True)
        source.folder.mkdir(parents=True)
        child.ask(Job("make", store.module, "", source), patience=_MAKING_SECONDS)
        stamp.write_text(asked)
    return source


def files_of(source: Source) -> list[Path]:
    """Return the files whose pages are dropped or fetched before a measurement."""
    return sorted(path for path in source.folder.rglob("*") if path.is_file())


def _ensure(store: Store, source: Source) -> Source:
    recipe = source.recipe
    chunk_rows = max(1, min(_CHUNK_BYTES // recipe.row_bytes, recipe.count))
    made = ensure(
        "npy" if store.name == "npy" else "hdf5",
        source.folder,
        rows=recipe.count,
        row_shape=recipe.row_shape,
        seed=recipe.seed,
        classes=recipe.classes,
        order=recipe.order,
        chunks=(chunk_rows, *recipe.row_shape) if store.chunked else None,
        compression=store.compression,
        progress=False,
    )
    return replace(source, rows_path=made.rows_path, labels_path=made.labels_path)
