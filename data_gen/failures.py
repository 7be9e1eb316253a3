"""What to do about a disk that does not take the data: one sentence for each cause."""

import errno
import re
from pathlib import Path

from helpers.units import format_bytes

_SENTENCES = {
    errno.ENOSPC: "the disk of {folder} filled up at {reached}: free some, or pass another folder",
    errno.EDQUOT: "your quota on the disk of {folder} was used up at {reached}: "
    "delete files of yours there, or pass another folder",
    errno.EFBIG: "{name} may not grow further than {reached} in {folder}: raise the limit on a "
    "file's size (`ulimit -f`, or the file system's), pass a smaller size, or another folder",
}
_OTHER = "{folder} could not be written at {reached} ({cause}): pass another folder"
_HDF5 = re.compile(r"errno = (\d+), error message = '([^']*)'")  # in the midst of other things


def writing_failed(error: Exception, path: Path, written: int, total: int) -> OSError | None:
    """Return an error that says what the disk lacked, or None where it was not the disk.

    `written` of `total` bytes of `path` were there when it failed.
    """
    if told := _HDF5.search(str(error)):
        number, cause = int(told[1]), told[2]
    elif isinstance(error, OSError) and error.errno:
        number, cause = error.errno, error.strerror
    else:
        return None
    sentence = _SENTENCES.get(number, _OTHER).format(
        folder=path.parent,
        name=path.name,
        reached=f"{format_bytes(written)} of {format_bytes(total)}",
        cause=cause,
    )
    return OSError(sentence)
