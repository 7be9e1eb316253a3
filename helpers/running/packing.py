"""Pack a function and its arguments for another process, and refuse what could not be unpacked."""

import functools
import io
import multiprocessing
import os
import pickle
import types
from collections.abc import Callable
from typing import Any

START_METHOD_VARIABLE = "LARGER_THAN_RAM_START_METHOD"


def pack(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Return the pickled call.

    Raises TypeError, naming the culprit, when the child could not find the function or a class, or
    when an argument cannot be pickled.
    """
    if not callable(function):
        raise TypeError(f"run got {function!r}, which cannot be called: pass a function")
    _refuse_if_only_here(function)
    file = io.BytesIO()
    try:
        _Packer(file, protocol=pickle.HIGHEST_PROTOCOL).dump((function, arguments))
    except _OnlyHereError:
        raise
    except Exception as error:
        raise TypeError(
            f"the arguments of {name(function)} cannot be pickled ({error}): "
            "pass paths and numbers, and open files inside the function"
        ) from error
    return file.getvalue()


def name(function: Callable[..., Any]) -> str:
    """Return a function's name, as a reader would say it."""
    if isinstance(function, functools.partial):
        return name(function.func)
    return getattr(function, "__name__", type(function).__name__)


def title_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """Return a title for a call: 'one_epoch(OpensLazily)'."""
    named = [argument.__name__ for argument in arguments if isinstance(argument, type)]
    return f"{name(function)}({', '.join(named)})"


def choose_start_method(wanted: str | None) -> str:
    """Return the start method to use: the one wanted, else the environment's, else Python's own.

    Raises ValueError when this system does not have it.
    """
    known = multiprocessing.get_all_start_methods()  # the first one is the default
    chosen = wanted or os.environ.get(START_METHOD_VARIABLE) or known[0]
    if chosen not in known:
        source = "" if wanted else f"{START_METHOD_VARIABLE}: "
        raise ValueError(
            f"{source}start method {chosen!r} is not available here: use {' or '.join(known)}"
        )
    return chosen


class _OnlyHereError(TypeError):
    """Something that exists in this notebook only."""


class _Packer(pickle.Pickler):
    def reducer_override(self, thing: Any) -> Any:
        """Refuse notebook classes and functions wherever they stand in the arguments."""
        if isinstance(thing, (type, types.FunctionType)):
            _refuse_if_only_here(thing)
        return NotImplemented


def _refuse_if_only_here(thing: Any) -> None:
    if getattr(thing, "__module__", None) == "__main__":
        reason = "was defined in a plain cell, and a fresh process cannot find it there"
    elif getattr(thing, "__name__", "") == "<lambda>":
        reason = "is a lambda, which cannot be sent to another process"
    elif "<locals>" in getattr(thing, "__qualname__", ""):
        reason = "was defined inside a function, and another process cannot find it there"
    else:
        return
    raise _OnlyHereError(
        f"{name(thing)} {reason}: define it in a cell that begins with %%importable"
    )
