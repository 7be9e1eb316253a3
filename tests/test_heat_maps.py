"""Heat maps: every number stands in its square, and the deeper colour is the larger one."""

import pytest

from helpers.drawing.figure_style import pixels
from helpers.drawing.heat_maps import draw_heat_maps

NAN = float("nan")
TABLES = {"computed": [[1.0, 512.0], [1.0, 4096.0]], "measured": [[1.0, 498.6], [0.5, NAN]]}
NAMES = {"rows": ["whole rows", "tall"], "columns": ["in order", "shuffled"]}


def test_each_number_stands_in_its_square() -> None:
    picture = draw_heat_maps(TABLES, **NAMES, what="Bytes read")
    said = [[text.get_text() for text in ax.texts] for ax in picture.figure.axes]
    assert said == [["1", "512", "1", "4,096"], ["1", "499", "0.5", "?"]]
    assert picture.alt == (
        "Bytes read. computed, whole rows: in order 1, shuffled 512; "
        "computed, tall: in order 1, shuffled 4,096; "
        "measured, whole rows: in order 1, shuffled 499; measured, tall: in order 0.5, shuffled ?."
    )
    assert pixels(picture.figure)[0] == 1000


def test_a_larger_number_is_deeper_and_its_words_can_be_read() -> None:
    picture = draw_heat_maps(TABLES, **NAMES, what="Bytes read")
    first = picture.figure.axes[0]
    red = [patch.get_facecolor()[0] for patch in first.patches]
    assert red[0] == red[2] > red[1] > red[3]  # blue on white: less red is deeper
    assert [text.get_color() for text in first.texts][3] == "white"


def test_only_the_first_table_names_the_lines() -> None:
    axes = draw_heat_maps(TABLES, **NAMES, what="Bytes read").figure.axes
    assert [ax.yaxis.get_tick_params()["labelleft"] for ax in axes] == [True, False]


def test_tables_of_which_nothing_is_known_are_drawn() -> None:
    picture = draw_heat_maps({"measured": [[NAN]]}, rows=["a"], columns=["b"], what="Bytes read")
    assert [text.get_text() for text in picture.figure.axes[0].texts] == ["?"]


def test_a_table_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'found' has lines of \[1, 2\] numbers: pass 2 lines of"):
        draw_heat_maps({"found": [[1.0], [1.0, 2.0]]}, **NAMES, what="Bytes read")
