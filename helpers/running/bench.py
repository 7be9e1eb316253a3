"""Keep a spare warm: importing torch takes seconds, so a child waits with that done."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from helpers.running.interrupts import interrupts_held
from helpers.running.spare import FOLDER_PREFIX, Spare


class Bench:
    """Keeps one spare warm for the next run."""

    def __init__(self) -> None:
        self._spare: Spare | None = None
        self._owner = 0

    @property
    def waiting(self) -> Spare | None:
        """Return the spare that waits for the next run."""
        return self._spare

    def warm_up(self) -> None:
        """Start a spare, unless one waits already. Returns at once."""
        if self._spare is not None and self._owner == os.getpid() and self._spare.is_ready():
            return
        with interrupts_held():  # half a spare would stay behind
            self.clear()
            if self._owner != os.getpid():
                sweep()
                atexit.register(self.clear)
            self._spare, self._owner = Spare(), os.getpid()

    def take(self) -> Spare:
        """Return the spare, warm. It belongs to the caller, who puts it away.

        A spare that cannot be warmed is replaced once: rarely, a library fails to load and loads
        the next time. Raises RuntimeError when the second fails, too.
        """
        try:
            return self._take()
        except RuntimeError:
            return self._take()

    def _take(self) -> Spare:
        self.warm_up()
        spare, self._spare = self._spare, None
        assert spare is not None
        try:
            spare.wait_until_warm()
        except BaseException:
            with interrupts_held():
                spare.put_away()
            raise
        return spare

    def clear(self) -> None:
        """Put the spare away."""
        spare, self._spare = self._spare, None
        if spare is not None and self._owner == os.getpid():  # a fork's spare is its parent's
            spare.put_away()


bench = Bench()


def sweep() -> None:
    """Remove folders of runs whose kernel was killed together with its watcher."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*-*"):
        maker = folder.name.removeprefix(FOLDER_PREFIX).split("-")[0]
        if maker.isdigit() and not _exists(int(maker)):
            shutil.rmtree(folder, ignore_errors=True)


def _exists(pid: int) -> bool:
    import psutil  # late: most runs never need it

    return bool(psutil.pid_exists(pid))
