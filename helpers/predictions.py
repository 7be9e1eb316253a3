"""Keep what the reader expects before the run, so that the figure can show it beside the result."""

import math
import re
from typing import Any

from helpers.drawing.front_end import detect_place
from helpers.records import Guess
from helpers.running.counting import told

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(\D|$))")


def predict(question: str, unit: str) -> "AskedGuess":
    """Ask for a guess: the cell's last expression shows a field that writes `guess.value`.

    `unit` decides where figures draw the guess: "MiB" and "GiB" on the memory axis, "samples/s" on
    the throughput axis, others as text. Where no field can be shown, a line says what to type.
    """
    return AskedGuess(question, unit)


class AskedGuess(Guess):
    """A guess that shows itself as a field to fill in, or as what was said."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Keep a guess as a plain number, whatever library it is from. Raises ValueError."""
        if name == "value" and value is not None:
            text = value if isinstance(value, str) else str(told(lambda: float(value)))
            number = parse_number(text)
            if number is None:
                raise ValueError(f"guess.value is {value!r}: write a number, for example 250")
            value = number
        super().__setattr__(name, value)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        del include, exclude
        place = detect_place()
        if self.value is None and place.widgets and place.watched:
            bundle: dict[str, Any] = _field(self)._repr_mimebundle_()
            return {**bundle, "text/plain": repr(self)}
        return {"text/plain": repr(self)}

    def __repr__(self) -> str:
        if self.value is None:
            return f"{self.question} Write your guess in {self.unit}: guess.value = ..."
        return f"{self.question} You said {self.value:,g} {self.unit}."


def parse_number(text: str) -> float | None:
    """Return a number as people write it: '1,500' -> 1500.0, '1,5' -> 1.5; None when it is none."""
    try:
        number = float(_THOUSANDS.sub("", text.strip()).replace(",", "."))
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _field(guess: AskedGuess) -> Any:
    """Return the widget: the question, and below it a field that keeps the number typed in."""
    import ipywidgets

    field = ipywidgets.Text(
        description="Your guess", placeholder="a number", tooltip=guess.question
    )
    answer = ipywidgets.Label(guess.unit)

    def keep(change: dict[str, Any]) -> None:
        guess.value = parse_number(change["new"])
        if guess.value is not None:
            answer.value = f"{guess.unit}: {guess.value:,g} is kept"
        else:
            wrong = change["new"].strip()
            answer.value = f"{guess.unit}: write a number, for example 250" if wrong else guess.unit

    field.observe(keep, names="value")
    question = ipywidgets.Label(guess.question)
    return ipywidgets.VBox([question, ipywidgets.HBox([field, answer])])
