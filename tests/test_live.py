"""Views of a running experiment, with a clock and a display passed in."""

import io
import os
import sys
import weakref
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from made_up import GIB, Clock, counted, finished_run, killed_run, snapshot
from matplotlib.image import imread
from refusals import FullDisk
from running import run
from talking import said_by

from helpers import live, plots
from helpers.drawing import front_end, notebook_view
from helpers.drawing.front_end import Place
from helpers.drawing.guarded_view import GuardedView
from helpers.drawing.live_figure import LiveFigure
from helpers.drawing.notebook_view import NotebookView
from helpers.drawing.pictures import RECORD_TYPE
from helpers.live import EndView, LineView, NoView, choose_view
from helpers.records import Snapshot

WIDGET = "application/vnd.jupyter.widget-view+json"


class FrontEnd:
    """Stands in for a notebook's front end: keeps what each output shows now."""

    def __init__(self) -> None:
        self.outputs: list[dict[str, Any]] = []
        self.frames: list[str] = []

    def display(self, bundle: dict[str, Any], *, display_id: bool = False, **_: Any) -> Any:
        self.outputs.append({})
        self.update_display(bundle, display_id=len(self.outputs) - 1)
        return SimpleNamespace(display_id=len(self.outputs) - 1)

    def update_display(self, bundle: dict[str, Any], *, display_id: int, **_: Any) -> None:
        self.outputs[display_id] = bundle
        if "image/png" in bundle:
            self.frames.append(bundle["image/png"])


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> FrontEnd:
    front = FrontEnd()
    monkeypatch.setattr(notebook_view, "display", front.display)
    monkeypatch.setattr(notebook_view, "update_display", front.update_display)
    return front


@pytest.fixture
def watched(shown: FrontEnd) -> Iterator[NotebookView]:
    """A view with a button that has shown its first frame, and is finished in the end."""
    view = NotebookView("a loop", GIB, "watcher", clock=lambda: 100.0)
    view.update([snapshot(0)])
    yield view
    view.finish(finished_run())


NOTEBOOK, TERMINAL = Place(notebook=True, watched=True, widgets=True), Place(terminal=True)


@pytest.mark.parametrize(
    ("choice", "place", "view"),
    [
        (None, NOTEBOOK, "NotebookView"),
        (None, Place(notebook=True), "EndView"),
        (None, TERMINAL, "LineView"),
        (None, Place(), "EndView"),
        ("live", NOTEBOOK, "NotebookView"),
        ("live", TERMINAL, "LineView"),
        ("line", NOTEBOOK, "LineView"),
        ("end", TERMINAL, "EndView"),
        ("none", NOTEBOOK, "NoView"),
        ("", TERMINAL, "LineView"),
    ],
)
def test_the_view_suits_the_place_unless_the_environment_chooses_another(
    monkeypatch: pytest.MonkeyPatch, choice: str | None, place: Place, view: str
) -> None:
    monkeypatch.delenv(live.VARIABLE, raising=False)
    if choice is not None:
        monkeypatch.setenv(live.VARIABLE, choice)
    assert type(choose_view("a title", GIB, "watcher", place=place)).__name__ == view


def test_a_terminal_gets_one_line_that_rewrites_itself_cut_where_it_would_wrap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.StringIO()
    LineView("a loop", GIB, stream=stream).update([snapshot(2)])
    assert stream.getvalue() == "\ra loop: 2 s, 210 Mi"
    monkeypatch.setenv("COLUMNS", "120")
    stream, clock = io.StringIO(), Clock()
    view = LineView("a loop", GIB, stream=stream, clock=clock)
    view.update([])
    assert stream.getvalue() == ""
    view.update([snapshot(2, counters=counted(2))])
    view.update([snapshot(2.1, counters=counted(2.1))])  # too soon to show
    assert stream.getvalue() == (
        "\ra loop: 2 s, 210 MiB of 1 GiB, 1,000 samples/s, waiting 25%, 3% of the epoch"
    )
    clock.now += 1
    view.update([snapshot(3)])
    shorter = stream.getvalue().rpartition("\r")[2]
    assert shorter.rstrip() == "a loop: 3 s, 210 MiB of 1 GiB"
    assert len(shorter) > len(shorter.rstrip())  # the end of the longer line is blotted out
    view.finish(finished_run())
    assert stream.getvalue().rpartition("\r")[2].rstrip() == repr(finished_run())
    assert stream.getvalue().endswith("\n")


