"""Figures, tested through their Axes with records made up by hand."""

import io
import json
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
from helpers.drawing.memory_panel import draw_memory
from helpers.drawing.pictures import RECORD_TYPE, Picture, alt_text, in_time
from helpers.drawing.sweeps import draw_rungs, sweep
from helpers.drawing.throughput_panel import draw_throughput
from helpers.page_cache import Eviction
from helpers.plots import before_after, draw_run, last_words, mimebundle, words_and_numbers
from helpers.records import Guess, Outcome, Run

UNUSUAL = {
    "no snapshot": finished_run(snapshots=()),
    "one snapshot": finished_run(snapshots=(snapshot(0),)),
    "nothing read or counted": finished_run(snapshots=(snapshot(0), snapshot(1), snapshot(2))),
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
    "a guess of something else": finished_run(guess=guess(3, "open files")),
    "a guess that was never made": finished_run(guess=guess(None, "GiB")),
}
GUESSES = {
    "no guess": None,
    "at the budget": guess(1, "GiB"),
    "at zero": guess(0, "GiB"),
    "far above": guess(7, "GiB"),
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


def words(figure: Any) -> str:
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
    right, top = figure.bbox.size
    cut = [
        words for words, box in boxes if min(box.x0, box.y0) < 0 or box.x1 > right or box.y1 > top
    ]
    pairs = combinations(boxes, 2)
    return cut + [f"{one} / {two}" for (one, here), (two, there) in pairs if here.overlaps(there)]


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_no_word_of_a_run_is_cut_off_or_stands_over_another(run: Run) -> None:
    figure = draw_run(run).figure
    assert faults(figure) == []
    memory: Any = figure.axes[0]
    assert min(len(memory.get_xticks()), len(memory.get_yticks())) > 1


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


STRANGE = ["a $\\frac$", "\udcff.npy", "\x1b[1mbold\x1b[0m\r\n\x07next", "日本語 \U0001f680"]


@pytest.mark.parametrize("outside", [*STRANGE, "long" * 10**6], ids=lambda words: ascii(words)[:9])
def test_words_from_outside_are_drawn_and_told_whatever_they_are(outside: str) -> None:
    run = killed_run(title=outside, outcome=Outcome.RAISED, error=outside, guess=guess(1, outside))
    for picture in (draw_run(run), before_after(run, run), sweep([run, run], cures=[run])):
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
        (draw_read_ahead(4096, 4096, 4096), "1 page, 4 KiB: all of it is used"),
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
    assert (width <= 1000, height <= 260) == (True, True)
    with pytest.raises(ValueError, match="workers is 0: pass a number above zero"):
        draw_pickled_map(GIB, 0)


def test_words_that_are_cut_off_or_stand_over_others_are_noticed() -> None:
    figure = style.new_figure(100, 100)
    figure.text(0.5, 0.5, "far too long for it")
    figure.text(0.5, 0.5, "x")
    assert faults(figure) == ["far too long for it", "far too long for it / x"]


@pytest.mark.parametrize("outcome", Outcome)
def test_the_figure_says_how_the_run_ended(outcome: Outcome) -> None:
    ax: Any = draw_run(killed_run(outcome=outcome)).figure.axes[0]
    assert str(outcome) in words(ax)
    crosses = [line for line in ax.lines if line.get_marker() == "X"]
    assert len(crosses) == (0 if outcome is Outcome.FINISHED else 1)


def test_memory_is_stacked_by_kind_up_to_its_sum_which_the_sum_of_rss_does_not_squeeze() -> None:
    many: dict[str, Any] = {"processes": 5, "rss_bytes": 50 * GIB}
    ax = draw_memory(finished_run(snapshots=(snapshot(0, 200, **many), snapshot(1, 300, **many))))
    assert ax.get_ylim()[1] < 1.6 * GIB
    kinds = [shape for shape in ax.collections if isinstance(shape, PolyCollection)]
    tops = [shape.get_paths()[0].get_extents().y1 / MIB for shape in kinds]
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
    assert GIB in line_heights(ax)


@pytest.mark.parametrize(
    ("name", "there", "absent"),
    [
        ("Python and torch", finished_run(), UNUSUAL["a budget of 100 GiB"]),
        ("charged by the kernel", BAD["killed by the kernel"], finished_run()),
        ("RSS, summed", BAD["with workers"], by_the_kernel(killed_run(), rss_bytes=9 * GIB)),
        ("(private bytes)", CURED["huge"], finished_run()),
    ],
)
def test_a_line_or_a_measure_is_named_only_where_it_can_be_seen(
    name: str, there: Run, absent: Run
) -> None:
    assert name in words(draw_memory(there))
    assert name not in words(draw_memory(absent))


def test_a_guess_is_a_line_on_its_axis_and_far_above_the_curves_an_arrow() -> None:
    memory, rate = draw_run(killed_run(guess=guess(700, "MiB"))).figure.axes
    assert 700 * MIB in line_heights(memory)
    assert "you said 700 MiB" in words(memory)
    memory, rate = draw_run(finished_run(guess=guess(1300, "samples/s"))).figure.axes
    assert 1300 in line_heights(rate)
    assert 1300 < rate.get_ylim()[1] < 2000
    assert "you said" not in words(memory)
    memory = before_after(killed_run(), finished_run(), guess(7, "GiB")).figure.axes[0]
    assert "\u2191 you said 7 GiB" in words(memory)
    assert memory.get_ylim()[1] < 1.5 * GIB
    far = draw_throughput(finished_run(guess=guess(25_000, "samples/s")))
    assert "\u2191 you said 25,000 samples/s" in words(far)
    assert far.get_ylim()[1] < 2000


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ("seconds", "you said 42 seconds, measured 10.0 seconds"),
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
    ended = finished_run(cold=(Eviction(Path("x"), GIB, GIB, 0, resident_at_end=GIB),))
    assert "| 1 GiB of 1 GiB of x ended in the page cache" in words(draw_run(ended).figure)
    assert mimebundle(ended)[RECORD_TYPE]["why_in_ram"] == ended.why_in_ram
    assert "tarted warm" not in words(draw_run(finished_run()).figure) + alt_text(finished_run())


def test_throughput_and_waiting_come_from_the_counters() -> None:
    ax: Any = draw_throughput(finished_run(samples_per_second=1000))
    (curve,) = (line for line in ax.lines if len(line.get_xdata()) > 2)
    assert np.allclose(curve.get_ydata()[10:], 1000)
    assert "waiting for data: 25% of the time" in words(ax)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (UNUSUAL["nothing read or counted"], "does not use track(loader)"),
        (UNUSUAL["no snapshot"], "does not use track(loader)"),
        (killed_run(), "No batch came"),
    ],
)
def test_a_run_without_counters_says_why_there_is_no_curve(run: Run, reason: str) -> None:
    ax = draw_throughput(run)
    assert reason in words(ax)
    assert not ax.lines


