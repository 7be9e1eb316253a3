"""Functions and streams that refuse, as a system does."""

import errno
import io
import os
from collections.abc import Callable
from typing import Any


def refusal(number: int, words: str = "") -> Callable[..., Any]:
    """Return a function of any arguments that raises the system's error of this number."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, words or os.strerror(number))

    return refuse


class FullDisk(io.StringIO):
    """A stream that takes nothing more."""

    write = refusal(errno.ENOSPC)
