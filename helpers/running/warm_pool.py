"""Keep a sandbox warm: importing torch takes seconds, so a child waits with that done."""

import atexit
import contextlib
import os

from helpers.running.interrupts import Interrupts, interrupts_held
from helpers.running.run_folder import sweep
from helpers.running.sandbox import Sandbox


class WarmPool:
    """Keeps one sandbox warm for the next run."""

    def __init__(self) -> None:
        self.waiting: Sandbox | None = None  # for the next run
        self._owner = 0

    def warm_up(self) -> None:
        """Start a sandbox, unless one waits already. Returns at once."""
        if self.waiting is not None and self._owner == os.getpid() and self.waiting.is_ready():
            return
        with interrupts_held():  # half a sandbox would stay behind
            self.clear()
            if self._owner != os.getpid():
                sweep()
                atexit.register(self._clear_at_exit)
            self.waiting, self._owner = Sandbox(), os.getpid()

    def take(self, interrupts: Interrupts | None = None) -> Sandbox:
        """Return the sandbox, warm. It belongs to the caller, who puts it away.

        A sandbox that cannot be warmed is replaced once: rarely, a library fails to load and loads
        the next time. Raises RuntimeError when the second fails, too, and KeyboardInterrupt when
        one of the `interrupts` came.
        """
        try:
            return self._take(interrupts)
        except RuntimeError:
            return self._take(interrupts)

    def _take(self, interrupts: Interrupts | None) -> Sandbox:
        self.warm_up()
        sandbox, self.waiting = self.waiting, None
        assert sandbox is not None
        try:
            sandbox.wait_until_warm(interrupts)
        except BaseException:
            sandbox.put_away()
            raise
        return sandbox

    def clear(self) -> None:
        """Put the sandbox away."""
        with interrupts_held():
            sandbox, self.waiting = self.waiting, None
            if sandbox is not None and self._owner == os.getpid():  # a fork's is its parent's
                sandbox.put_away()

    def _clear_at_exit(self) -> None:
        with contextlib.suppress(KeyboardInterrupt):  # the process ends anyway
            self.clear()


pool = WarmPool()