@pytest.mark.parametrize(("cured_seconds", "enlarged"), [(10, False), (100, True)])
def test_before_and_after_share_their_axes_and_a_run_too_short_for_them_is_enlarged_as_well(
    cured_seconds: float, enlarged: bool
) -> None:
    cured = finished_run(cured_seconds, samples_per_second=50)
    figure = before_after(killed_run(seconds=2), cured).figure
    memory, rates = figure.axes[::2], figure.axes[1::2]
    for panels in (memory, rates):
        assert panels[0].get_xlim() == panels[1].get_xlim() == (0, cured_seconds)
        assert panels[0].get_ylim() == panels[1].get_ylim()
    assert memory[0].get_ylim()[1] > 1040 * MIB
    assert "load everything" in words(figure)
    assert "killed after 2.0 s" in words(figure)
    assert ("the same, enlarged" in words(figure)) is enlarged
    corners = [ax for ax in memory[0].child_axes if ax.get_xlim() == (0, 2)]
    assert len(corners) == enlarged


def test_the_cross_stands_where_the_memory_was_and_not_where_no_process_was_left() -> None:
    run = killed_run()
    half_gone = snapshot(2.05, 10, file_bytes=0, shared_bytes=0)
    gone = snapshot(2.1, 0, file_bytes=0, rss_bytes=0, processes=0)  # 10 MiB of /dev/shm stay
    ax: Any = draw_memory(replace(run, seconds=2.1, snapshots=(*run.snapshots, half_gone, gone)))
    (cross,) = (line for line in ax.lines if line.get_marker() == "X")
    assert cross.get_ydata()[0] == (1040 + 110) * MIB