CLOSED = io.StringIO()
CLOSED.close()


@pytest.mark.parametrize("stream", [FullDisk(), CLOSED, None], ids=["full", "closed", "none"])
def test_a_stream_that_cannot_be_written_ends_nothing(
    stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    for view in (LineView("a loop", GIB), EndView(notebook=False)):
        view.update([snapshot(1)])
        view.finish(finished_run())


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_stream_shows_what_it_can_of_any_words_and_each_run_is_one_line(encoding: str) -> None:
    run = killed_run(title="\x1b[1mdonn\xe9es\n\udcff" + "." * 10**6)
    for number in range(2):
        stream = io.TextIOWrapper(io.BytesIO(), encoding, newline="")
        line = LineView(run.title, GIB, stream=stream)
        shown = (line, EndView(notebook=False, stream=stream))[number]
        shown.update([snapshot(1)])
        shown.finish(run)
        stream.seek(0)
        said = stream.read()
        assert "donn\\xe9es" if encoding == "ascii" else "donn\xe9es" in said
        assert "\x1b" not in said
        assert said.count("\n") == 1
        assert len(said) < 3000


class Broken:
    """A view of somebody's own in which everything fails."""

    def update(self, snapshots: Sequence[Snapshot]) -> None:
        raise ValueError("no colour\nof that name")

    finish: Any = update
    stop_requested: Any = None  # not even callable


def test_a_view_that_fails_is_named_once_and_the_record_comes_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(os.getpid, view=Broken()).finished
    said = "The figure could not be drawn: ValueError: no colour of that name."
    assert capsys.readouterr().err.startswith(said)
    view = GuardedView(Broken())
    for _ in range(3):
        view.update([snapshot(1)])
        assert not view.stop_requested()
    view.finish(finished_run())
    assert capsys.readouterr().err.count("\n") == 1


def test_an_interrupt_stops_a_run_while_it_goes_on_and_only_the_drawing_when_it_is_over() -> None:
    class Interrupted(NoView):
        def update(self, snapshots: Sequence[Snapshot]) -> None:
            raise KeyboardInterrupt

        finish: Any = update

    view = GuardedView(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        view.update([])
    view.finish(finished_run())


def test_a_run_that_cannot_be_drawn_is_its_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plots, "draw_run", Broken().update)
    assert set(live.mimebundle(finished_run())) == {"text/plain", RECORD_TYPE}
    assert "could not be drawn: ValueError" in capsys.readouterr().err


# Two a second; or two at once, then one in 4 s: 0.2 s of those are 5 %.
@pytest.mark.parametrize(("cpu_seconds", "frames"), [(0, 40), (0.2, 6)])
def test_a_notebook_shows_two_frames_a_second_and_fewer_where_drawing_is_slow(
    shown: FrontEnd, cpu_seconds: float, frames: int
) -> None:
    clock, cpu = Clock(), count(0, cpu_seconds).__next__  # read twice for each frame
    view = NotebookView("a loop", GIB, "watcher", widgets=False, clock=clock, cpu_clock=cpu)
    for step in range(200):  # twenty seconds
        view.update([snapshot(0.1 * n) for n in range(step + 1)])
        clock.now += 0.1
    assert len(shown.frames) == len(set(shown.frames)) == frames
    assert "interrupt the notebook (press I twice)" in shown.outputs[1]["text/html"]  # no widgets


def test_the_finished_figure_takes_the_place_of_the_frames_and_no_widget_is_left(
    watched: NotebookView, shown: FrontEnd
) -> None:
    kinds = [set(output) & {"image/png", WIDGET} for output in shown.outputs]
    assert kinds == [{"image/png"}, {WIDGET}]
    watched.finish(finished_run())
    figure, button = shown.outputs
    assert figure["text/html"].startswith('<img alt="steady: finished')
    assert RECORD_TYPE in figure
    assert "image/png" not in figure
    assert button == {"text/plain": "", "text/html": ""}


@pytest.mark.parametrize("version", ["6.29.5", "7.0.0", "7.3.0", "7.4.0", "8.0.0", None])
def test_pressing_the_button_asks_to_stop_and_it_says_where_its_click_would_come_too_late(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, version: str | None
) -> None:
    missing = Mock(side_effect=PackageNotFoundError("ipykernel"))
    monkeypatch.setattr(front_end, "version", Mock(return_value=version) if version else missing)
    view = request.getfixturevalue("watched")
    button, label = view._button._box.children
    hint = "or" if version in ("7.0.0", "7.3.0") else "with this ipykernel a click waits:"
    assert label.value == f"{hint} interrupt the notebook (press I twice)"
    assert not view.stop_requested()
    button.click()
    assert view.stop_requested()
    assert button.disabled


def test_only_axes_that_grow_cost_a_new_background() -> None:
    figure = LiveFigure("a loop", GIB, "watcher")
    run = finished_run(seconds=60)
    frames = [figure.frame(run.snapshots[: 2 * step]) for step in range(50)]
    assert 2 <= figure.backgrounds_drawn <= 6  # one at first, one for the rate, then longer times
    assert len(set(frames)) == len(frames)


def test_a_frame_shows_what_the_finished_figure_shows_in_the_same_place() -> None:
    figure = LiveFigure("a loop", GIB, "watcher")
    frame = imread(io.BytesIO(figure.frame(finished_run(seconds=9).snapshots)))
    assert frame.shape == (figure.size[1], figure.size[0], 4)
    anonymous = (frame[:, :, :3] * 255).round() == (0x00, 0x72, 0xB2)
    _, columns = anonymous.all(axis=2).nonzero()
    assert columns.max() - columns.min() > 300  # nine of the ten seconds of a panel
    assert frame[:, :, 3].min() == 1


class Growing(list[Snapshot]):
    """Notes how many snapshots were read, and gets one more whenever somebody has read some."""

    read = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self.read += len(found) if isinstance(key, slice) else 1
        self.append(snapshot(len(self), counters=counted(len(self) + 1)))
        return found


def test_a_frame_reads_only_the_new_snapshots_and_those_that_come_meanwhile_in_the_next() -> None:
    figure, snapshots = LiveFigure("growing", GIB, "watcher"), Growing()
    for step in range(30):  # the first frame has none
        assert figure.frame(snapshots)
        snapshots.extend(snapshot(1000 * step + n) for n in range(1000))
    assert snapshots.read <= 29 * 1001


def test_a_run_just_drawn_by_its_view_is_words_in_the_same_cell_and_a_figure_in_a_later_one(
    shown: FrontEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_end, "execution_count", lambda: 7)
    run, other = finished_run(), finished_run()
    NotebookView("a loop", GIB, "watcher").finish(run)  # before its first frame: it is shown once
    assert ["text/html" in output for output in shown.outputs] == [True]
    assert "text/html" not in live.mimebundle(run)
    assert RECORD_TYPE in live.mimebundle(run)
    assert "text/html" in live.mimebundle(other)
    monkeypatch.setattr(front_end, "execution_count", lambda: 8)
    assert "text/html" in live.mimebundle(run)
    gone = weakref.ref(run)  # to remember it does not keep it alive
    del run
    assert gone() is None


def test_views_and_figures_work_without_ipython_and_ipywidgets_and_import_no_pyplot() -> None:
    code = (
        "import sys\n"
        "for name in ('IPython', 'ipywidgets', 'ipykernel'): sys.modules[name] = None\n"
        "from helpers import plots, predictions\n"
        "from helpers.live import choose_view\n"
        "print(type(choose_view('t', 1, 'watcher')).__name__, predictions.predict('How?', 'MiB'))\n"
        "print('matplotlib.pyplot' in sys.modules)\n"
    )
    assert said_by(code) == "EndView How? Write your guess in MiB: guess.value = ...\nFalse"
