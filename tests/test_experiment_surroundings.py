"""What goes wrong around an experiment, and what a function may leave and do."""

import errno
import multiprocessing
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lesson_functions as lessons
import lesson_loaders as loaders
import numpy as np
import psutil
import pytest
from refusals import refusal
from running import MIB, Does, is_running, needs_fork, run, said_by_both_workers

from helpers.records import Outcome
from helpers.running.warm_pool import pool

use_a_spawned_worker = partial(loaders.one_epoch_spawned, loaders.Rows(64))

# When the machinery itself fails


@needs_fork
def test_a_watcher_that_is_killed_is_said_and_everything_is_ended(tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    def kill_the_watcher() -> None:
        (watcher,) = (
            c for c in psutil.Process().children() if "running.watcher" in str(c.cmdline())
        )
        watcher.kill()

    view = Does(kill_the_watcher, when=said_by_both_workers(pids))
    record = run(lessons.hang_with_two_workers, pids, "spawn", view=view, ram_budget="2 GiB")
    assert (record.outcome, record.error.partition(",")[0]) == (Outcome.CRASHED, "the watcher died")
    assert not any(is_running(int(pid)) for pid in pids.read_text().split())


def test_a_full_disk_is_said_before_anything_starts_and_loses_no_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool.warm_up()
    no_room = refusal(errno.ENOSPC)
    monkeypatch.setattr("helpers.running.shared_state.SharedState.create", no_room)
    assert run(lessons.add, 1, 2).value == 3  # the next sandbox cannot be started
    with pytest.raises(OSError, match="No space left on device"):
        run(lessons.add, 1, 2)


@pytest.mark.skipif(not hasattr(signal, "SIGCHLD"), reason="no SIGCHLD")
def test_a_caller_that_ignores_the_end_of_its_children_learns_how_they_ended() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        pool.clear()
        record = run(lessons.write_into_nothing)
        pool.clear()
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert record.error.startswith("SIGSEGV")


# What a function may leave, and do


@pytest.mark.parametrize("enforcer", ["auto", "watcher"])
@pytest.mark.parametrize(
    "function", [lessons.fill_shared_memory, lessons.share_by_name_and_be_killed]
)
def test_shared_memory_goes_with_its_processes(
    function: Callable[[], Any], enforcer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", enforcer)
    assert run(function).outcome in (Outcome.KILLED, Outcome.CRASHED)


@needs_fork
@pytest.mark.parametrize("enforcer", ["auto", "watcher"])
@pytest.mark.parametrize(
    "function", [lessons.leave_a_process_behind, lessons.leave_a_daemon_behind]
)
def test_a_process_that_outlives_the_function_is_ended(
    function: Callable[[], int], enforcer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", enforcer)
    record = run(function)
    assert record.outcome is Outcome.FINISHED
    assert not is_running(record.value)


def test_a_function_may_write_files_change_its_folder_and_close_its_streams(tmp_path: Path) -> None:
    assert run(lessons.change_folder_and_leave_a_file, tmp_path).value == str(tmp_path)
    assert (tmp_path / "kept").read_text() == "kept"
    assert run(lessons.close_the_streams).value == 1


def test_of_much_that_is_printed_the_last_lines_are_kept() -> None:
    record = run(lessons.print_a_lot)
    lines = record.stdout.splitlines()
    assert lines[-2:] == ["line 49999", "\N{REPLACEMENT CHARACTER} is no text"]
    assert (record.outcome, len(lines)) == (Outcome.FINISHED, 40)
    assert record.stderr == "the last words"


def test_a_large_value_comes_back_and_one_that_does_not_fit_twice_is_a_kill() -> None:
    assert run(np.zeros, 60 * MIB, np.uint8).value.nbytes == 60 * MIB
    assert run(np.zeros, 300 * MIB, np.uint8).outcome is Outcome.KILLED


NO_PICKLE, NO_LOAD = "the function returned a", "the function's value cannot be loaded here:"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (partial(lessons.make, "Stubborn"), f"TypeError: {NO_PICKLE} Stubborn that cannot be"),
        (
            partial(lessons.make, "LeavesWhenPickled"),
            f"TypeError: {NO_PICKLE} LeavesWhenPickled that cannot be pickled (SystemExit: gone)",
        ),
        (partial(lessons.make, "OnlyThere"), f"TypeError: {NO_LOAD} RuntimeError: I live"),
        (partial(lessons.make, "LeavesWhenLoaded"), f"TypeError: {NO_LOAD} SystemExit: gone"),
        (lessons.raise_stubborn, "ValueError: <lesson_functions.Stubborn object"),
        (lessons.raise_a_name_that_is_no_text, "FileNotFoundError: rows-\\udcff.npy"),
    ],
)
def test_what_cannot_come_back_is_said(function: Callable[[], Any], words: str) -> None:
    record = run(function)
    assert (record.outcome, record.value) == (Outcome.RAISED, None)
    assert record.error.startswith(words)


def test_of_a_long_error_both_ends_are_kept() -> None:
    record = run(lessons.raise_a_long_line)
    for text in (record.error, record.traceback.strip()):
        assert "ValueError: first" in text
        assert text.endswith("xlast")
        assert len(text) < 25_000


# Files of the reader's that are called as modules that a run needs


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_a_file_beside_the_notebook_is_not_run_in_place_of_a_module(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "queue", "random", "selectors", "signal", "tempfile", "torch"):
        (tmp_path / f"{name}.py").write_text("open('was run', 'w').close()")
    monkeypatch.chdir(tmp_path)
    pool.clear()
    record = run(loaders.one_epoch, loaders.Rows(64), 1, start_method=method, ram_budget="2 GiB")
    pool.clear()  # the next one stands here already
    assert record.value == 64
    assert not Path("was run").exists()


@pytest.mark.parametrize(
    ("name", "function", "whose"),
    [
        ("colorsys.py", lessons.use_colors, "Python's own colorsys"),
        ("random.py", use_a_spawned_worker, "Python's own random"),
        ("numpy/__init__.py", use_a_spawned_worker, "the package numpy"),
    ],
)
def test_a_file_that_stands_in_the_way_of_a_module_is_named(
    name: str,
    function: Callable[[], Any],
    whose: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    record = run(function, ram_budget="2 GiB")
    file = name.partition("/")[0]
    assert record.error.startswith(
        f"{file} in {tmp_path} stands in the way of {whose}: rename it ("
    )
