"""How rows lie in a file: npy or HDF5, in which chunks, under which compression."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from data_gen.recipe import Recipe
from data_gen.whole_numbers import whole_numbers
from helpers.units import format_bytes

Compression = Literal["lzf", "gzip"]

_MOST_CHUNK_BYTES = 1 << 24  # a few chunks are in memory at a time
_GZIP = re.compile(r"gzip(?::([0-9]))?")


@dataclass(frozen=True, slots=True)
class Layout:
    """A file format and, for HDF5, chunks (None: contiguous) and compression."""

    format: Literal["npy", "hdf5"] = "npy"
    chunks: tuple[int, ...] | None = None
    compression: Compression | None = None
    level: int | None = None  # of gzip: 0 to 9

    @property
    def suffix(self) -> str:
        """Return what tells this layout in a file's name: '-chunks512x128-gzip4.h5', '.npy'."""
        if self.format == "npy":
            return ".npy"
        if self.chunks is None:
            return "-contiguous.h5"
        filtered = f"-{self.compression}{'' if self.level is None else self.level}"
        return f"-chunks{'x'.join(map(str, self.chunks))}{filtered if self.compression else ''}.h5"


def choose_layout(
    file_format: str, recipe: Recipe, chunks: Sequence[int] | str | None, compression: str | None
) -> Layout:
    """Return the layout that was asked for, or raise ValueError saying what does not fit."""
    if file_format == "npy":
        if chunks is not None or compression not in (None, "none"):
            raise ValueError(
                f"npy has no chunks ({chunks}) and no compression ({compression}): "
                "leave them out, or pass format 'hdf5'"
            )
        return Layout()
    if file_format != "hdf5":
        raise ValueError(f"format {file_format!r} is unknown: pass 'npy' or 'hdf5'")
    method, level = _parse_compression(compression)
    if chunks is None and method is not None:
        chunks = "auto"  # HDF5 compresses chunk by chunk; h5py does the same
    if isinstance(chunks, str):
        chunks = _chunks_from_text(chunks, recipe)
    if chunks is None:
        return Layout("hdf5")
    fitting = whole_numbers("chunks", chunks)
    _check_chunks(fitting, recipe)
    return Layout("hdf5", fitting, method, level)


def _parse_compression(compression: str | None) -> tuple[Compression | None, int | None]:
    if compression in (None, "none"):
        return None, None
    if compression == "lzf":
        return "lzf", None
    match = _GZIP.fullmatch(str(compression))
    if match is None:
        raise ValueError(
            f"compression {compression!r} is unknown: pass 'none', 'lzf' or 'gzip:4' (0 to 9)"
        )
    return "gzip", int(match[1] or 4)


def _chunks_from_text(text: str, recipe: Recipe) -> tuple[int, ...]:
    if text != "auto":
        return parse_shape(text, "chunks")
    import h5py  # slow to import, and only this asks it

    with h5py.File("chunks", "w", driver="core", backing_store=False) as memory:
        rows = memory.create_dataset(
            "rows", (recipe.count, *recipe.row_shape), "float32", chunks=True
        )
        return tuple(int(size) for size in rows.chunks)


def parse_shape(text: str, what: str) -> tuple[int, ...]:
    """Return '64,64' as (64, 64)."""
    try:
        return tuple(int(size) for size in text.replace("x", ",").split(","))
    except ValueError:
        raise ValueError(f"{what} {text!r} is not a shape: write it as 64,64") from None


def _check_chunks(chunks: tuple[int, ...], recipe: Recipe) -> None:
    shape = (recipe.count, *recipe.row_shape)
    if len(chunks) != len(shape) or not all(
        1 <= chunk <= size for chunk, size in zip(chunks, shape, strict=True)
    ):
        raise ValueError(
            f"chunks {chunks} do not fit data of shape {shape}: "
            f"pass {len(shape)} numbers from 1 up to the data's own"
        )
    if 4 * math.prod(chunks) > _MOST_CHUNK_BYTES:
        raise ValueError(
            f"a chunk of {chunks} takes {format_bytes(4 * math.prod(chunks))}: "
            f"pass chunks of at most {format_bytes(_MOST_CHUNK_BYTES)}"
        )
