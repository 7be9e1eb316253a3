"""The figures of shared pages, tested through their Axes with records made up by hand."""

from typing import Any

import pytest
from made_up import MIB, finished_run, snapshot
from matplotlib.text import Text
from test_plots import faults

from helpers.drawing import figure_style as style
from helpers.drawing.shared_pages import (
    draw_copied,
    draw_sums,
    draw_touched_page,
)
from helpers.forked_reads import ForkedRead
from helpers.records import Run


def bloated(workers: int = 4, **others: Any) -> Run:
    """Return a run whose workers' memory grows while the sum of RSS stands still."""
    grown = tuple(
        snapshot(
            time,
            300 + 100 * time,
            processes=workers + 1,
            rss_bytes=1500 * MIB,
            workers_bytes=(200 + 100 * time) * MIB,
            **others,
        )
        for time in range(5)
    )
    return finished_run(snapshots=(snapshot(0), *grown, snapshot(5)), title="a list of paths")


@pytest.mark.parametrize("objects", [1, 2, 36, 500])
def test_a_touched_page_tells_its_objects_and_its_counts(objects: int) -> None:
    picture = draw_touched_page(objects, 4096, (1, 2))
    assert faults(picture.figure) == []
    assert f"4 KiB hold {objects} object" in picture.alt
    assert "the count becomes 2: 4 KiB are copied" in picture.alt
    width, height = style.pixels(picture.figure)
    assert (width <= 1000, height <= 260) == (True, True)


def test_a_touched_page_tells_what_is_left_out_and_where_its_numbers_are_from() -> None:
    words = [
        text.get_text()
        for text in draw_touched_page(37, 4096, note="an example").figure.findobj(Text)
    ]
    assert "(an example)" in words
    assert any("37 objects (24 drawn)" in line for line in words)


def test_containers_are_drawn_by_size_with_what_was_copied_filled() -> None:
    reads = {"list": ForkedRead(200, 180, 5e-8), "array": ForkedRead(100, 0, 8e-7)}
    picture = draw_copied(reads)
    assert faults(picture.figure) == []
    bars: Any = picture.figure.axes[0].patches
    widths = [bar.get_bbox().width for bar in bars]
    assert widths == [210, 0, 420, 378]
    assert picture.alt.startswith("array: 100 B, 0% of it copied")


def test_no_containers_are_refused() -> None:
    with pytest.raises(ValueError, match="no container to draw"):
        draw_copied({})


@pytest.mark.parametrize("name", ["objects", "page_bytes"])
def test_a_page_of_nothing_is_refused(name: str) -> None:
    sizes: dict[str, Any] = {"objects": 36, "page_bytes": 4096, name: 0}
    with pytest.raises(ValueError, match=f"{name} is 0: pass a number above zero"):
        draw_touched_page(**sizes)


def test_three_sums_are_drawn_while_all_workers_live() -> None:
    picture = draw_sums(bloated())
    assert faults(picture.figure) == []
    ax: Any = picture.figure.axes[0]
    drawn = [line.get_ydata() / MIB for line in ax.lines]
    assert [(line[0], line[-1]) for line in drawn] == [(1500, 1500), (410, 810), (50, 150)]
    assert "sum of RSS: 1.5 GiB to 1.5 GiB" in picture.alt
    assert "anonymous, mean of the workers: 50 MiB to 150 MiB" in picture.alt
    assert ax.lines[0].get_linestyle() == "--"  # as in the figure of a run
    assert not any(line.get_clip_on() for line in ax.lines)  # the last points are whole


def test_sums_of_one_height_have_names_that_do_not_overlap() -> None:
    assert faults(draw_sums(bloated(1)).figure) == []


def test_a_reading_that_does_not_see_what_is_shared_is_left_out() -> None:
    assert len(bloated().worked_snapshots) == 5
    assert bloated(exact=False).worked_snapshots == ()


def test_a_run_without_workers_says_so() -> None:
    assert draw_sums(finished_run(title="alone")).alt == "alone: no worker was seen."
