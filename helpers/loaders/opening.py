"""Opening files: what goes wrong is told with the path, the cause and the next step."""

import errno
import stat
from pathlib import Path
from typing import BinaryIO

_ADVICE = {
    errno.EACCES: "you may not read it: change its permissions, or those of its folders",
    errno.EIO: "the disk or the network fails: look into the system's log, or use a copy elsewhere",
    errno.ELOOP: "its links lead in a circle: mend the link",
    errno.EMFILE: "too many files are open: close some, or raise the limit (ulimit -n)",
    errno.ENAMETOOLONG: "its name is too long: give it a shorter one",
    errno.ENOTCONN: "its mount is gone: mount it again",
    errno.ENOTDIR: "what it names as a folder is a file: check the path",
    errno.ESTALE: "the network's file system has lost it: mount it again",
}
_NO_FILES = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
_CONTENTS = {  # by how it starts
    b"\x89HDF\r\n\x1a\n": "an HDF5 file: read it with Hdf5Dataset, or name it .h5",
    b"\x93NUMPY": "a .npy file: read it with NpyDataset, or name it .npy",
    b"PK\x03\x04": "a zip or .npz archive, which has no rows to read: save each array with np.save",
    b"\x80": "a Python pickle, which is never opened here: save the array itself with np.save",
    b"PAR1": "a parquet file: save its columns with np.save",
    b"ARROW1": "an Arrow file: save its columns with np.save",
    b"CDF": "a file of netCDF 3: convert it with nccopy -k nc4",
    b"\x1f\x8b": "compressed with gzip: unpack it with gunzip",
    b"(\xb5/\xfd": "compressed with zstd: unpack it with unzstd",
    b"version https://git-lfs": "a pointer of git-lfs in place of the data: run git lfs pull",
    b"<": "text, perhaps a web page (HTML) in place of a download: download it again",
}


def absolute(path: str | Path) -> Path:
    """Return a path that holds wherever this process goes. Raises an error for what is none."""
    try:
        if "\0" not in str(path):
            return Path(path).absolute()
    except TypeError:
        raise TypeError(f"{path!r} is no path: pass a str or a Path") from None
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} cannot be found, because the working folder was removed: change to another "
            "folder, or pass the whole path"
        ) from None
    raise ValueError(f"{path!r} has a NUL character in it: check the path")


def open_regular(path: Path) -> BinaryIO:
    """Open a file. Raises OSError or ValueError where it is none: to open a pipe would wait."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return path.open("rb")
    except OSError as error:
        raise named(path, error) from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder: pass one file in it")
    what = _NO_FILES.get(stat.S_IFMT(mode), "a device")
    raise ValueError(f"{path} is {what}: write what comes from it into a file, and pass that")


def named(path: Path, error: OSError) -> OSError:
    """Return a system call's error with the path, the cause and the next step."""
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(f"there is no file {path}: check the path")
    advice = _ADVICE.get(error.errno or 0, f"{error.strerror or error}: check the disk, or copy it")
    return type(error)(f"{path} cannot be read, {advice}")


def looks_like(start: bytes) -> str:
    """Return what a file is that starts so, and what to do with it."""
    for magic, what in _CONTENTS.items():
        if start.startswith(magic):
            return what
    if not start:
        return "empty: write it again"
    if start.isascii() and b"\0" not in start:
        return f"text, it starts with {start[:8]!r}: save its numbers with np.save"
    return f"unknown, it starts with {start[:8]!r}: write it with np.save or h5py"
