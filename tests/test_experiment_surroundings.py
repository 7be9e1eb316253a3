"""What goes wrong around an experiment, and what a function may leave and do."""

import multiprocessing
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lesson_functions as lessons
import lesson_loaders as loaders
import psutil
import pytest
from running import MIB, Does, is_running, needs_fork, run, said_by_both_workers

from helpers.records import Outcome
from helpers.running.warm_pool import pool

use_a_spawned_worker = partial(loaders.one_epoch_spawned, loaders.Rows(64))

# When the machinery itself fails


@needs_fork
def test_a_watcher_that_is_killed_is_said_and_everything_is_ended(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    view = Does(
        lambda: process_that_runs("helpers.running.watcher").kill(), when=said_by_both_workers(pids)
    )
    record = run(lessons.hang_with_two_workers, pids, "spawn", view=view, ram_budget="2 GiB")
    assert (record.outcome, record.error.partition(",")[0]) == (Outcome.CRASHED, "the watcher died")
    assert not any(is_running(int(pid)) for pid in pids.read_text().split())


def process_that_runs(module: str) -> psutil.Process:
    """Return the one child of ours that runs a module."""
    (found,) = (c for c in psutil.Process().children() if f"from {module}" in " ".join(c.cmdline()))
    return found


def test_a_view_that_fails_ends_the_experiment() -> None:
    def fail() -> None:
        raise RuntimeError("cannot draw")

    with pytest.raises(RuntimeError, match="cannot draw"):
        run(lessons.hang, view=Does(fail))


def test_a_full_disk_is_said_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    pool.clear()
    with monkeypatch.context() as patch:
        patch.setattr("helpers.running.shared_state.SharedState.create", no_room)
        with pytest.raises(OSError, match="No space left on device"):
            run(lessons.add, 1, 2)


def no_room(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_record_is_not_lost_when_the_next_spare_cannot_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool.warm_up()
    monkeypatch.setattr("helpers.running.shared_state.SharedState.create", no_room)
    assert run(lessons.add, 1, 2).value == 3


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_result_that_cannot_be_written_is_a_crash() -> None:
    record = run(lessons.have_no_room_for_the_result)
    assert record.outcome is Outcome.CRASHED
    assert "without a result" in record.error


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


def test_run_inside_run_is_refused() -> None:
    record = run(lessons.run_inside)
    assert record.outcome is Outcome.RAISED
    assert record.error.startswith("RuntimeError: run was called inside a function that runs in")


def test_a_working_folder_that_was_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(ValueError, match="the working folder has been removed"):
        run(lessons.add, 1, 2)


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


def test_a_process_that_outlives_the_function_is_ended() -> None:
    record = run(lessons.leave_a_process_behind)
    assert record.outcome is Outcome.FINISHED
    assert not is_running(record.value)


@needs_fork
def test_a_daemon_is_found_in_its_cgroup(kernel_enforced: str) -> None:
    record = run(lessons.leave_a_daemon_behind, 0.0)
    assert record.outcome is Outcome.FINISHED
    assert not is_running(record.value)


@needs_fork
@pytest.mark.skipif(sys.platform != "linux", reason="orphans come to nobody we know")
def test_a_daemon_is_found_without_a_cgroup_as_well(watcher_enforced: str) -> None:
    record = run(lessons.leave_a_daemon_behind, 0.0)
    assert record.outcome is Outcome.FINISHED
    assert not is_running(record.value)


def test_a_function_may_write_files_and_change_its_folder(tmp_path: Path) -> None:
    assert run(lessons.change_folder_and_leave_a_file, tmp_path).value == str(tmp_path)
    assert (tmp_path / "kept").read_text() == "kept"


def test_of_much_that_is_printed_the_last_lines_are_kept() -> None:
    record = run(lessons.print_a_lot)
    lines = record.stdout.splitlines()
    assert (record.outcome, lines[-1], len(lines)) == (Outcome.FINISHED, "line 49999", 40)
    assert record.stderr == "the last words"


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_of_a_flood_only_the_end_is_kept_and_a_crash_after_it_is_told() -> None:
    record = run(lessons.flood_a_stream, 20 * MIB)
    assert record.error.startswith("SIGSEGV (Segmentation fault), at lesson_functions.py line")
    value = run(lessons.flood_and_say_how_large_the_folder_is, 20 * MIB).value
    assert value < MIB


def test_a_function_may_close_its_streams() -> None:
    record = run(lessons.close_the_streams)
    assert (record.outcome, record.value) == (Outcome.FINISHED, 1)


def test_a_large_value_comes_back() -> None:
    value = run(lessons.return_zeros, 60 * MIB).value
    assert value.nbytes == 60 * MIB


def test_a_value_that_does_not_fit_into_the_budget_twice_is_a_kill() -> None:
    assert run(lessons.return_zeros, 300 * MIB).outcome is Outcome.KILLED


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            lessons.return_stubborn,
            "TypeError: the function returned a Stubborn that cannot be",
        ),
        (
            lessons.return_only_there,
            "TypeError: the function's value cannot be loaded here: RuntimeError: I",
        ),
        (
            partial(lessons.return_what_leaves, when_loaded=False),
            "TypeError: the function returned a Leaves that cannot be pickled (SystemExit: gone)",
        ),
        (
            partial(lessons.return_what_leaves, when_loaded=True),
            "TypeError: the function's value cannot be loaded here: SystemExit: gone",
        ),
        (lessons.raise_stubborn, "ValueError: <lesson_functions.Stubborn object"),
        (lessons.raise_a_name_that_is_no_text, "FileNotFoundError: rows-\\udcff.npy"),
    ],
)
def test_what_cannot_come_back_is_said(function: Callable[[], Any], words: str) -> None:
    record = run(function)
    assert record.outcome is Outcome.RAISED
    assert record.error.startswith(words)
    assert record.value is None


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
