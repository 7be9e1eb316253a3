"""Keep what the reader expects before the run, so that the figure can show it beside the result."""

import math
import re
import sys
from typing import Any

from helpers.drawing.front_end import detect_place
from helpers.drawing.words import one_line
from helpers.records import Guess
from helpers.running.counting import told
from helpers.units import parse_size

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(\D|$))")
_NUMBER_AND_UNIT = re.compile(r"(.*\d\.?)\s*(\D*)")
_asked: dict[tuple[str, str], "AskedGuess"] = {}  # the latest is the last


def predict(question: str, unit: str) -> "AskedGuess":
    """Ask for a guess: the cell's last expression shows a field that writes `guess.value`.

    `unit` decides where figures draw the guess: "MiB" and "GiB" on the memory axis, "samples/s" on
    the throughput axis, others as text. Where no field can be shown, a line says what to type.
    Asked again in the same words, it returns the guess that was made. A guess belongs to the first
    run that takes it; beside another run it is drawn by `before_after(..., guess=guess)`.
    """
    guess = _asked.pop((question, unit), None) or AskedGuess(question, unit)
    guess.in_field = True
    _asked[question, unit] = guess
    return guess


class AskedGuess(Guess):
    """A guess that shows itself as a field to fill in, or as what was said."""

    in_field = False  # whether the next display is a field even where a guess was made
    taken_by = ""  # the title of the run that it belongs to

    def __setattr__(self, name: str, value: Any) -> None:
        """Keep a guess as a plain number, whatever library it is from. Raises ValueError."""
        if name == "value":
            value = None if value is None else _number(value, self.unit)
            self.in_field, self.taken_by = False, ""
        super().__setattr__(name, value)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        del include, exclude
        place, in_field = detect_place(), self.in_field or self.value is None
        self.in_field = False
        if in_field and place.widgets and place.watched:
            bundle: dict[str, Any] = _field(self)._repr_mimebundle_()
            return {**bundle, "text/plain": repr(self)}
        return {"text/plain": repr(self)}

    def __repr__(self) -> str:
        if self.value is None:
            return f"{self.question} Write your guess in {self.unit}: guess.value = ..."
        return f"{self.question} You said {self.value:,g} {self.unit}."


def take(given: Any, title: str) -> Guess | None:
    """Return a guess for the record of a run with this title: a copy, which stays as it is now.

    One that belongs to another run is None, and so is what is no guess: then a line says so.
    """
    guess = as_guess(given)
    if isinstance(guess, AskedGuess) and guess.value is not None:
        guess.taken_by = guess.taken_by or title
        guess = guess if guess.taken_by == title else None
    return guess and Guess(guess.question, guess.unit, guess.value)


def as_guess(given: Any) -> Guess | None:
    """Return a guess as it is, and a number as the answer to the last question; never raise."""
    try:
        if isinstance(given, AskedGuess) or given is None:
            return given
        if isinstance(given, Guess):
            value = None if given.value is None else _number(given.value, given.unit)
            return Guess(str(given.question), str(given.unit), value)
        asked = next(reversed(_asked.values()))
        asked.value = given
    except Exception:  # noqa: BLE001 - it may be anything, and must not cost a run
        what = one_line(told(lambda: repr(given)) or type(given).__name__, 60)
        sys.stdout.write(f"guess is {what}, and not drawn: predict(question, unit) makes one\n")
        return None
    return asked


def parse_number(text: str, unit: str = "") -> float | None:
    """Return a number in `unit` as people write it, or None: '1,500', '1,5', '16 gib' in MiB."""
    found = _NUMBER_AND_UNIT.fullmatch(_THOUSANDS.sub("", text.strip()).replace(",", "."))
    try:
        number = float(found[1]) if found else math.nan
        if found and found[2].casefold() not in ("", unit.casefold()):
            number *= parse_size(f"1 {found[2]}") / parse_size(f"1 {unit}")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _number(value: Any, unit: str) -> float:
    text = value if isinstance(value, str) else str(told(lambda: float(value)))
    if (number := parse_number(text, unit)) is None:
        raise ValueError(f"guess.value is {value!r}: write a number, for example 250")
    return number


def _field(guess: AskedGuess) -> Any:
    """Return the widget: the question, and below it a field that keeps the number typed in."""
    import ipywidgets

    field = ipywidgets.Text(
        value="" if guess.value is None else f"{guess.value:.15g}",
        description="Your guess",
        placeholder="a number",
        tooltip=guess.question,
    )
    answer = ipywidgets.Label()

    def show(wrong: str = "") -> None:
        kept = "" if guess.value is None else f": {guess.value:,g} is kept"
        advice = ": write a number, for example 250" if wrong else ""
        answer.value = f"{guess.unit}{kept or advice}"

    def keep(change: dict[str, Any]) -> None:
        guess.value = parse_number(change["new"], guess.unit)
        show(wrong=change["new"].strip())

    show()
    field.observe(keep, names="value")
    question = ipywidgets.Label(guess.question)
    return ipywidgets.VBox([question, ipywidgets.HBox([field, answer])])
