"""The picture of an open: its parts in order, each as long as it takes."""

from itertools import pairwise

import pytest
from matplotlib.text import Text

from helpers.drawing.opens import PARTS, draw_open
from helpers.drawing.pictures import Picture

SECONDS = dict(zip(PARTS, (3e-6, 110e-6, 37e-6, 540e-6, 4e-6), strict=True))


def words(picture: Picture) -> list[str]:
    return [text.get_text() for text in picture.figure.axes[0].texts]


def test_each_part_says_its_time_and_the_whole_is_their_sum() -> None:
    said = words(draw_open(SECONDS))
    assert {"3 µs", "110 µs", "37 µs", "540 µs", "4 µs"} <= {*said}
    assert "694 µs in all" in said[-1]


def test_the_alternative_text_names_the_largest_part() -> None:
    assert draw_open(SECONDS).alt.endswith("The largest part: chunk.")
    assert draw_open(SECONDS | {"name": 1e-3}).alt.endswith("The largest part: name.")


def test_the_strip_is_as_wide_as_the_boxes_and_each_part_as_its_time() -> None:
    boxes = draw_open(SECONDS).figure.axes[0].patches
    strip = [box.get_extents().width for box in boxes[len(PARTS) :]]
    assert sum(strip) == pytest.approx(960)
    assert strip[3] / strip[1] == pytest.approx(540 / 110)


def test_only_parts_that_are_wide_enough_bear_their_share() -> None:
    said = words(draw_open(SECONDS))
    assert [text for text in said if "%" in text] == ["2: 16%", "4: 78%"]


def test_narrow_parts_bear_their_number_above_and_no_number_lies_on_another() -> None:
    picture = draw_open(dict.fromkeys(PARTS, 1e-6) | {"chunk": 1.0})
    texts = [text for text in picture.figure.axes[0].texts if text.get_text() in {*"1235"}]
    assert [text.get_text() for text in texts] == ["1", "2", "3", "5"]
    picture.figure.canvas.draw()
    places = [text.get_window_extent() for text in texts]
    pairs = pairwise(places)
    assert all(left.x1 <= right.x0 for left, right in pairs)


def test_words_lie_inside_their_boxes_whatever_the_times() -> None:
    picture = draw_open(dict.fromkeys(PARTS, 1.0))
    ax = picture.figure.axes[0]
    picture.figure.canvas.draw()
    for box in ax.patches:
        place = box.get_window_extent()
        inside = [text for text in ax.texts if place.contains(*_middle(text))]
        for text in inside:
            said = text.get_window_extent()
            assert place.x0 <= said.x0 <= said.x1 <= place.x1, text.get_text()
            assert place.y0 <= said.y0 <= said.y1 <= place.y1, text.get_text()


def test_a_part_that_is_missing_or_unknown_is_named() -> None:
    with pytest.raises(ValueError, match=r"the parts are path: give the seconds of path, superb"):
        draw_open({"path": 1.0})
    with pytest.raises(ValueError, match=r"the parts are path, .*, disk: give the seconds of"):
        draw_open({**SECONDS, "disk": 1.0})


@pytest.mark.parametrize("wrong", [0.0, -1e-6, float("nan")])
def test_a_part_that_takes_no_time_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match=r"name takes .* s: measure it again"):
        draw_open(SECONDS | {"name": wrong})


def _middle(text: Text) -> tuple[float, float]:
    place = text.get_window_extent()
    return (place.x0 + place.x1) / 2, (place.y0 + place.y1) / 2
