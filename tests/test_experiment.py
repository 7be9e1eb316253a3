"""`run`, for real: what comes back, and every way to end.

The check that nothing is left behind stands in conftest and holds after every test. An experiment
has more time than it needs, so another outcome than "timed out" says that it ended by its cause.
"""

import multiprocessing
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lesson_functions as lessons
import lesson_loaders as loaders
import numpy as np
import pytest
from running import BUDGET, MIB, from_a_module_that, needs_fork, run

from helpers.budget import enforcement
from helpers.live import NoView
from helpers.records import Guess, Outcome, Snapshot
from helpers.running.shared_state import STATE_VARIABLE
from helpers.running.warm_pool import WarmPool, pool

# What comes back


def test_a_finished_run_is_recorded() -> None:
    guess = Guess("How much?", "MiB", 3)
    timeout = np.float32(120)  # a number of any library will do
    asked: dict[str, Any] = {"title": "an epoch", "guess": guess, "timeout": timeout}
    record = run(loaders.one_epoch, loaders.Rows(160), 0, **asked)
    assert (record.outcome, record.value, record.error) == (Outcome.FINISHED, 160, "")
    assert (record.title, record.guess, record.budget_bytes) == ("an epoch", guess, BUDGET)
    assert record.enforced_by == enforcement()
    assert (record.counters.samples, record.counters.batches) == (160, 10)
    assert record.counters.expected_batches == 10
    assert record.counters.data_bytes == 160 * 64 * 4


def test_the_first_sample_is_the_baseline_and_the_last_one_the_end() -> None:
    record = run(lessons.fill, 100 * MIB)
    first, last = record.snapshots[0], record.snapshots[-1]
    assert (first.seconds, first.exact, last.exact) == (0.0, True, True)
    assert record.seconds == last.seconds > 0
    assert 90 * MIB <= record.added_anonymous_bytes <= 110 * MIB
    assert record.peaks[0].name == "main"
    times = [snapshot.seconds for snapshot in record.snapshots]
    assert times == sorted(times)


def test_the_child_works_where_and_as_the_notebook_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LESSON_VARIABLE", "gone before the run")
    pool.clear()
    pool.warm_up()
    monkeypatch.delenv("LESSON_VARIABLE")
    monkeypatch.setenv("LESSON_VARIABLE_2", "set after the sandbox was started")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    seen = run(lessons.say_where_we_are).value
    assert seen["folder"] == str(tmp_path)
    assert seen["path"] == sys.path
    ours = {name: seen["environment"][name] for name in (STATE_VARIABLE, "TMPDIR")}
    assert seen["environment"] == dict(os.environ) | ours | {"PYTHONUNBUFFERED": "1"}


def test_without_a_working_folder_it_is_said_what_to_do(gone_folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"working folder has been removed: .*os\.chdir"):
        run(lessons.add, 1, 2)


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_workers_follow_the_start_method(method: str) -> None:
    record = run(loaders.one_epoch, loaders.Rows(64), 1, start_method=method, ram_budget="2 GiB")
    assert (record.outcome, record.value, record.start_method) == (Outcome.FINISHED, 64, method)
    assert [peak.name for peak in record.workers] == ["worker 1"]


@needs_fork
def test_workers_that_call_track_neither_count_nor_show_a_bar() -> None:
    record = run(loaders.one_epoch, loaders.CallsTrack(64), 2)
    assert (record.value, record.counters.samples, record.counters.batches) == (64, 64, 4)
    assert record.stderr == ""


# Ways to end

LINE = "at lesson_functions.py line"
CRASHED, RAISED = Outcome.CRASHED, Outcome.RAISED
ENDS: list[tuple[Callable[..., Any], tuple[Any, ...], Outcome, str]] = [
    (sys.exit, (3,), RAISED, "^SystemExit: 3$"),
    (os._exit, (3,), CRASHED, r"^the process left without a result \(exit code 3\)$"),
    (lessons.run_inside, (), RAISED, "^RuntimeError: run was called inside a function"),
]
if sys.platform != "win32":  # no signals there, no limit on files
    ENDS += [
        (lessons.flood_a_stream, (20 * MIB,), CRASHED, rf"^SIGSEGV \(Segment.* fault\), {LINE}"),
        (signal.raise_signal, (9,), CRASHED, "not by its budget"),
        (lessons.have_no_room_for_the_result, (), CRASHED, "without a result"),
    ]


