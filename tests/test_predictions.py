"""The reader's guess: a field where one can be shown, a line to fill in elsewhere."""

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch

from helpers import predictions
from helpers.drawing.front_end import Place
from helpers.predictions import AskedGuess, as_guess, parse_number, predict, take
from helpers.records import Guess

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> AskedGuess:
    """A guess in a notebook with someone before it."""
    place = Place(notebook=True, watched=True, widgets=True)
    monkeypatch.setattr(predictions, "detect_place", lambda: place)
    monkeypatch.setattr(predictions, "_asked", {})
    return ask()


def ask(unit: str = "MiB") -> AskedGuess:
    return predict("How much memory will it take?", unit)


def widgets(asked: AskedGuess) -> tuple[Any, Any, Any]:
    """Return the question, the field and the answer beside it."""
    question, row = predictions._field(asked).children
    return question, *row.children


def test_a_field_keeps_the_number_as_it_is_typed_or_says_what_to_type(asked: AskedGuess) -> None:
    question, field, answer = widgets(asked)
    assert question.value == field.tooltip == "How much memory will it take?"
    assert answer.value == "MiB"
    for typed, kept, said in (
        ("1,5", 1.5, "MiB: 1.5 is kept"),
        ("1,500", 1500, "MiB: 1,500 is kept"),
        ("many", None, "MiB: write a number, for example 250"),
        ("", None, "MiB"),
    ):
        field.value = typed
        assert (asked.value, answer.value) == (kept, said)


def test_a_notebook_shows_the_field_first_and_what_was_said_then(asked: AskedGuess) -> None:
    bundle = asked._repr_mimebundle_()
    assert WIDGET in bundle
    assert "Write your guess in MiB" in bundle["text/plain"]  # where widgets do not live
    asked.value = 1500
    assert asked._repr_mimebundle_() == {
        "text/plain": "How much memory will it take? You said 1,500 MiB."
    }


def test_asked_again_a_guess_is_kept_in_a_field_for_second_thoughts(asked: AskedGuess) -> None:
    widgets(asked)[1].value = "1,500"
    assert ask() is asked
    bundle = asked._repr_mimebundle_()
    assert WIDGET in bundle
    assert "You said 1,500 MiB" in bundle["text/plain"]
    _, field, answer = widgets(asked)
    assert (field.value, answer.value) == ("1500", "MiB: 1,500 is kept")
    assert WIDGET not in asked._repr_mimebundle_()
    assert ask("GiB").value is None


def test_a_guess_belongs_to_the_run_that_took_it_as_it_was_then(asked: AskedGuess) -> None:
    empty = take(asked, "before it was made")
    asked.value = 1500
    taken = take(asked, "first")
    assert taken == take(ask(), "first") == Guess(asked.question, "MiB", 1500)
    assert take(asked, "second") is None
    assert as_guess(asked) is asked  # where it is passed to a figure
    asked.value = 3
    assert take(asked, "second") == Guess(asked.question, "MiB", 3)
    assert (empty, taken) == (Guess(asked.question, "MiB"), Guess(asked.question, "MiB", 1500))


@pytest.mark.parametrize("given", [4, "4", np.int64(4), "4 MiB"])
def test_a_bare_number_answers_the_last_question(asked: AskedGuess, given: Any) -> None:
    assert take(given, "a run") == Guess(asked.question, "MiB", 4)


@pytest.mark.parametrize("given", ["many", [4], -1, predict, Guess("How?", "MiB", "x")])  # type: ignore[arg-type]
def test_what_is_no_guess_costs_no_run_and_is_named(
    asked: AskedGuess, given: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert take(given, "a run") is None
    assert capsys.readouterr().out.startswith(f"guess is {repr(given)[:20]}")
    predictions._asked.clear()
    assert take(4, "a run") is None  # nothing was asked
    said = "guess is 4, and not drawn: predict(question, unit) makes one\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize("value", [np.float32(1.5), torch.tensor(1.5), Decimal("1.5"), "1,5"])
def test_a_guess_may_be_a_number_of_any_library(asked: AskedGuess, value: Any) -> None:
    asked.value = value
    assert (type(asked.value), asked.value) == (float, 1.5)


@pytest.mark.parametrize("value", ["many", float("nan"), -1, [1]])
def test_a_guess_that_is_no_number_is_refused_by_name(asked: AskedGuess, value: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(f"guess.value is {value!r}: write a number")):
        asked.value = value


@pytest.mark.parametrize(
    "place",
    [Place(), Place(notebook=True, watched=True), Place(notebook=True, widgets=True)],
    ids=["terminal", "no ipywidgets", "headless"],
)
def test_without_a_field_a_line_says_what_to_type(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    monkeypatch.setattr(predictions, "detect_place", lambda: place)
    guess = predict("How many rows a second?", "samples/s")
    assert guess._repr_mimebundle_() == {
        "text/plain": "How many rows a second? Write your guess in samples/s: guess.value = ..."
    }
    assert guess.value is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("512MiB", 512), ("1,5 gib", 1536), ("0 GB", 0), ("250 samples/s", None)),
        *((" 12.5 ", 12.5), ("12,5", 12.5), ("1,234,567", 1_234_567), ("1e3", 1000)),
        *((text, None) for text in ("", "nan", "inf", "a lot")),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, number: float | None) -> None:
    assert parse_number(text, "MiB") == number
    assert parse_number("250 samples/s", "samples/s") == 250
