"""Files: opened and read, with errors that name them, the cause and the next step."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_NEXT_STEPS = {
    errno.ENOENT: "make the data first, or correct the path",
    errno.ENOTDIR: "correct the path",
    errno.ELOOP: "remove the link that leads back to itself",
    errno.ENAMETOOLONG: "pass a shorter path",
    errno.EACCES: "change its permissions, or copy it",
    errno.EPERM: "change its permissions, or copy it",
    errno.EMFILE: "close some files, or raise the limit (ulimit -n)",
    errno.ENOTCONN: "mount its disk again",
    errno.ESTALE: "the file server has replaced it, so open it again",
}
_OTHER_STEP = "copy it to another disk, or make it again"


def named(path: str | Path, error: OSError, action: str = "read") -> OSError:
    """Return a system's error anew: 'x.npy cannot be read (cause): next step'."""
    cause = error.strerror or (os.strerror(error.errno) if error.errno else error)
    step = _NEXT_STEPS.get(error.errno or 0, _OTHER_STEP)
    return type(error)(f"{path} cannot be {action} ({cause}): {step}")


@contextmanager
def errors_named(path: str | Path, action: str = "read") -> Iterator[None]:
    """Raise the operating system's errors as `named` returns them, and sentences of our own."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # a sentence of our own
            raise
        raise named(path, error, action) from error


def absolute_path(path: str | Path) -> Path:
    """Return a path that holds in every working folder. Raises an error for what is none."""
    try:
        if "\0" not in str(path):
            return Path(path).absolute()
    except TypeError:
        raise TypeError(f"{path!r} is no path: pass a str or a Path") from None
    except OSError as error:
        raise FileNotFoundError(
            f"{path} is meant from the working folder, and that was removed: "
            "change to another with os.chdir, or pass a path from the root"
        ) from error
    raise ValueError(f"{path!r} has a NUL character in it: correct the path")


def regular_file(path: str | Path) -> Path:
    """Return the path of a file that can be opened and read without waiting for anybody.

    Raises OSError, naming the path, where it is missing, a folder, a pipe or another device, a
    link that leads nowhere, or not readable.
    """
    path = Path(path)
    with errors_named(path):
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            if path.is_symlink():
                raise FileNotFoundError(
                    f"{path} is a link to {path.readlink()}, which does not exist: "
                    "remove the link, or make what it leads to"
                ) from None
            raise FileNotFoundError(
                f"{path} does not exist: make the data first, or correct the path"
            ) from None
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(f"{path} is a folder: name a file in it")
        if not stat.S_ISREG(mode):
            raise OSError(
                f"{path} is not a regular file but a pipe or a device: name a file on a disk"
            )
        if not os.access(path, os.R_OK):
            raise PermissionError(f"{path} cannot be read: {_NEXT_STEPS[errno.EACCES]}")
    return path


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read it. Raises as `regular_file` does: to open a pipe would wait."""
    with errors_named(path):
        return regular_file(path).open("rb")
