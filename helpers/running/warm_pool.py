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
                atexit.register(self._clear_at_exit)
            self._sandbox, self._owner = Sandbox(), os.getpid()

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
        sandbox, self._sandbox = self._sandbox, None
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
            sandbox, self._sandbox = self._sandbox, None
            if sandbox is not None and self._owner == os.getpid():  # a fork's is its parent's
                sandbox.put_away()

    def _clear_at_exit(self) -> None:
        with contextlib.suppress(KeyboardInterrupt):  # the process ends anyway
            self.clear()


pool = WarmPool()
