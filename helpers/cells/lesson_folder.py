"""The folder of one notebook's lesson modules: beside it where that is safe, gone when it ends.

A notebook that is killed cannot tidy up, so the next one does. A living notebook holds a lock on a
file in its folder; a folder whose lock can be had is an orphan, whatever became of its process
id since. Only what this module and Python's import wrote is ever removed.
"""

import atexit
import os
import platform
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from helpers.system.locks import try_to_lock

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
        with suppress(OSError):  # some network disks have no locks: then nobody removes it, either
            try_to_lock(self._owner.fileno())
        # The host goes in only once the lock is held: an owner file without one is left alone.
        print(platform.node(), file=self._owner, flush=True)
        atexit.register(self.close)

    def write(self, name: str, text: str, *, seconds: int) -> None:
        """Put a module into the folder in one step, with a time of change of its own.

        Python takes cached bytecode as fresh when size and time of change (in whole seconds) agree,
        so two edits within a second would be taken for one another.
        """
        target = self.path / f"{name}.py"
        beside = target.with_suffix(_NEW)
        try:
            self.path.mkdir(0o700, parents=True, exist_ok=True)  # it may have been cleaned away
            beside.write_text(text, encoding="utf-8")
            os.utime(beside, (seconds, seconds))
            beside.replace(target)
        except OSError as error:
            raise OSError(
                f"the cell cannot be written into {self.path} ({error.strerror}): free some disk "
                "space or restart the notebook, then run its cells again"
            ) from error

    def close(self) -> None:
        """Remove the folder. A forked worker that ends leaves it to the notebook."""
        if os.getpid() == self._pid and not self._owner.closed:
            self._owner.close()
            _remove(self.path)
            atexit.unregister(self.close)


def make_folder(beside: Path) -> LessonFolder:
    """Make this notebook's folder in `beside`, or among temporary files if that is not safe."""
    for number in range(_TRIES):
        suffix = f"-{number}" if number else ""  # the same id may live in another container
        path = beside / _ROOT / f"{os.getpid()}{suffix}"
        try:
            path.parent.mkdir(0o700, exist_ok=True)
            if not _is_safe(path.parent):
                break
            path.mkdir(0o700)
            return LessonFolder(path)
        except (FileExistsError, FileNotFoundError):  # another notebook may remove the empty root
            continue
        except OSError:
            break
    return LessonFolder(Path(tempfile.mkdtemp(prefix=_TEMPORARY)))


def sweep(beside: Path) -> None:
    """Remove the folders of notebooks of ours that ended without tidying up."""
    owners = [
        *(beside / _ROOT).glob(f"*/{_OWNER}"),
        *Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*/{_OWNER}"),
    ]
    for owner in owners:
        if _is_orphan(owner):
            _remove(owner.parent)


def _is_safe(folder: Path) -> bool:
    """Return whether only we, and the system, can change what stands at this path.

    Whoever may write to a folder may put another one in the place of what is in it, unless it is
    sticky, as /tmp is. Windows has other means, and keeps a user's folders apart by itself.
    """
    if sys.platform == "win32":
        return True
    ours = {0, os.geteuid()}
    parent = folder.parent.resolve()
    for status in (path.lstat() for path in (folder, parent, *parent.parents)):
        open_to_others = status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in ours or open_to_others or not stat.S_ISDIR(status.st_mode):
            return False
    return True


def _is_orphan(owner: Path) -> bool:
    """Return whether the owner was of this machine and is gone. In doubt, it lives."""
    try:
        if not _is_safe(owner.parent):  # another user's, who may have put links into it
            return False
        with owner.open("r+", encoding="utf-8", errors="replace") as file:
            of_this_host = file.read().strip() == platform.node()
            return of_this_host and try_to_lock(file.fileno())
    except OSError:
        return False


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
