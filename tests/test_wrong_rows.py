"""Pictures of wrong rows beside the right ones, and of losses."""

import numpy as np
import pytest

from helpers.drawing.wrong_rows import draw_losses, draw_wrong_rows

ROWS = np.arange(8 * 16.0).reshape(8, 4, 4)


def test_each_pair_stands_one_above_the_other_with_its_names() -> None:
    picture = draw_wrong_rows(
        ROWS[:2], ROWS[2:4], ["row 10\nlabel 3", "row 1,100"], ["row 7", "parts of two"]
    )
    titles = [ax.get_title(loc="left") for ax in picture.figure.axes]
    assert titles == ["row 10\nlabel 3", "row 7", "row 1,100", "parts of two"]
    drawn = [np.asarray(ax.images[0].get_array()) for ax in picture.figure.axes]
    assert np.array_equal(drawn, ROWS[[0, 2, 1, 3]])
    assert picture.alt == (
        "asked for row 10 label 3, received row 7; asked for row 1,100, received parts of two."
    )


def test_at_most_six_pairs_are_drawn() -> None:
    picture = draw_wrong_rows(ROWS, ROWS[::-1], ["row 0"] * 8, ["row 1"] * 8)
    assert len(picture.figure.axes) == 12


def test_rows_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match=r"there are \[1, 2\] rows: pass as many of each"):
        draw_wrong_rows(ROWS[:2], ROWS[:2], ["row 0"] * 2, ["row 1"])
    with pytest.raises(ValueError, match=r"there are \[0\] rows"):
        draw_wrong_rows(ROWS[:0], ROWS[:0], [], [])


def test_losses_are_drawn_smoothed_on_the_same_axes() -> None:
    picture = draw_losses(
        {"wrong rows": [3.0] * 400, "right rows": np.linspace(2, 0, 400).tolist()}
    )
    (ax,) = picture.figure.axes
    assert [line.get_label() for line in ax.lines] == ["wrong rows", "right rows"]
    assert [len(np.asarray(line.get_xdata())) for line in ax.lines] == [391, 391]
    assert "wrong rows: from 3.00 to 3.00; right rows: from 2.00 to 0.00." in picture.alt


def test_the_end_of_each_epoch_is_marked_and_the_mean_is_told() -> None:
    (ax,) = draw_losses({"right rows": [1.0] * 400}, 4).figure.axes
    assert [np.asarray(line.get_xdata())[0] for line in ax.lines[:-1]] == [100, 200, 300]
    assert ax.get_title(loc="left") == "training loss, mean of 10 batches"


def test_a_number_of_trainings_that_cannot_be_drawn_is_refused() -> None:
    refused: list[dict[str, list[float]]] = [{}, {"none": []}, {name: [1.0] for name in "abc"}]
    for losses in refused:
        with pytest.raises(ValueError, match="pass one or two, each with its batches"):
            draw_losses(losses)
