"""Put an exception into words that can be kept: whole lines, short, and always to be had."""

import os
import re
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

ERROR_CHARACTERS, TRACEBACK_CHARACTERS = 4_000, 20_000  # of a message that holds a whole batch
# What Python says when a name is missing from a module, or where a module's own lines fail.
_MODULE = re.compile(r"(?:module|from|named) '(\w+)|[/\\](\w+)\.py\", line \d+, in <module>")


def describe(error: BaseException) -> str:
    """Return "ValueError: ..." for any exception, also for one that cannot be asked."""
    try:
        return shorten("".join(traceback.format_exception_only(error)).strip(), ERROR_CHARACTERS)
    except BaseException:  # noqa: BLE001 - its class may break whatever it is asked
        return type(error).__name__


def readers_traceback(error: BaseException, without: str) -> str:
    """Return the traceback without the lines of the file `without` at its top."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == without:
        frames = frames.tb_next
    try:
        lines = traceback.format_exception(type(error), error, frames)
    except BaseException:  # noqa: BLE001 - as above
        lines = traceback.format_tb(frames)
    return shorten("".join(lines), TRACEBACK_CHARACTERS)


def shorten(text: str, characters: int) -> str:
    """Return a text that UTF-8 can write, and of a long one its first and last characters."""
    if len(text) > characters:
        half = characters // 2
        left_out = f"\n... {len(text) - 2 * half:,} characters ...\n"
        text = text[:half] + left_out + text[-half:]
    return text.encode("utf-8", "backslashreplace").decode()  # of a file's name that is no text


def file_in_the_way(said: str, *, before: Sequence[str], now: Sequence[str]) -> str:
    """Return what to do about a file that hides the module of which an error speaks, or ''.

    `before` is the sys.path of a process of our own, `now` that of the caller, which may begin with
    the reader's folder: a file called random.py there hides Python's own from all that need it.
    """
    for match in _MODULE.finditer(said):
        name = match[1] or match[2]
        right, found = (PathFinder.find_spec(name, path) for path in (before, now))
        if right is None or found is None or not right.origin or not found.origin:
            continue
        if os.path.realpath(right.origin) != os.path.realpath(found.origin):
            file = Path(found.origin)
            file = file.parent if file.name == "__init__.py" else file
            whose = "Python's own" if name in sys.stdlib_module_names else "the package"
            return f"{file.name} in {file.parent} stands in the way of {whose} {name}: rename it"
    return ""
