"""What a look at the reader's work comes to: a hint in words, whatever their code does.

This stands apart from `checks` because the child of a check imports it.
"""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_OURS = Path(__file__).parent


class Mistake(Exception):  # noqa: N818 - it is the reader's, and what it says is a hint
    """A mistake that was found. Its message is the hint."""


def hint_of(find_mistake: Callable[..., str | None], *arguments: Any) -> str:
    """Return the hint that `find_mistake(*arguments)` returns or raises; '' if all is well."""
    try:
        return str(find_mistake(*arguments) or "")
    except Mistake as mistake:
        return str(mistake)
    except NotImplementedError as stub:
        return f"fill in {stub}" if str(stub) else "fill in what the stub leaves open"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the reader's code may do what it likes
        return _describe(error)


def _describe(error: BaseException) -> str:
    """Return 'IndexError: ...' with the last line of the reader's own code that was running."""
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    frames = [*traceback.extract_tb(error.__traceback__)]
    frames = [frame for frame in frames if _OURS not in Path(frame.filename).parents]
    if not frames:
        return said
    theirs = [frame for frame in frames if frame.filename == frames[0].filename][-1]
    return f"{said}, in {theirs.name}: `{theirs.line}`"
