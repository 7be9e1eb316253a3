"""The pictures of an order, of what is learned from it, and of a buffer."""

from typing import Any

import numpy as np
import pytest

from helpers.drawing.shuffle_buffer import draw_shuffle_buffer
from helpers.drawing.stream_order import AccuracyCurves, draw_order
from helpers.loaders.order import ShuffleBuffer


def strip(labels: Any) -> Any:
    return np.asarray(draw_order({"it": labels}).figure.axes[0].images[0].get_array())


def test_a_sorted_stream_is_a_staircase_and_a_shuffled_one_is_grey() -> None:
    labels = np.repeat(np.arange(10), 200)
    assert np.array_equal(strip(labels).argmax(0), np.repeat(np.arange(10), 20))
    assert strip(labels).max() == 1
    assert strip(np.random.default_rng(0).permutation(labels)).max() < 0.7


def test_each_stream_has_its_strip_and_its_longest_run_is_told() -> None:
    picture = draw_order({"one": [0, 0, 0, 1], "two": np.array([0, 1, 0, 1])})
    assert repr(picture) == "one: 3 of one class in a row; two: 1 of one class in a row."
    assert [ax.get_title(loc="left") for ax in picture.figure.axes] == ["one", "two"]


@pytest.mark.parametrize("strips", [{}, {"empty": []}])
def test_no_labels_are_refused(strips: Any) -> None:
    with pytest.raises(ValueError, match="pass at least one stream with samples"):
        draw_order(strips)


def test_curves_end_where_they_are_said_to() -> None:
    curves = AccuracyCurves(chance=0.1)
    curves.add("sorted", [0.1, 0.2])
    curves.add("full", [0.5, 0.9])
    curves.add("sorted", [0.1, 0.15])  # its cell ran again
    assert curves.final("sorted") == 0.15
    assert repr(curves) == "Accuracy at the end of the epoch. sorted: 0.15; full: 0.90."
    (ax,) = curves.picture().figure.axes
    assert [float(np.asarray(line.get_ydata())[-1]) for line in ax.lines] == [0.15, 0.9, 0.1]
    with pytest.raises(ValueError, match="'none' has no accuracies"):
        curves.add("none", [])


def test_the_picture_of_a_buffer_tells_the_reach_that_a_buffer_has() -> None:
    picture = draw_shuffle_buffer(100, 2000, 20_000)
    assert "moved by 74 places on average, and a run of one class is 2,000 long" in picture.alt
    places = np.array([*ShuffleBuffer(range(20_000), 100)])
    assert 70 < np.abs(places - np.arange(20_000)).mean() < 77


def test_no_words_of_the_buffer_cover_others() -> None:
    texts = draw_shuffle_buffer(1024, 2048, 20_480).figure.axes[0].texts
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    assert [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)] == []


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((0, 5, 9), "buffer_size is 0: pass a number above zero"),
        ((10, 5, 9), "buffer_size is 10, of a stream of 9: pass less"),
        ((3, 10, 9), "run_length is 10, of a stream of 9: pass less"),
    ],
)
def test_numbers_that_cannot_be_are_refused(numbers: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw_shuffle_buffer(*numbers)
