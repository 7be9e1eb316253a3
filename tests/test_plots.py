"""Figures, tested through their Axes with records made up by hand."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from made_up import GIB, MIB, by_the_kernel, counted, finished_run, guess, killed_run, snapshot
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

from helpers.drawing import figure_style as style
from helpers.drawing import ticks
from helpers.drawing.live_figure import LiveFigure
from helpers.drawing.mechanisms import draw_double_charge, draw_pickled_map, draw_read_ahead
from helpers.drawing.metrics import Metric
from helpers.drawing.pictures import RECORD_TYPE, in_time
from helpers.drawing.png import encode_png
from helpers.page_cache import Eviction
from helpers.plots import (
    Picture,
    alt_text,
    before_after,
    draw_memory,
    draw_run,
    draw_sweep,
    draw_throughput,
    last_words,
    mimebundle,
    sweep,
    words_and_numbers,
)
from helpers.records import Counters, Guess, Outcome, Run

UNUSUAL = {
    "no snapshot": finished_run(snapshots=()),
    "one snapshot": finished_run(snapshots=(snapshot(0),)),
    "nothing read, nothing charged": finished_run(
        snapshots=(snapshot(0), snapshot(1), snapshot(2))
    ),
    "no time at all": finished_run(seconds=0, snapshots=(snapshot(0), snapshot(0))),
    "a tenth of a second": finished_run(seconds=0.1),
    "five hours": finished_run(seconds=5 * 3600, samples_per_second=0.02),
    "a budget of 10 KiB": finished_run(budget_bytes=10 * 1024),
    "a budget of 100 GiB": finished_run(budget_bytes=100 * GIB),
    "100 GiB used": finished_run(snapshots=(snapshot(0, 100 * 1024), snapshot(10, 10))),
    "many processes": finished_run(
        snapshots=tuple(
            snapshot(t, processes=9, rss_bytes=9 * GIB, charged_bytes=GIB, counters=counted(t, 2e7))
            for t in (0, 5, 10)
        )
    ),
    "a long title and error": killed_run(
        title="a title that goes on " * 9, outcome=Outcome.RAISED, error="RuntimeError:\n" * 40
    ),
    "a guess of memory": killed_run(guess=guess(3, "GiB")),
    "a guess of throughput": finished_run(guess=guess(25_000_000, "samples/s")),
    "a guess of something else": finished_run(guess=guess(3, "open files")),
    "a guess that was never made": finished_run(guess=guess(None, "GiB")),
}


def words(figure: Any) -> str:
    """Return all that is written in a figure."""
    return "\n".join(text.get_text() for text in figure.findobj(Text))


def line_heights(ax: Any) -> list[float]:
    """Return the heights of the horizontal lines in a panel."""
    return [line.get_ydata()[0] for line in ax.lines if len(set(line.get_ydata())) == 1]


def written(artist: Any) -> Iterator[Any]:
    """Yield the words that can be seen in a figure."""
    if artist.get_visible():
        if isinstance(artist, Text) and artist.get_text().strip():
            yield artist
        for child in artist.get_children():
            yield from written(child)


def faults(figure: Figure) -> list[str]:
    """Return the words of a figure that are cut off by an edge or stand over others."""
    figure.canvas.draw()
    boxes = [(text.get_text(), text.get_window_extent().padded(-1)) for text in written(figure)]
    edge = figure.bbox
    cut = [
        words
        for words, box in boxes
        if box.x0 < 0 or box.y0 < 0 or box.x1 > edge.width or box.y1 > edge.height
    ]
    pairs = combinations(boxes, 2)
    return cut + [f"{one} / {two}" for (one, here), (two, there) in pairs if here.overlaps(there)]


GUESSES = {
    "no guess": None,
    "at the budget": guess(1, "GiB"),
    "at zero": guess(0, "GiB"),
    "far above": guess(7, "GiB"),
    "of a rate": guess(1000, "samples/s"),
    "of a huge rate": guess(10**9, "samples/s"),
}
BAD = {
    "killed at once": killed_run(0.3),
    "killed soon": killed_run(2),
    "killed late": killed_run(9.7),
    "killed by the kernel": by_the_kernel(killed_run()),
    "mapped above the budget": killed_run(
        snapshots=(snapshot(0), snapshot(1, 1000, file_bytes=4 * GIB)), seconds=1
    ),
    "with workers": by_the_kernel(killed_run(), processes=5, rss_bytes=9 * GIB),
    "raised": UNUSUAL["a long title and error"],
    "starving": finished_run(samples_per_second=3),
}
CURED = {
    "steady": finished_run(),
    "tiny": finished_run(samples_per_second=1e-3),
    "huge": finished_run(samples_per_second=25e6, measure="private bytes"),
    "minutes": by_the_kernel(finished_run(seconds=150)),
    "short": finished_run(seconds=0.004),
}


RUNS = UNUSUAL | BAD | CURED


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_no_word_of_a_run_is_cut_off_or_stands_over_another(run: Run) -> None:
    assert faults(draw_run(run).figure) == []


@pytest.mark.parametrize("said", GUESSES.values(), ids=GUESSES)
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_no_word_of_before_and_after_is_cut_off_or_stands_over_another(
    bad: Run, said: Guess | None
) -> None:
    turn = list(BAD.values()).index(bad) + list(GUESSES.values()).index(said)
    figure = before_after(bad, list(CURED.values())[turn % len(CURED)], said).figure
    assert faults(figure) == []
    assert style.pixels(figure) <= (1000, 520)


@pytest.mark.parametrize("highest", [2, 1e9])
def test_no_word_of_a_sweep_is_cut_off_or_stands_over_another(highest: float) -> None:
    runs = [
        finished_run(samples_per_second=1, title="a long name for a bar " * 9),
        finished_run(samples_per_second=highest, outcome=Outcome.TIMED_OUT),
        finished_run(samples_per_second=highest),
        killed_run(),
    ]
    assert faults(sweep(runs, cures=runs[2:3]).figure) == []


@pytest.mark.parametrize(
    "outside",
    [
        "it costs $\\frac$",
        "\udcff.npy",
        "\x1b[1mbold\x1b[0m\r\n\x07next",
        "日本語 \U0001f680",
        "long" * 10**6,
    ],
    ids=["mathematics", "not text", "terminal codes", "no glyphs", "megabytes"],
)
def test_words_from_outside_are_drawn_and_told_whatever_they_are(outside: str) -> None:
    run = killed_run(title=outside, outcome=Outcome.RAISED, error=outside, guess=guess(1, outside))
    own = Metric(outside, lambda run: 1, lambda value: outside)
    for picture in (draw_run(run), before_after(run, run), sweep([run, run], own, cures=[run])):
        assert faults(picture.figure) == []
        assert "\x1b" not in words(picture.figure) + picture.alt
        assert len(picture.alt) < 5000
        assert picture._repr_mimebundle_()["text/html"].encode()
    kept = {**mimebundle(run), "text/html": ""}
    assert len(json.dumps(kept, ensure_ascii=False).encode()) < 6000  # as Jupyter sends it
    assert LiveFigure(outside, GIB, "watcher").frame(run.snapshots)


@pytest.mark.parametrize(
    ("picture", "told"),
    [
        (draw_read_ahead(16 * 1024, 4096, 8 * MIB), "2,048 pages, 8 MiB: 512 times what is used"),
        (draw_read_ahead(512, 4096, 4096, used_rows=99), "1 page, 4 KiB: all of it is used"),
        (draw_read_ahead(3 * MIB, 4096, 1), "768 pages, 3 MiB: all of it is used"),
        (draw_pickled_map(195 * MIB, 2), "2 workers: 390 MiB of private copies"),
        (draw_pickled_map(4 * GIB, 99), "one page cache: 4 GiB"),
        (draw_double_charge(4 * GIB, GIB), "At 512 MiB read both are 1 GiB. From there"),
        (draw_double_charge(300 * MIB, GIB), "The array ends at 300 MiB: it fits"),
    ],
)
def test_a_mechanism_is_a_small_picture_that_tells_its_numbers(picture: Picture, told: str) -> None:
    assert faults(picture.figure) == []
    assert told in picture.alt
    width, height = style.pixels(picture.figure)
    assert width <= 1000
    assert height <= 260


def test_a_mechanism_without_a_size_names_it() -> None:
    with pytest.raises(ValueError, match="workers is 0: pass a number above zero"):
        draw_pickled_map(GIB, 0)


def test_words_that_are_cut_off_or_stand_over_others_are_noticed() -> None:
    figure = style.new_figure(100, 100)
    figure.text(0.5, 0.5, "far too long for it")
    figure.text(0.5, 0.5, "x")
    assert faults(figure) == ["far too long for it", "far too long for it / x"]


@pytest.mark.parametrize("outcome", Outcome)
def test_the_figure_says_how_the_run_ended(outcome: Outcome) -> None:
    ax = draw_memory(killed_run(outcome=outcome))
    assert str(outcome) in words(ax)
    crosses = [line for line in ax.lines if line.get_marker() == "X"]
    assert len(crosses) == (0 if outcome is Outcome.FINISHED else 1)


def test_memory_is_stacked_by_kind_up_to_its_sum() -> None:
    ax = draw_memory([snapshot(0, 200), snapshot(1, 300)], GIB)
    tops = [
        shape.get_paths()[0].get_extents().y1 / MIB
        for shape in ax.collections
        if isinstance(shape, PolyCollection)
    ]
    assert tops == [300, 310, 410]


@pytest.mark.parametrize(
    ("holder", "counts"),
    [("watcher", "(does not count)"), ("kernel (cgroup v1)", "(counts until taken back)")],
)
def test_no_kind_is_told_by_colour_alone_and_the_page_cache_says_whether_it_counts(
    holder: str, counts: str
) -> None:
    assert len({look.get("hatch") for look in style.KINDS.values()}) == len(style.KINDS)
    assert len({str(look["linestyle"]) for look in style.LINES.values()}) == len(style.LINES)
    ax: Any = draw_memory(finished_run(enforced_by=holder))
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == ["anonymous", "shared", f"file-backed {counts}"]
    assert f"budget 1 GiB ({holder.split()[0]})" in words(ax)


def test_the_budget_is_a_line_with_its_name() -> None:
    ax = draw_memory(finished_run())
    assert GIB in line_heights(ax)
    assert "budget 1 GiB" in words(ax)


def test_the_baseline_is_named_where_it_can_be_seen() -> None:
    assert "Python and torch" in words(draw_memory(finished_run()))
    assert "Python and torch" not in words(draw_memory(finished_run(budget_bytes=100 * GIB)))


def test_what_the_kernel_charges_is_drawn_where_it_is_known() -> None:
    assert "charged" not in words(draw_memory(finished_run()))
    snapshots = (snapshot(0, charged_bytes=GIB), snapshot(10, charged_bytes=GIB))
    assert "charged" in words(draw_memory(finished_run(snapshots=snapshots)))


def test_another_measure_than_pss_is_named() -> None:
    assert "USS" not in words(draw_memory(finished_run()))
    assert "USS" in words(draw_memory(finished_run(measure="USS")))


def test_a_guess_of_memory_is_a_line_on_the_memory_axis() -> None:
    ax = draw_memory(killed_run(guess=guess(700, "MiB")))
    assert 700 * MIB in line_heights(ax)
    assert "you said 700 MiB" in words(ax)
    assert 700 * MIB not in line_heights(draw_memory(killed_run(guess=guess(700, "samples/s"))))


def test_a_guess_of_throughput_is_a_line_on_the_throughput_axis() -> None:
    ax = draw_throughput(finished_run(guess=guess(1300, "samples/s")))
    assert 1300 in line_heights(ax)
    assert ax.get_ylim()[1] > 1300


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ("seconds", "you said 42 seconds, measured 10.0 seconds"),
        ("samples", "you said 42 samples, measured 10,000 samples"),
        ("batches", "you said 42 batches, measured 100 batches"),
        ("open files", "you said 42 open files"),
    ],
)
def test_any_other_guess_is_a_line_of_text(unit: str, said: str) -> None:
    assert said in words(draw_run(finished_run(guess=guess(42, unit))).figure)


def test_a_run_that_was_to_start_cold_and_did_not_says_so() -> None:
    run = finished_run(cold=(Eviction(Path("x"), GIB, GIB, GIB),))
    for picture in (draw_run(run), before_after(run, finished_run())):
        assert "| started warm: 1 GiB of" in words(picture.figure)
        assert picture.alt.count("Started warm: 1 GiB of 1 GiB of x stayed in the page cache.") == 1
    assert mimebundle(run)[RECORD_TYPE]["why_not_cold"] == run.why_not_cold
    assert "tarted warm" not in words(draw_run(finished_run()).figure) + alt_text(finished_run())


def test_throughput_and_waiting_come_from_the_counters() -> None:
    ax: Any = draw_throughput(finished_run(samples_per_second=1000))
    (curve,) = (line for line in ax.lines if len(line.get_xdata()) > 2)
    assert np.allclose(curve.get_ydata()[10:], 1000)
    assert "waiting for data: 25% of the time" in words(ax)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (finished_run(snapshots=(snapshot(0), snapshot(10))), "does not use track(loader)"),
        (killed_run(), "No batch came"),
    ],
)
def test_a_run_without_counters_says_why_there_is_no_curve(run: Run, reason: str) -> None:
    ax = draw_throughput(run)
    assert reason in words(ax)
    assert not ax.lines


def test_before_and_after_share_their_axes() -> None:
    figure = before_after(killed_run(), finished_run(samples_per_second=50)).figure
    memory, rates = figure.axes[::2], figure.axes[1::2]
    for panels in (memory, rates):
        assert panels[0].get_xlim() == panels[1].get_xlim() == (0, 10)
        assert panels[0].get_ylim() == panels[1].get_ylim()
    assert memory[0].get_ylim()[1] > 1040 * MIB
    assert "load everything" in words(figure)
    assert "killed after 2.0 s" in words(figure)


@pytest.mark.parametrize(("cured_seconds", "enlarged"), [(10, False), (100, True)])
def test_a_run_too_short_to_be_seen_beside_the_other_is_drawn_enlarged_as_well(
    cured_seconds: float, enlarged: bool
) -> None:
    figure = before_after(killed_run(seconds=2), finished_run(seconds=cured_seconds)).figure
    assert ("the same, enlarged" in words(figure)) is enlarged
    corners = [ax for ax in figure.axes[0].child_axes if ax.get_xlim() == (0, 2)]
    assert len(corners) == enlarged


def test_the_cross_stands_where_the_memory_was_and_not_where_no_process_was_left() -> None:
    run = killed_run()
    half_gone = snapshot(2.05, 10, file_bytes=0, shared_bytes=0)
    gone = snapshot(2.1, 0, file_bytes=0, rss_bytes=0, processes=0)  # 10 MiB of /dev/shm stay
    ax: Any = draw_memory(replace(run, seconds=2.1, snapshots=(*run.snapshots, half_gone, gone)))
    (cross,) = (line for line in ax.lines if line.get_marker() == "X")
    assert cross.get_ydata()[0] == (1040 + 110) * MIB


def test_the_sum_of_rss_does_not_squeeze_the_stack() -> None:
    many = [snapshot(time, processes=5, rss_bytes=50 * GIB) for time in (0, 1)]
    assert draw_memory(many, GIB).get_ylim()[1] < 1.6 * GIB


def test_a_guess_far_above_the_budget_is_an_arrow_and_leaves_the_curves_their_room() -> None:
    memory = before_after(killed_run(), finished_run(), guess(7, "GiB")).figure.axes[0]
    assert "\u2191 you said 7 GiB" in words(memory)
    assert memory.get_ylim()[1] < 1.5 * GIB
    far = draw_throughput(finished_run(guess=guess(25_000, "samples/s")))
    assert "\u2191 you said 25,000 samples/s" in words(far)
    assert far.get_ylim()[1] < 2000


def test_a_bar_for_each_run_ends_at_its_value_and_says_it() -> None:
    runs = [finished_run(title=f"at {rate}", samples_per_second=rate) for rate in (100, 200)]
    ax: Any = draw_sweep(runs)
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([100, 200])
    assert ax.get_xscale() == "linear"
    assert "200 samples/s" in words(ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["at 100", "at 200"]


@pytest.mark.parametrize(("highest", "scale"), [(99_000, "linear"), (101_000, "log")])
def test_the_axis_is_logarithmic_beyond_a_thousand_times(highest: float, scale: str) -> None:
    runs = [finished_run(samples_per_second=rate) for rate in (100, highest)]
    assert draw_sweep(runs).get_xscale() == scale


def test_read_amplification_is_bytes_read_over_bytes_used() -> None:
    run = finished_run(
        snapshots=(snapshot(1, read_bytes=375 * 1024, counters=Counters(1, 1, 1024, 1.0, 0.0)),)
    )
    assert "375 x" in words(draw_sweep([run], "read amplification"))


def test_a_run_without_the_number_says_so() -> None:
    picture = sweep([killed_run(), finished_run()], "samples/s")
    assert "nothing counted (killed)" in words(picture.figure)
    assert "load everything: nothing counted" in picture.alt


def test_a_cure_differs_from_a_failure_that_finished_by_more_than_its_colour() -> None:
    bad, cure = finished_run(title="bad"), finished_run(title="good")
    picture = sweep([bad, cure], cures=[cure])
    hollow, full = picture.figure.axes[0].patches
    assert hollow.get_facecolor() == (1, 1, 1, 1) != full.get_facecolor()
    assert words(picture.figure).count("(cure)") == picture.alt.count("(cure)") == 1
    with pytest.raises(ValueError, match="is not among the runs: add it, or drop it"):
        sweep([bad], cures=[cure])


def test_a_sweep_of_nothing_can_be_drawn() -> None:
    assert sweep([]).png()


def test_a_measure_of_ones_own_can_be_swept() -> None:
    processes = Metric(
        "processes", lambda run: run.snapshots[-1].processes, "{:.0f} of them".format
    )
    assert "1 of them" in words(draw_sweep([finished_run()], processes))


def test_an_unknown_measure_is_named_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"'speed' is not a metric: use one of 'samples/s'"):
        sweep([finished_run()], "speed")


def test_a_picture_shows_itself_with_alternative_text_and_a_size() -> None:
    picture = Picture(style.new_figure(300, 200), alt='5 < 6 & "seven"')
    bundle = picture._repr_mimebundle_()
    assert 'alt="5 &lt; 6 &amp; &quot;seven&quot;" width="300" height="200"' in bundle["text/html"]
    assert "max-width: 100%" in bundle["text/html"]
    assert bundle["text/plain"] == picture.alt
    assert imread(io.BytesIO(picture.png())).shape == (200, 300, 4)


def test_a_figure_is_opaque_so_that_a_dark_theme_does_not_show_through() -> None:
    assert imread(io.BytesIO(draw_run(finished_run()).png()))[:, :, 3].min() == 1


def test_alternative_text_tells_the_numbers() -> None:
    assert alt_text(finished_run(guess=guess(2000, "samples/s"))) == (
        "steady: finished, after 10.0 s. Anonymous memory rose from 210 MiB to 210 MiB of a 1 GiB "
        "budget; 10,000 samples came at 1,000 samples/s, 25% of the time spent waiting for data. "
        "You said 2,000 samples/s, measured 1,000 samples/s."
    )
    assert "no batch was counted" in alt_text(killed_run())
    assert "No memory was sampled" in alt_text(killed_run(snapshots=()))


def test_a_run_in_a_notebook_is_words_a_figure_and_numbers() -> None:
    run = finished_run(value=object())  # whatever the function returned need not be JSON
    bundle = mimebundle(run)
    assert bundle["text/plain"] == repr(run)
    assert bundle["text/html"].startswith('<img alt="steady: finished')
    kept = json.loads(json.dumps(bundle[RECORD_TYPE]))
    assert kept["outcome"] == "finished"
    assert kept["counters"]["samples"] == 10_000
    assert set(kept) >= {"title", "ending", "seconds", "budget_bytes", "peak_anonymous_bytes"}
    assert set(kept) >= {"samples_per_second", "read_bytes", "enforced_by"}
    assert set(words_and_numbers(run)) == {"text/plain", RECORD_TYPE}


@pytest.fixture
def strange_settings() -> Iterator[dict[str, Any]]:
    with matplotlib.rc_context({"text.color": "white", "axes.facecolor": "black", "font.size": 40}):
        yield dict(matplotlib.rcParams)


def test_drawing_neither_follows_nor_changes_the_readers_settings(
    strange_settings: dict[str, Any],
) -> None:
    def draw_all() -> list[bytes]:
        bars = sweep([finished_run(), killed_run()])
        return [before_after(killed_run(), finished_run()).png(), bars.png()]

    with_strange_settings = draw_all()
    assert dict(matplotlib.rcParams) == strange_settings
    with matplotlib.rc_context(matplotlib.rcParamsDefault):
        assert draw_all() == with_strange_settings


def test_drawing_does_not_import_pyplot() -> None:
    code = "import sys, helpers.plots; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_axes_that_are_given_are_drawn_on() -> None:
    ax = Figure().add_subplot()
    assert draw_memory(finished_run(), ax=ax) is ax
    assert draw_throughput(finished_run(), ax=ax) is ax


def test_samples_alone_need_a_budget() -> None:
    with pytest.raises(ValueError, match="pass budget_bytes"):
        draw_memory([snapshot(0)])


def test_samples_of_a_run_that_goes_on_can_be_drawn() -> None:
    ax = draw_memory([snapshot(0), snapshot(4)], 2 * GIB)
    assert ax.get_xlim() == (0, 4)
    assert "finished" not in words(ax)
    assert draw_throughput([]).get_ylim() == (0, 1)


@pytest.mark.parametrize("top", [1, 10_240, 3 * MIB, 1.14 * GIB, 114 * GIB, 2**50])
def test_an_axis_of_bytes_has_a_few_exact_ticks(top: float) -> None:
    ax = style.new_axes()
    ticks.scale_bytes(ax, top)
    assert 2 <= len(ax.get_yticks()) <= 6
    assert ax.get_ylim() == (0, top)


@pytest.mark.parametrize("end", [1e-3, 0.1, 7, 61, 1800, 3600 * 5, 3600 * 24 * 30])
def test_an_axis_of_time_has_a_few_ticks(end: float) -> None:
    ax = style.new_axes()
    ticks.scale_time(ax, end)
    assert 2 <= len(ax.get_xticks()) <= 7


def test_ticks_read_as_people_say_them() -> None:
    assert [ticks.tick_bytes(n) for n in (0, 768 * MIB, 1.25 * GIB)] == ["0", "768 MiB", "1.25 GiB"]
    assert [ticks.tick_time(n) for n in (0, 0.5, 90, 7200)] == ["0", "0.5 s", "1.5 min", "2 h"]
    assert [in_time(n) for n in (0.0213, 14, 99, 7200)] == ["0.021 s", "14.0 s", "1.6 min", "2.0 h"]


def test_a_png_file_gives_back_its_pixels() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 5, 4), dtype=np.uint8)
    assert (imread(io.BytesIO(encode_png(pixels))) * 255 == pixels).all()


def test_a_run_with_other_workers_draws_the_sum_of_rss() -> None:
    assert "RSS, summed" not in words(draw_memory(finished_run()))
    many = tuple(replace(s, processes=5, rss_bytes=2 * GIB) for s in finished_run().snapshots)
    assert "RSS, summed" in words(draw_memory(finished_run(snapshots=many)))


def test_a_run_too_short_for_a_curve_leaves_words_until_it_is_asked_for() -> None:
    short, long = finished_run(seconds=0.05), finished_run(seconds=1)
    assert "text/html" not in last_words(short)
    assert "text/html" in mimebundle(short)
    assert "text/html" in last_words(long)
