"""HDF5 files: opened with errors that tell the cause, and followed to where their rows really lie.

Of rows that lie elsewhere (virtual datasets, external files), HDF5 hands out fill values where a
file is missing or short. So whatever a dataset rests on is found and checked before.
"""

import errno
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helpers.loaders.contents import looks_like
from helpers.system.files import open_regular

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_PLUGIN = (
    "pip install hdf5plugin, and `import hdf5plugin` in the module that defines the dataset, so "
    "that workers import it too"
)


@contextmanager
def open_hdf5_file(path: Path, **how: Any) -> Iterator[Any]:
    """Open an HDF5 file to read it. Raises OSError or ValueError with the cause and the cure."""
    import h5py  # slow to import, and .npy files do without it

    with open_regular(path) as file:  # a plain cause has a plain error
        # The user's own block may come before the signature.
        for place in (0, *(512 << step for step in range(20))):
            file.seek(place)
            if file.read(len(_SIGNATURE)) == _SIGNATURE:
                break
        else:
            file.seek(0)
            raise ValueError(f"{path} is not HDF5 but {looks_like(file.read(64))}")
    try:
        opened = h5py.File(path, "r", **how)
    except OSError as error:
        raise _explained(path, error) from error
    with opened:
        yield opened


def get_dataset(file: Any, path: Path, name: str) -> Any:
    """Return a dataset of an open file. Raises ValueError where it cannot be read."""
    import h5py

    try:
        dataset = file.get(name)
    except OSError as error:
        raise ValueError(f"{name!r} of {path} is damaged ({error}): write it again") from error
    if not isinstance(dataset, h5py.Dataset):
        raise ValueError(f"{path} has no dataset {name!r}: it has {_names(file)}")
    if dataset.file.filename != file.filename:
        raise ValueError(
            f"{name!r} in {path} is a link into {dataset.file.filename}: pass that file"
        )
    plist = dataset.id.get_create_plist()
    for position in range(plist.get_nfilters()):
        code, _flags, _values, title = plist.get_filter(position)
        if not h5py.h5z.filter_avail(code):
            needed = f"HDF5 filter {code} ({title.decode() or 'without a name'})"
            raise ValueError(
                f"dataset {name!r} of {path} needs {needed}, which this process has not loaded: "
                f"{_PLUGIN}"
            )
    return dataset


def files_behind(path: Path, dataset: Any) -> list[Path]:
    """Return the other files in which a dataset's rows lie. Raises an error if any are missing."""
    found: dict[Path, None] = {}  # in their order, each once
    _follow(path, dataset, found, {(path, dataset.name)})
    return [other for other in found if other != path]


def reading_advice(error: Exception) -> str:
    """Return what to do where rows cannot be read."""
    if "plugin" in str(error) or "required filter" in str(error):
        return f"HDF5 has a filter that this process has not loaded: {_PLUGIN}"
    return "check the disk, or write the file again"


def _explained(path: Path, error: OSError) -> Exception:
    text = str(error)
    locked = "unable to lock file" in text
    if locked and error.errno not in (errno.EAGAIN, errno.EACCES):
        return OSError(
            f"{path} lies on a file system that cannot lock files ({error}): set the environment "
            "variable HDF5_USE_FILE_LOCKING=FALSE before Python starts"
        )
    if locked or "already open" in text:
        return OSError(
            f"{path} is open in a program that writes it ({error}): close it there; if that was "
            "killed, run h5clear -s on the file"
        )
    kind = "was cut short" if "truncated" in text else "is damaged"
    return ValueError(f"{path} {kind} ({error}): copy it again, or write it again")


def _follow(path: Path, dataset: Any, found: dict[Path, None], seen: set[tuple[Path, str]]) -> None:
    what = f"dataset {dataset.name!r} of {path}"
    left = math.prod(dataset.shape or ()) * dataset.dtype.itemsize
    for name, offset, size in dataset.external or ():
        other = _find(what, name, _external_places(path, name))
        needed = offset + min(size, left)
        left -= min(size, left)
        if other.stat().st_size < needed:
            raise ValueError(
                f"{other} was cut short: {what} has rows in its first {needed:,} bytes, and it has "
                f"{other.stat().st_size:,}: write it again"
            )
        found[other] = None
    for part in dataset.virtual_sources() if dataset.is_virtual else ():
        if "%b" in part.file_name.replace("%%", "") + part.dset_name.replace("%%", ""):
            raise ValueError(
                f"{what} takes its rows from any files named {part.file_name} {part.dset_name}, "
                "which cannot be checked: make it anew out of sources with names"
            )
        name = part.file_name.replace("%%", "%")
        other = path if name == "." else _find(what, name, _virtual_places(path, name))
        found[other] = None
        with open_hdf5_file(other) as file:
            source = get_dataset(file, other, part.dset_name.replace("%%", "%"))
            _check_extent(what, part, other, source)
            if (other, source.name) not in seen:
                seen.add((other, source.name))
                _follow(other, source, found, seen)


def _check_extent(what: str, part: Any, other: Path, source: Any) -> None:
    try:
        wanted = part.vspace.get_select_npoints()
        try:
            _, last = part.src_space.get_select_bounds()
        except ValueError:  # all of it
            enough = math.prod(source.shape) >= wanted
        else:
            enough = all(most < size for most, size in zip(last, source.shape, strict=True))
    except RuntimeError:
        raise ValueError(
            f"{what} grows with its sources, which cannot be checked: make it anew, of a fixed size"
        ) from None
    if not enough:
        raise ValueError(
            f"{source.name!r} of {other} is {source.shape}, smaller than what {what} takes from "
            "it: write it again"
        )


def _find(what: str, name: str, places: list[Path]) -> Path:
    for place in places:
        if os.path.isfile(place):  # noqa: PTH113  # False where we may not look
            return place
    raise FileNotFoundError(
        f"{what} has rows in {name}, and there is no file {places[0]}: put it there, or write the "
        "rows into one file"
    )


def _virtual_places(path: Path, name: str) -> list[Path]:
    whole = Path(name)
    relative = Path(whole.name) if whole.is_absolute() else whole
    prefixes = os.environ.get("HDF5_VDS_PREFIX", "").split(os.pathsep)
    folders = [_origin(prefix, path) for prefix in prefixes if prefix]
    folders += [path.parent, Path.cwd(), path.resolve().parent]
    return [whole] * whole.is_absolute() + [folder / relative for folder in folders]


def _external_places(path: Path, name: str) -> list[Path]:
    # Not beside the file, unless told so.
    return [(_origin(os.environ.get("HDF5_EXTFILE_PREFIX", ""), path) / name).absolute()]


def _origin(prefix: str, path: Path) -> Path:
    return Path(prefix.replace("${ORIGIN}", str(path.parent)))


def _names(file: Any) -> str:
    import h5py

    found: list[str] = []
    file.visititems(
        lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None
    )
    return ", ".join(map(repr, found)) or "none"
