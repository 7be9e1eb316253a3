"""Packing a call for another process, and refusing by name what could not be unpacked there."""

import functools
import multiprocessing
import pickle
import re
import threading
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import lesson_functions
import pytest

from helpers.running import packing
from helpers.running.packing import choose_start_method, pack, title_of


def of_a_plain_cell(thing: Any, name: str) -> Any:
    """Return a class or function that looks as if a plain cell had defined it."""
    thing.__module__, thing.__qualname__, thing.__name__ = "__main__", name, name
    return thing


class Local:
    """Stands for a class of a plain cell."""


of_a_plain_cell(Local, "Rows")
plain_function = of_a_plain_cell(lambda: 1, "one_epoch")


def defined_inside() -> tuple[Callable[[], int], type]:
    def inner() -> int:
        return 1

    class Inner:
        pass

    return inner, Inner


def test_a_call_is_unpacked_as_it_was_packed() -> None:
    call, script = pack(lesson_functions.add, (1, 2))
    function, arguments = pickle.loads(call)
    assert function is lesson_functions.add
    assert (arguments, script) == ((1, 2), {})


PLAIN = "was defined in a plain cell"


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (lambda: 1, "<lambda> is a lambda"),
        (plain_function, f"one_epoch {PLAIN}"),
        (Local, f"Rows {PLAIN}"),
        (defined_inside()[0], "inner was defined inside a function"),
        (defined_inside()[1], "Inner was defined inside a function"),
        (functools.partial(plain_function), f"one_epoch {PLAIN}"),
        (functools.partial(sorted, key=lambda row: row), "<lambda> is a lambda"),
        (Local().__repr__, f"Rows {PLAIN}"),
        ({"deep": [Local()]}, f"Rows {PLAIN}"),
    ],
)
def test_what_only_the_notebook_has_is_refused_by_name_as_function_and_as_argument(
    thing: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "execution_count", lambda: 7)
    for call in [(thing, ())] * callable(thing) + [(lesson_functions.add, (1, thing))]:
        with pytest.raises(TypeError, match="begins with %%importable") as caught:
            pack(*call)
        assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        (threading.Lock(), "TypeError: cannot pickle '_thread.lock' object"),
        ((n for n in "rows"), "TypeError: cannot pickle 'generator' object"),
        (lesson_functions.Stubborn(), "RuntimeError: I stay here"),
        (lesson_functions.LeavesWhenPickled(), "SystemExit: gone"),
    ],
)
def test_an_argument_that_cannot_be_pickled_is_refused_with_its_reason(
    argument: Any, reason: str
) -> None:
    words = f"the arguments of add cannot be pickled ({reason}): pass paths, numbers and arrays"
    with pytest.raises(TypeError, match=re.escape(words)):
        pack(lesson_functions.add, (argument, 2))


@pytest.mark.parametrize("old", [lesson_functions.Stubborn, lesson_functions.add])
def test_what_is_older_than_its_cell_is_to_be_made_again(
    old: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lesson_functions, old.__name__, type("Newer", (), {}))
    words = f"{old.__name__} is not what lesson_functions.{old.__name__} is now, as after its cell"
    with pytest.raises(TypeError, match=f"^{words} ran again: make the object again"):
        pack(print, (old,))


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="run got 7, which cannot be called: pass a function"):
        pack(7, ())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "arguments", "title"),
    [
        (lesson_functions.add, (1, 2), "add()"),
        (
            lesson_functions.load_everything,
            (lesson_functions.Stubborn, 1),
            "load_everything(Stubborn)",
        ),
        (functools.partial(lesson_functions.add, 1), (2,), "add()"),
        (attrgetter("a"), (), "attrgetter()"),
    ],
)
def test_a_call_has_a_title(
    function: Callable[..., Any], arguments: tuple[Any, ...], title: str
) -> None:
    assert title_of(function, arguments) == title


@pytest.mark.parametrize(
    ("wanted", "variable", "known", "chosen"),
    [
        ("spawn", "nonsense", ["fork", "spawn"], "spawn"),
        (None, "spawn", ["fork", "spawn"], "spawn"),
        (None, "", ["fork", "spawn"], "fork"),  # Python's own
        (None, "", ["spawn"], "spawn"),
    ],
)
def test_the_start_method_is_the_one_asked_for_else_the_environments_else_pythons_own(
    wanted: str | None,
    variable: str,
    known: list[str],
    chosen: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: known)
    monkeypatch.setenv("LARGER_THAN_RAM_START_METHOD", variable)
    assert choose_start_method(wanted) == chosen


def test_a_start_method_that_is_not_here_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    monkeypatch.setenv("LARGER_THAN_RAM_START_METHOD", "fork")
    for wanted, source in (("fork", ""), (None, "LARGER_THAN_RAM_START_METHOD: ")):
        with pytest.raises(ValueError, match=f"^{source}start method 'fork' is not .*: use spawn$"):
            choose_start_method(wanted)
