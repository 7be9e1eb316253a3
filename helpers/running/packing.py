"""Pack a function and its arguments for another process, and refuse what could not be unpacked."""

import functools
import io
import multiprocessing
import os
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

from helpers.drawing.front_end import execution_count
from helpers.running.child import Request
from helpers.running.failures import describe

START_METHOD_VARIABLE = "LARGER_THAN_RAM_START_METHOD"
_SCRIPT = ("__main__", "__mp_main__")  # the second: in a process that has run the script again
_IN_A_CELL = "in a cell that begins with %%importable"


def make_request(
    function: Callable[..., Any], arguments: tuple[Any, ...], start_method: str | None
) -> Request:
    """Return what a child must know to make this call where the caller stands now.

    Raises as `pack` and `choose_start_method`, and FileNotFoundError without a working folder.
    """
    call, script = pack(function, arguments)
    try:
        folder = os.getcwd()  # noqa: PTH109 - it goes to os.chdir
    except FileNotFoundError:
        raise FileNotFoundError(
            "the working folder has been removed: go to another one with os.chdir, or start again"
        ) from None
    method = choose_start_method(start_method)
    return Request(call, list(sys.path), folder, dict(os.environ), method, script)


def pack(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[bytes, dict[str, Any]]:
    """Return the pickled call, and what `multiprocessing` needs to run the script that it is from.

    Raises TypeError, naming the culprit, when the child could not find the function or a class, or
    when an argument cannot be pickled.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(
            "run was called while a new process imports the script: put the lines that start it "
            'under `if __name__ == "__main__":`'
        )
    if not callable(function):
        raise TypeError(f"run got {function!r}, which cannot be called: pass a function")
    file = io.BytesIO()
    packer = _Packer(file, protocol=pickle.HIGHEST_PROTOCOL)
    try:
        packer.dump((function, arguments))
    except _OnlyHereError as error:
        raise TypeError(str(error)) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise TypeError(_cannot_be_pickled(function, error, packer.last)) from error
    return file.getvalue(), _script() if packer.needs_script else {}


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


class _OnlyHereError(Exception):
    """Something that exists in this process only."""


class _Packer(pickle.Pickler):
    """Refuses classes and functions of this process only, wherever they stand in the arguments."""

    needs_script = False
    last: Any = None  # the class or function that was seen last

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, (type, types.FunctionType)):
            self.last = thing
            _refuse_if_only_here(thing)
            self.needs_script = self.needs_script or thing.__module__ in _SCRIPT
        return NotImplemented


def _refuse_if_only_here(thing: Any) -> None:
    in_ipython = execution_count() is not None
    step = f"define it {_IN_A_CELL if in_ipython else 'at the top level of a file'}"
    if getattr(thing, "__name__", "") == "<lambda>":
        reason = "is a lambda, which cannot be sent to another process"
    elif "<locals>" in getattr(thing, "__qualname__", ""):
        reason = "was defined inside a function, and another process cannot find it there"
    elif getattr(thing, "__module__", None) not in _SCRIPT or (_script() and not in_ipython):
        return
    elif in_ipython:
        reason = "was defined in a plain cell, and a fresh process cannot find it there"
    else:
        reason = "is not in a file that a fresh process could run again"
        step = "define it in a file of its own (not `-c`, standard input or __main__.py)"
    raise _OnlyHereError(f"{name(thing)} {reason}: {step}")


def _script() -> dict[str, Any]:
    """Return what makes a fresh process run the caller's script as a spawned worker does, or {}."""
    main = sys.modules["__main__"]
    started_in = multiprocessing.process.ORIGINAL_DIR  # type: ignore[attr-defined]
    again = {"sys_argv": sys.argv, "orig_dir": started_in}
    module = getattr(getattr(main, "__spec__", None), "name", None)
    if module is not None:  # python -m; multiprocessing leaves a package's __main__.py alone
        found = module.rpartition(".")[2] != "__main__"
        return again | {"init_main_from_name": module} if found else {}
    path = os.path.abspath(getattr(main, "__file__", ""))  # noqa: PTH100 - a string for pickle
    return again | {"init_main_from_path": path} if os.path.isfile(path) else {}  # noqa: PTH113


def _cannot_be_pickled(function: Callable[..., Any], error: BaseException, last: Any) -> str:
    if "not the same object" in str(error):
        known = f"{last.__module__}.{last.__qualname__}"
        return (
            f"{name(last)} is not what {known} is now, as after its cell ran again: "
            "make the object again (run the cell that makes it), then run this"
        )
    return (
        f"the arguments of {name(function)} cannot be pickled ({describe(error)}): "
        "pass paths, numbers and arrays, and make the rest inside the function"
    )
