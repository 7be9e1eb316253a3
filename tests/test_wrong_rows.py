"""Pictures of wrong rows beside the right ones, and of losses."""

import numpy as np
import pytest

from helpers.drawing.wrong_rows import draw_losses, draw_wrong_rows

ROWS = np.arange(8 * 16.0).reshape(8, 4, 4)


def test_each_pair_stands_one_above_the_other_with_its_names() -> None:
    picture = draw_wrong_rows(ROWS[:2], ROWS[2:4], [10, 1100], ["row 7", "parts of two"])
    titles = [ax.get_title(loc="left") for ax in picture.figure.axes]
    assert titles == ["row 10", "row 7", "row 1,100", "parts of two"]
    drawn = [np.asarray(ax.images[0].get_array()) for ax in picture.figure.axes]
    assert np.array_equal(drawn, ROWS[[0, 2, 1, 3]])
    assert picture.alt == "asked for 10, received row 7; asked for 1100, received parts of two."


def test_at_most_six_pairs_are_drawn() -> None:
    picture = draw_wrong_rows(ROWS, ROWS[::-1], range(8), ["row 1"] * 8)
    assert len(picture.figure.axes) == 12


def test_rows_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match=r"there are \[1, 2\] rows: pass as many of each"):
        draw_wrong_rows(ROWS[:2], ROWS[:2], [1, 2], ["row 1"])
    with pytest.raises(ValueError, match=r"there are \[0\] rows"):
        draw_wrong_rows(ROWS[:0], ROWS[:0], [], [])


def test_losses_are_drawn_smoothed_on_the_same_axes() -> None:
    picture = draw_losses({"wrong rows": [3.0, 1.0], "right rows": np.linspace(2, 0, 400).tolist()})
    (ax,) = picture.figure.axes
    assert [line.get_label() for line in ax.lines] == ["wrong rows", "right rows"]
    assert [len(np.asarray(line.get_xdata())) for line in ax.lines] == [2, 391]
    assert "wrong rows: from 3.00 to 1.00; right rows: from 2.00 to 0.00." in picture.alt


def test_a_number_of_trainings_that_cannot_be_drawn_is_refused() -> None:
    refused: list[dict[str, list[float]]] = [{}, {"none": []}, {name: [1.0] for name in "abc"}]
    for losses in refused:
        with pytest.raises(ValueError, match="pass one or two, each with its batches"):
            draw_losses(losses)
