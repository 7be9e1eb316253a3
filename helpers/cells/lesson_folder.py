"""The folder of one notebook's lesson modules: beside it, removed when it ends.

A notebook that is killed cannot tidy up, so the next one does. A living notebook holds a lock on a
file in its folder; a folder whose lock can be had is an orphan, whatever became of its process
id since. Only what this module and Python's import wrote is ever removed.
"""

import atexit
import os
import platform
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TextIO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

FIRST_LINE = "# Written by %%importable: line 2005 here is line 5 of the second cell that defines."
_ROOT = ".lesson_modules"
_TEMPORARY = "lesson_modules_"
_OWNER = "owner.txt"
_NEW = ".new"
_TRIES = 20


class LessonFolder:
    """A folder that this process owns until it ends, or until `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pid = os.getpid()
        self._owner = (path / _OWNER).open("x", encoding="utf-8")
        _lock(self._owner)
        # The host goes in only once the lock is held: an owner file without one is left alone.
        print(platform.node(), file=self._owner, flush=True)
        atexit.register(self.close)

    def write(self, name: str, text: str, *, seconds: int) -> None:
        """Put a module into the folder in one step, with a time of change of its own.

        Python takes cached bytecode as fresh when size and time of change (in whole seconds) agree,
        so two edits within a second would be taken for one another.
        """
        self.path.mkdir(parents=True, exist_ok=True)  # a reader may have cleaned up beneath us
        target = self.path / f"{name}.py"
        beside = target.with_suffix(_NEW)
        beside.write_text(text, encoding="utf-8")
        os.utime(beside, (seconds, seconds))
        beside.replace(target)

    def close(self) -> None:
        """Remove the folder. A forked worker that ends leaves it to the notebook."""
        if os.getpid() == self._pid and not self._owner.closed:
            self._owner.close()
            _remove(self.path)
            atexit.unregister(self.close)


def make_folder(beside: Path) -> LessonFolder:
    """Make this notebook's folder in `beside`, or among temporary files if that is not writable."""
    for number in range(_TRIES):
        suffix = f"-{number}" if number else ""  # the same id may live in another container
        path = beside / _ROOT / f"{os.getpid()}{suffix}"
        try:
            path.parent.mkdir(exist_ok=True)
            path.mkdir()
            return LessonFolder(path)
        except (FileExistsError, FileNotFoundError):  # another notebook may remove the empty root
            continue
        except OSError:
            break
    return LessonFolder(Path(tempfile.mkdtemp(prefix=_TEMPORARY)))


def sweep(beside: Path) -> None:
    """Remove the folders of notebooks that ended without tidying up."""
    owners = [
        *(beside / _ROOT).glob(f"*/{_OWNER}"),
        *Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*/{_OWNER}"),
    ]
    for owner in owners:
        if _is_orphan(owner):
            _remove(owner.parent)


def _is_orphan(owner: Path) -> bool:
    """Return whether the owner was of this machine and is gone. In doubt, it lives."""
    try:
        with owner.open("r+", encoding="utf-8", errors="replace") as file:
            of_this_host = file.read().strip() == platform.node()
            return of_this_host and _lock(file)
    except OSError:
        return False


def _lock(file: TextIO) -> bool:
    """Take the lock of an open file; return whether it could be had. It ends with the process."""
    try:
        if sys.platform == "win32":
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(folder: Path) -> None:
    """Remove what we and Python's import wrote, then the folder if nothing else is in it."""
    ours = [
        path for path in folder.glob("*.py") if path.read_bytes().startswith(FIRST_LINE.encode())
    ]
    cache = folder / "__pycache__"
    with suppress(OSError):  # a child may be importing just now; the next notebook tries again
        for path in [*ours, *folder.glob(f"*{_NEW}"), *cache.glob("*.pyc*")]:
            path.unlink(missing_ok=True)
        if cache.exists():
            cache.rmdir()
        if not any(path.name != _OWNER for path in folder.iterdir()):
            (folder / _OWNER).unlink(missing_ok=True)
            folder.rmdir()
            if folder.parent.name == _ROOT:
                folder.parent.rmdir()