@pytest.mark.parametrize(("highest", "scale"), [(99_000, "linear"), (101_000, "log")])
def test_a_bar_for_each_run_ends_at_its_value_and_says_it(highest: float, scale: str) -> None:
    runs = [finished_run(title=f"at {n}", samples_per_second=n) for n in (100, highest)]
    ax: Any = sweep(runs).figure.axes[0]
    assert [bar.get_x() + bar.get_width() for bar in ax.patches] == pytest.approx([100, highest])
    assert ax.get_xscale() == scale  # logarithmic beyond a thousand times
    assert f"{highest:,} samples/s" in words(ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["at 100", f"at {highest}"]


def test_a_ladder_says_how_many_times_each_rung_is_the_one_above() -> None:
    picture = draw_rungs({"one": 50.0, "two": 200.0, "three": 100.0}, "rows per second")
    said = [text.get_text() for text in picture.figure.axes[0].texts]
    assert said[:3] == ["50 samples/s", "200 samples/s (4.0 times)", "100 samples/s (0.5 times)"]
    assert picture.alt.startswith("Bars of rows per second. one: 50 samples/s; two: 200 samples/s")
    assert faults(picture.figure) == []
    with pytest.raises(ValueError, match=r"'one' has a rate of 0: measure it for longer"):
        draw_rungs({"one": 0}, "rows per second")


def test_a_sweep_says_what_is_not_there_and_refuses_a_number_that_it_does_not_know() -> None:
    picture = sweep([killed_run(), finished_run()], "samples/s")
    assert "nothing counted (killed)" in words(picture.figure)
    assert "load everything: nothing counted" in picture.alt
    assert sweep([]).png()
    with pytest.raises(ValueError, match=r"'speed' is not a metric: use one of 'samples/s'"):
        sweep([finished_run()], "speed")


def test_a_cure_differs_from_a_failure_that_finished_by_more_than_its_colour() -> None:
    bad, cure = finished_run(title="bad"), finished_run(title="good")
    picture = sweep([bad, cure], "read amplification", cures=[cure])
    hollow, full = picture.figure.axes[0].patches
    assert hollow.get_facecolor() == (1, 1, 1, 1) != full.get_facecolor()
    assert words(picture.figure).count("1.02 x (cure)") == picture.alt.count("x (cure)") == 1
    with pytest.raises(ValueError, match="is not among the runs: add it, or drop it"):
        sweep([bad], cures=[cure])


def test_a_picture_shows_itself_opaque_with_alternative_text_and_a_size() -> None:
    picture = Picture(draw_run(finished_run()).figure, alt='5 < 6 & "seven"')
    bundle = picture._repr_mimebundle_()
    assert 'alt="5 &lt; 6 &amp; &quot;seven&quot;" width="1000" height="450"' in bundle["text/html"]
    assert "max-width: 100%" in bundle["text/html"]
    assert bundle["text/plain"] == picture.alt
    image = imread(io.BytesIO(picture.png()))
    assert image.shape == (450, 1000, 4)
    assert image[:, :, 3].min() == 1  # a dark theme does not show through


def test_alternative_text_tells_the_numbers() -> None:
    assert alt_text(finished_run(guess=guess(2000, "samples/s"))) == (
        "steady: finished, after 10.0 s. Anonymous memory rose from 210 MiB to 210 MiB of a 1 GiB "
        "budget; 10,000 samples came at 1,000 samples/s, 25% of the time spent waiting for data. "
        "You said 2,000 samples/s, measured 1,000 samples/s."
    )
    assert "no batch was counted" in alt_text(killed_run())
    assert "No memory was sampled" in alt_text(killed_run(snapshots=()))


def test_a_run_in_a_notebook_is_words_a_figure_and_numbers_and_a_short_one_leaves_no_figure() -> (
    None
):
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
    assert "text/html" in last_words(finished_run(seconds=1))
    assert "text/html" not in last_words(finished_run(seconds=0.05))  # unless it is asked for
    assert "text/html" in mimebundle(finished_run(seconds=0.05))


def test_drawing_neither_follows_nor_changes_the_readers_settings() -> None:
    def draw_all() -> list[bytes]:
        bars = sweep([finished_run(), killed_run()])
        return [before_after(killed_run(), finished_run()).png(), bars.png()]

    with matplotlib.rc_context({"text.color": "white", "axes.facecolor": "black", "font.size": 40}):
        strange = dict(matplotlib.rcParams)
        with_strange_settings = draw_all()
        assert dict(matplotlib.rcParams) == strange
    with matplotlib.rc_context(matplotlib.rcParamsDefault):
        assert draw_all() == with_strange_settings


def test_ticks_read_as_people_say_them() -> None:
    assert [ticks.tick_bytes(n) for n in (0, 768 * MIB, 1.25 * GIB)] == ["0", "768 MiB", "1.25 GiB"]
    assert [ticks.tick_time(n) for n in (0, 0.5, 90, 7200)] == ["0", "0.5 s", "1.5 min", "2 h"]
    assert [in_time(n) for n in (0.0213, 14, 99, 7200)] == ["0.021 s", "14.0 s", "1.6 min", "2.0 h"]
