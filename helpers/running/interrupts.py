"""Hold back the reader's interrupt while something must be done whole."""

import contextlib
import signal
import threading
from collections.abc import Iterator


class Interrupts:
    """The interrupts that are being held back."""

    came = False  # set it to False again where they have been heeded

    def note(self, *_: object) -> None:
        """Note one. This is the handler."""
        self.came = True


@contextlib.contextmanager
def interrupts_held() -> Iterator[Interrupts]:
    """Do the block to its end; hand an interrupt that came meanwhile to the handler before.

    That one raises KeyboardInterrupt, or holds it back itself. Only the main thread is ever
    interrupted, so elsewhere there is nothing to hold.
    """
    held = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield held
        return
    before = signal.signal(signal.SIGINT, held.note)
    try:
        yield held
    finally:
        # None: the handler was not installed from Python, and cannot be put back from here.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
    if held.came:
        signal.raise_signal(signal.SIGINT)
