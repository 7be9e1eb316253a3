"""Keep a sandbox warm: importing torch takes seconds, so a child waits with that done."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from helpers.running.interrupts import interrupts_held
from helpers.running.sandbox import FOLDER_PREFIX, Sandbox


class WarmPool:
    """Keeps one sandbox warm for the next run."""

    def __init__(self) -> None:
        self._sandbox: Sandbox | None = None
        self._owner = 0

    @property
    def waiting(self) -> Sandbox | None:
        """Return the sandbox that waits for the next run."""
        return self._sandbox

    def warm_up(self) -> None:
        """Start a sandbox, unless one waits already. Returns at once."""
        if self._sandbox is not None and self._owner == os.getpid() and self._sandbox.is_ready():
            return
        with interrupts_held():  # half a sandbox would stay behind
            self.clear()
            if self._owner != os.getpid():
                sweep()
                atexit.register(self.clear)
            self._sandbox, self._owner = Sandbox(), os.getpid()

    def take(self) -> Sandbox:
        """Return the sandbox, warm. It belongs to the caller, who puts it away.

        A sandbox that cannot be warmed is replaced once: rarely, a library fails to load and loads
        the next time. Raises RuntimeError when the second fails, too.
        """
        try:
            return self._take()
        except RuntimeError:
            return self._take()

    def _take(self) -> Sandbox:
        self.warm_up()
        sandbox, self._sandbox = self._sandbox, None
        assert sandbox is not None
        try:
            sandbox.wait_until_warm()
        except BaseException:
            with interrupts_held():
                sandbox.put_away()
            raise
        return sandbox

    def clear(self) -> None:
        """Put the sandbox away."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None and self._owner == os.getpid():  # a fork's sandbox is its parent's
            sandbox.put_away()


pool = WarmPool()


def sweep() -> None:
    """Remove folders of runs whose caller was killed together with its watcher."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*-*"):
        maker = folder.name.removeprefix(FOLDER_PREFIX).split("-")[0]
        if maker.isdigit() and not _exists(int(maker)):
            shutil.rmtree(folder, ignore_errors=True)


def _exists(pid: int) -> bool:
    import psutil  # late: most runs never need it

    return bool(psutil.pid_exists(pid))
