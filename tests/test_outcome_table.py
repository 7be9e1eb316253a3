"""The table of outcomes: what it says of each square, and how it fills."""

from typing import Any

import pytest

from helpers.drawing import front_end, outcome_table
from helpers.drawing.front_end import Place
from helpers.drawing.outcome_table import OutcomeTable


def filled() -> OutcomeTable:
    table = OutcomeTable("wrong rows", ["fork", "spawn"])
    table.add("one handle", [93, "TypeError"])
    table.add("each its own", [0, None])
    return table


def test_each_square_tells_its_outcome_in_words_and_with_a_mark() -> None:
    said = [text.get_text() for text in filled().picture().figure.axes[0].texts]
    assert {"fork", "spawn", "one handle", "each its own"} <= set(said)
    assert {"\u2717 93 wrong", "! TypeError", "\u2713 0 wrong", "not tried"} <= set(said)


def test_its_words_are_its_alternative_text() -> None:
    table = filled()
    assert table.picture().alt == repr(table)
    assert "one handle: fork 93 wrong, spawn TypeError." in repr(table)


def test_a_column_is_read_from_the_first_row_to_the_last() -> None:
    assert filled().column("fork") == [93, 0]


def test_a_row_that_is_added_again_is_replaced() -> None:
    table = filled()
    table.add("one handle", [0, 0])
    assert table.column("fork") == [0, 0]


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="'short' has 1 squares: pass one for each of fork, spawn"):
        filled().add("short", [1])


def test_no_words_cover_others() -> None:
    table = OutcomeTable("wrong rows", ["fork", "spawn", "forkserver"])
    table.add("late, after one look, file object", [12_345, "RuntimeError", "PicklingError"])
    figure = table.picture().figure
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if text.get_text()]
    overlaps = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]
    assert overlaps == []


def test_it_fills_while_somebody_looks_and_ends_as_one_figure(monkeypatch: Any) -> None:
    shown: list[Any] = []

    class Handle:
        def update(self, what: Any, raw: bool = False) -> None:
            shown.append(what)

    def display(what: Any, display_id: bool) -> Handle:
        shown.append(what)
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(front_end, "detect_place", lambda: Place(notebook=True, watched=True))
    table = filled()
    assert len(shown) == 2
    assert "<img" in table._repr_mimebundle_()["text/html"]
    assert shown[-1] == {"text/plain": "", "text/html": ""}


def test_headless_nothing_is_shown_before_the_last_expression(monkeypatch: Any) -> None:
    monkeypatch.setattr(front_end, "detect_place", lambda: Place(notebook=True))
    monkeypatch.setattr(outcome_table.OutcomeTable, "picture", lambda self: pytest.fail("drawn"))
    filled()
