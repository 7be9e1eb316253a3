"""The picture of a table in chunks: which chunks are shaded, and what the words say."""

from typing import Any

import pytest
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from helpers.drawing import sketch
from helpers.drawing.chunk_grid import draw_chunk_grid
from helpers.drawing.figure_style import BUDGET, pixels

TABLE = (131_072, 128)
RATIOS = {"rows in order": 1.0, "rows shuffled": 512.0, "columns": 128.0}


def _boxes(picture: Any, left: float, colour: str) -> int:
    """Return how many boxes of a colour begin in the third of the picture that begins at `left`."""
    boxes = [box for box in picture.figure.axes[0].patches if isinstance(box, Rectangle)]
    here = [box for box in boxes if left <= box.get_x() < left + 320]
    return sum(box.get_facecolor() == to_rgba(colour) for box in here)


@pytest.mark.parametrize(
    ("chunks", "shaded"),
    [
        ((512, 128), (2, 3, 8)),  # a column touches every chunk below each other
        ((4096, 16), (16, 24, 8)),
        ((65_536, 1), (8, 16, 2)),  # at most eight are drawn across
    ],
)
def test_what_is_read_is_shaded(chunks: tuple[int, int], shaded: tuple[int, int, int]) -> None:
    picture = draw_chunk_grid(TABLE, chunks, RATIOS)
    blue = sketch.PAGE_CACHE["facecolor"]
    assert tuple(_boxes(picture, left, blue) for left in (20, 360, 700)) == shaded
    assert [_boxes(picture, left, BUDGET) for left in (20, 360, 700)] == [1, 3, 1]


def test_the_words_name_the_table_the_chunks_and_the_ratios() -> None:
    picture = draw_chunk_grid(TABLE, (4096, 16), {"rows shuffled": 4096.2, "columns": float("nan")})
    assert picture.alt == (
        "A table of 131,072 x 128 in chunks of 4,096 x 16. "
        "rows in order; rows shuffled: 4,096 x; columns: unknown."
    )
    assert max(pixels(picture.figure)) <= 1000


@pytest.mark.parametrize(
    ("shape", "drawn_rows", "note"),
    [
        (TABLE, None, "Drawn is a part of a table"),
        (TABLE, 2048, "Drawn is a part of a table"),
        ((2048, 128), 2048, "Drawn is a table of 2,048 rows"),
    ],
)
def test_a_part_of_a_table_is_called_a_part(
    shape: tuple[int, int], drawn_rows: int | None, note: str
) -> None:
    picture = draw_chunk_grid(shape, (512, 128), {}, drawn_rows=drawn_rows)
    assert any(text.get_text().startswith(note) for text in picture.figure.axes[0].texts)


def test_smaller_chunks_are_drawn_smaller_over_the_same_rows() -> None:
    blue = sketch.PAGE_CACHE["facecolor"]
    large, small = (
        draw_chunk_grid(TABLE, (rows, 128), {}, drawn_rows=2048) for rows in (2048, 128)
    )
    assert (_boxes(large, 700, blue), _boxes(small, 700, blue)) == (1, 16)


@pytest.mark.parametrize("rows", [128, 256, 512, 1024])
def test_a_row_shades_one_chunk_and_is_drawn_inside_it(rows: int) -> None:
    picture = draw_chunk_grid(TABLE, (rows, 128), {}, drawn_rows=2048)
    boxes = [box for box in picture.figure.axes[0].patches if isinstance(box, Rectangle)]
    here = [box for box in boxes if 360 <= box.get_x() < 680]
    blue = [b for b in here if b.get_facecolor() == to_rgba(sketch.PAGE_CACHE["facecolor"])]
    lines = [b for b in here if b.get_facecolor() == to_rgba(BUDGET)]
    for line in lines:
        top, end = line.get_y(), line.get_y() + line.get_height()
        assert sum(b.get_y() <= top and end <= b.get_y() + b.get_height() for b in blue) == 1
    assert len(blue) == min(len(lines), 2048 // rows)


@pytest.mark.parametrize("chunks", [(131_073, 128), (512, 129), (0, 128), (512,), (512, 128, 1)])
def test_chunks_larger_than_the_table_are_refused(chunks: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"do not fit a table of shape \(131072, 128\): pass two"):
        draw_chunk_grid(TABLE, chunks, RATIOS)
