"""The picture of two processes and one file position."""

import pytest

from helpers.drawing.shared_position import draw_shared_position


def test_the_positions_are_those_of_the_rows() -> None:
    picture = draw_shared_position(40, 1000, 16_384)
    said = {text.get_text() for text in picture.figure.axes[0].texts}
    assert {"655,360", "16,384,000", f"{1001 * 16_384:,}", f"{1002 * 16_384:,}"} <= said
    assert "Worker 1 asked for row 40 and has row 1,000" in picture.alt


def test_the_positions_count_from_where_the_rows_start() -> None:
    picture = draw_shared_position(0, 1, 16_384, start=2048)
    said = {text.get_text() for text in picture.figure.axes[0].texts}
    assert {"go to 2,048", "2,048", "18,432", "34,816", "51,200"} <= said


def test_no_words_cover_others() -> None:
    texts = draw_shared_position(40, 1000, 16_384).figure.axes[0].texts
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    assert [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)] == []


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((-1, 2, 8), "first is -1: pass 0 or more"),
        ((1, -2, 8), "second is -2: pass 0 or more"),
        ((1, 2, 0), "row_bytes is 0: pass 1 or more"),
        ((3, 3, 8), "both ask for row 3: pass two different rows"),
    ],
)
def test_numbers_that_cannot_be_are_refused(numbers: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw_shared_position(*numbers)
