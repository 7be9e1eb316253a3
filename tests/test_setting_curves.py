"""The pictures of lesson 08: settings that are moved, and the stages of a batch."""

from typing import Any

import pytest

from helpers.drawing.setting_curves import draw_setting
from helpers.drawing.stages import draw_stages

SMALL = {0: (4e6, 0.01), 2: (2e5, 0.1)}
HEAVY = {0: (3e5, 0.02), 2: (5e5, 0.1)}


def heights(line: Any) -> list[float]:
    return list(line.get_ydata())


def test_a_setting_has_its_rates_on_the_left_and_its_first_batches_on_the_right() -> None:
    picture = draw_setting("num_workers", {"small": SMALL, "heavy": HEAVY}, limit=2e6)
    left, right = picture.figure.axes
    assert [heights(line) for line in left.lines[:2]] == [[4e6, 2e5], [3e5, 5e5]]
    assert [heights(line) for line in right.lines] == [[0.01, 0.1], [0.02, 0.1]]
    assert [text.get_text() for text in left.get_xticklabels()] == ["0", "2"]
    assert left.get_yscale() == "linear" or left.get_ylim()[0] > 0
    words = [text.get_text() for text in picture.figure.legends[0].get_texts()]
    assert words == ["small", "heavy", "this disk, in order (the best has 200% of it)"]
    assert "heavy: 0 300,000 samples/s, 2 500,000 samples/s." in picture.alt


def test_rates_far_apart_stand_on_a_logarithmic_axis() -> None:
    far = draw_setting("x", {"it": {0: (4e6, 1.0), 1: (1e4, 1.0)}}).figure.axes[0]
    near = draw_setting("x", {"it": HEAVY}).figure.axes[0]
    assert (far.get_yscale(), near.get_yscale()) == ("log", "linear")
    assert near.get_ylim()[0] == 0


@pytest.mark.parametrize(
    ("curves", "said"),
    [({}, "no points"), ({"it": {}}, "no points"), ({"it": {0: (0, 1)}}, "'it' at 0 has a rate")],
)
def test_what_was_not_measured_is_not_drawn(curves: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        draw_setting("x", curves)


def test_stages_are_as_wide_as_they_were_measured() -> None:
    picture = draw_stages({"one": {"read": 0.001, "message": 0.003}, "two": {"read": 0.002}})
    patches: Any = picture.figure.axes[0].patches
    assert [patch.get_width() for patch in patches] == pytest.approx([240, 720, 480])
    assert picture.alt == "one: read 1 ms, message 3 ms. two: read 2 ms."


def test_narrow_stages_have_their_words_below_and_none_lie_on_others() -> None:
    stages = {"read": 0.00005, "collate": 0.0001, "message": 0.002, "step": 0.00001}
    texts = draw_stages({"it": stages}).figure.axes[0].texts
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    assert [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)] == []


@pytest.mark.parametrize("rows", [{}, {"it": {}}, {"it": {"read": 0}}, {"it": {"read": -1}}])
def test_stages_without_time_are_refused(rows: Any) -> None:
    with pytest.raises(ValueError, match="give"):
        draw_stages(rows)