@pytest.mark.parametrize(("function", "arguments", "outcome", "words"), ENDS)
def test_every_way_to_end_is_told(
    function: Callable[..., Any], arguments: tuple[Any, ...], outcome: Outcome, words: str
) -> None:
    record = run(function, *arguments)
    assert record.outcome is outcome
    assert re.search(words, record.error)


def test_an_exception_comes_back_with_its_traceback() -> None:
    record = run(lessons.complain)
    assert (record.outcome, record.error) == (Outcome.RAISED, "ValueError: row 7 is not a row")
    assert 'raise ValueError("row 7 is not a row")' in record.traceback
    assert "child.py" not in record.traceback
    assert record.stderr == "about to fail"


def test_a_child_that_hangs_is_timed_out_also_before_its_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = run(lessons.hang, timeout=0.5)
    assert (record.outcome, record.error) == (Outcome.TIMED_OUT, "not finished after 0.5 s")
    assert record.snapshots[-1].seconds >= 0.5
    hangs = from_a_module_that(tmp_path, monkeypatch, "from lesson_functions import hang; hang()")
    record = run(hangs, timeout=0.5)
    assert (record.outcome, record.snapshots) == (Outcome.TIMED_OUT, ())


def test_the_reader_may_press_stop() -> None:
    class Button(NoView):
        seen: Sequence[Snapshot] = ()

        def update(self, snapshots: Sequence[Snapshot]) -> None:
            self.seen = snapshots

        def stop_requested(self) -> bool:
            return any(snapshot.counters.batches >= 5 for snapshot in self.seen[-1:])

    record = run(loaders.endless_epoch, view=Button())
    assert (record.outcome, record.error) == (Outcome.STOPPED, "")
    assert record.counters.batches >= 5


def test_a_workers_true_error_reaches_the_reader_under_spawn() -> None:
    rows = loaders.CannotBeSentToWorkers(64)
    record = run(loaders.one_epoch, rows, 1, start_method="spawn", ram_budget="2 GiB")
    assert record.outcome is Outcome.RAISED
    assert "exited unexpectedly" in record.error
    assert "AttributeError: no such row in a worker" in record.stderr


# Bad arguments


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((1, 2), {"ram_budget": "much"}, "'much' is not a size"),
        ((1, 2), {"ram_budget": 0}, "0 is not a size"),
        ((1, 2), {"ram_budget": 2**70}, "this machine has .* of RAM: pass less than that"),
        ((1, 2), {"timeout": 0}, "timeout is 0: pass seconds above zero, or None for no limit"),
        ((1, 2), {"timeout": float("nan")}, "timeout is nan"),
        ((1, 2), {"start_method": "thread"}, "start method 'thread' is not available here"),
        ((1, 2), {"timeout": "9"}, "timeout is '9'"),
        ((1, 2), {"title": 7}, "title is 7: pass words"),
        ((1, 2), {"view": "line"}, "view is 'line': pass None, or an object"),
        ((1, 2), {"cold": ["gone.npy"]}, "gone.npy does not exist: make the data first"),
        ((1, 2), {"cold": [Path("/")]}, "/ is a folder: name a file in it"),
        ((1, 2), {"cold": [7]}, r"cold is \[7\]: pass a list of paths"),
        ((1, 2), {"cold": __file__}, "cold is '.*test_experiment.py': pass a list of paths"),
        ((1, 2), {"cold": Path(__file__)}, "cold is .*test_experiment.py.*: pass a list of paths"),
        ((threading.Lock(), 1), {}, "cannot be pickled"),
        ((1, 2), {"BACKEND": "guess"}, "BACKEND is 'guess': use auto, proc or psutil"),
        ((1, 2), {"ENFORCER": "guess"}, "ENFORCER is 'guess': set it to 'auto'"),
        ((1, 2), {"VIEW": "film", "view": None}, "VIEW='film' is not a view: use one of auto"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(WarmPool, "take", lambda *_: pytest.fail("a process was started"))
    for name in [name for name in options if name.isupper()]:
        monkeypatch.setenv(f"LARGER_THAN_RAM_{name}", options[name])
    given = {name: value for name, value in options.items() if name.islower()}
    with pytest.raises((ValueError, TypeError, OSError), match=words):
        run(lessons.add, *arguments, **given)


def test_a_budget_below_what_torch_takes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ram_budget 64 MiB is too small: .* Pass at least \d+ M"):
        run(lessons.add, 1, 2, ram_budget="64 MiB")
