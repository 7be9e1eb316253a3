"""The folder of one notebook's lesson modules: a private one of temporary files, gone with it.

A notebook that is killed cannot tidy up, so the next one does. A living notebook holds a lock on a
file in its folder; a folder whose lock can be had is an orphan.
"""

import atexit
import os
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from helpers.system.locks import try_to_lock

_PREFIX = "larger-than-ram-lesson-"


class LessonFolder:
    """A folder that this process owns until it ends, or until `close`."""

    def __init__(self) -> None:
        self._pid, held = os.getpid(), False
        while not held:  # a sweep may be quicker
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            lock = self.path / "lock"
            self._lock = lock.open("x")
            held = try_to_lock(self._lock.fileno()) and lock.exists()
        atexit.register(self.close)

    def write(self, name: str, text: str, *, seconds: int) -> None:
        """Put a module into the folder in one step, with a time of change of its own.

        Python takes cached bytecode as fresh when size and time of change (in whole seconds) agree,
        so two edits within a second would be taken for one another.
        """
        beside = self.path / f"{name}.new"
        try:
            self.path.mkdir(0o700, exist_ok=True)  # it may have been cleaned away
            beside.write_text(text, encoding="utf-8")
            os.utime(beside, (seconds, seconds))
            beside.replace(self.path / f"{name}.py")
        except OSError as error:
            raise OSError(
                f"the cell cannot be written into {self.path} ({error.strerror}): free some disk "
                "space or restart the notebook, then run its cells again"
            ) from error

    def close(self) -> None:
        """Remove the folder. A forked worker that ends leaves it to the notebook."""
        if os.getpid() == self._pid:
            self._lock.close()
            shutil.rmtree(self.path, ignore_errors=True)
            atexit.unregister(self.close)


def sweep() -> None:
    """Remove the folders of notebooks of ours that ended without tidying up."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if _is_orphan(folder):
                shutil.rmtree(folder)


def _is_orphan(folder: Path) -> bool:
    if not _is_private(folder.lstat()):  # another user's, who may have put links into it
        return False
    with (folder / "lock").open("r+") as lock:
        return try_to_lock(lock.fileno())


def _is_private(status: os.stat_result) -> bool:
    """Return whether only we can change what is in a folder. Windows keeps users apart itself."""
    ours = sys.platform == "win32" or status.st_uid == os.geteuid()
    return ours and stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o022
