"""`run`, for real: every way to end, with the right outcome and nothing left behind.

The check that nothing is left stands in conftest and holds after every test here. Every experiment
has more time than it needs, so another outcome than "timed out" says that it ended by its cause.
"""

import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import lesson_functions as lessons
import lesson_loaders as loaders
import numpy as np
import psutil
import pytest

from helpers import experiment
from helpers.bench import Bench, bench
from helpers.board import BOARD_VARIABLE
from helpers.budget import enforcement
from helpers.experiment import Experiment
from helpers.live import NoView
from helpers.records import Guess, Outcome, Run, Sample
from helpers.spare import Spare

MIB = 2**20
BUDGET = 512 * MIB
needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def run(function: Callable[..., Any], *args: Any, **options: Any) -> Run:
    """Run with a budget and a time that are enough, and without a view."""
    settled: dict[str, Any] = {"ram_budget": BUDGET, "timeout": 120, "view": NoView()}
    return experiment.run(function, *args, **(settled | options))


@pytest.fixture
def kernel_enforced(monkeypatch: pytest.MonkeyPatch) -> str:
    if not enforcement().startswith("kernel"):
        pytest.skip("no memory cgroup can be made here")
    return enforcement()


@pytest.fixture
def watcher_enforced(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", "watcher")
    return "watcher"


@pytest.fixture(scope="module")
def four_times_the_budget(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file of zeros that takes no room on the disk, and all of it in memory."""
    path = tmp_path_factory.mktemp("data") / "zeros.npy"
    header = np.lib.format.header_data_from_array_1_0(np.zeros(0, np.float32))
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header | {"shape": (BUDGET,)})
        file.truncate(file.tell() + 4 * BUDGET)
    yield path
    path.unlink()


class Does(NoView):
    """Does something once, when enough has been seen."""

    def __init__(self, action: Callable[[], Any], *, when: Callable[[], bool] = lambda: True):
        self.action, self.when, self.done = action, when, False

    def update(self, samples: Sequence[Sample]) -> None:
        if samples and not self.done and self.when():
            self.done = True
            self.action()


class Stops(NoView):
    """Is a Stop button that is pressed when enough has been counted."""

    def __init__(self, batches: int) -> None:
        self.batches, self.seen = batches, 0

    def update(self, samples: Sequence[Sample]) -> None:
        self.seen = samples[-1].counters.batches if samples else 0

    def stop_requested(self) -> bool:
        return self.seen >= self.batches


def said_by_both_workers(path: Path) -> Callable[[], bool]:
    return lambda: path.exists() and len(path.read_text().split()) == 2


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


# What comes back


def test_a_finished_run_is_recorded() -> None:
    guess = Guess("How much?", "MiB", 3)
    record = run(loaders.one_epoch, loaders.Rows(160), 0, title="an epoch", guess=guess)
    assert (record.outcome, record.value, record.error) == (Outcome.FINISHED, 160, "")
    assert (record.title, record.guess, record.budget_bytes) == ("an epoch", guess, BUDGET)
    assert record.enforced_by == enforcement()
    assert (record.counters.samples, record.counters.batches) == (160, 10)
    assert record.counters.expected_batches == 10
    assert record.counters.data_bytes == 160 * 64 * 4


def test_the_first_sample_is_the_baseline_and_the_last_one_the_end() -> None:
    record = run(lessons.fill, 100 * MIB)
    first, last = record.samples[0], record.samples[-1]
    assert (first.seconds, first.exact, last.exact) == (0.0, True, True)
    assert record.seconds == last.seconds > 0
    assert 90 * MIB <= record.added_anonymous_bytes <= 110 * MIB
    assert record.peaks[0].name == "main"
    times = [sample.seconds for sample in record.samples]
    assert times == sorted(times)


def test_the_child_works_where_the_notebook_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LESSON_VARIABLE", "set after the spare was started")
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    seen = run(lessons.say_where_we_are).value
    assert seen["folder"] == str(tmp_path)
    assert seen["path"] == sys.path
    assert seen["variable"] == "set after the spare was started"


def test_every_run_has_a_process_of_its_own() -> None:
    first, second = (run(lessons.say_where_we_are).value["pid"] for _ in range(2))
    assert len({first, second, os.getpid()}) == 3


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


def test_an_exception_comes_back_with_its_traceback() -> None:
    record = run(lessons.complain)
    assert (record.outcome, record.error) == (Outcome.RAISED, "ValueError: row 7 is not a row")
    assert 'raise ValueError("row 7 is not a row")' in record.traceback
    assert "child.py" not in record.traceback
    assert record.stderr == "about to fail"


def test_sys_exit_is_an_exception_like_any_other() -> None:
    record = run(lessons.exit_politely)
    assert (record.outcome, record.error) == (Outcome.RAISED, "SystemExit: 3")


def test_leaving_without_a_word_is_a_crash() -> None:
    record = run(lessons.leave_without_a_word)
    assert record.outcome is Outcome.CRASHED
    assert record.error == "the process left without a result (exit code 3)"


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_a_segmentation_fault_names_its_line() -> None:
    record = run(lessons.write_into_nothing)
    assert record.outcome is Outcome.CRASHED
    assert record.error.startswith("SIGSEGV (Segmentation fault), at lesson_functions.py line")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
def test_a_child_killed_by_somebody_else_was_not_over_its_budget() -> None:
    record = run(lessons.kill_itself_with, int(signal.SIGKILL))
    assert record.outcome is Outcome.CRASHED
    assert "not by its budget" in record.error


def test_a_child_that_hangs_is_timed_out() -> None:
    record = run(lessons.hang, timeout=0.5)
    assert (record.outcome, record.error) == (Outcome.TIMED_OUT, "not finished after 0.5 s")
    assert record.samples[-1].seconds >= 0.5


def test_a_child_that_hangs_before_its_function_is_timed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = from_a_module_that(
        tmp_path, monkeypatch, "import threading; threading.Event().wait()"
    )
    record = run(function, timeout=0.5)
    assert (record.outcome, record.samples) == (Outcome.TIMED_OUT, ())


def from_a_module_that(
    folder: Path, monkeypatch: pytest.MonkeyPatch, does: str
) -> Callable[[], None]:
    """Return a function of a module that does something when a child of a run imports it."""
    text = f"import os\nif {BOARD_VARIABLE!r} in os.environ:\n    {does}\ndef function(): pass\n"
    (folder / f"lesson_{folder.name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    module = __import__(f"lesson_{folder.name}")
    monkeypatch.delitem(sys.modules, module.__name__)
    function: Callable[[], None] = module.function
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return function


def test_the_kernel_kills_what_is_over_its_budget(
    kernel_enforced: str, four_times_the_budget: Path
) -> None:
    record = run(lessons.load_everything, four_times_the_budget)
    assert (record.outcome, record.enforced_by) == (Outcome.KILLED, kernel_enforced)
    assert record.ending == f"killed: over its 512 MiB budget, by the {kernel_enforced}"
    assert max(sample.charged_bytes or 0 for sample in record.samples) <= BUDGET


def test_the_kernel_lets_a_map_of_the_same_file_finish(
    kernel_enforced: str, four_times_the_budget: Path
) -> None:
    record = run(lessons.map_everything, four_times_the_budget)
    assert record.outcome is Outcome.FINISHED
    assert record.added_anonymous_bytes < BUDGET / 8


@needs_fork
def test_a_worker_killed_by_the_kernel_is_a_kill(kernel_enforced: str) -> None:
    record = run(loaders.one_epoch, loaders.FillsMemoryInOneWorker(64), 2, start_method="fork")
    assert record.outcome is Outcome.KILLED
    assert "RuntimeError: DataLoader worker" in record.error
    assert "which raised RuntimeError: DataLoader worker" in record.ending


@needs_fork
def test_a_worker_killed_by_the_kernel_that_nobody_misses_is_no_kill(kernel_enforced: str) -> None:
    record = run(lessons.fork_a_holder, 2**30)
    assert (record.outcome, record.value) == (Outcome.FINISHED, "the worker ended with -9")


@needs_fork
def test_a_worker_killed_by_the_kernel_whose_parent_waits_for_ever_is_a_kill(
    kernel_enforced: str,
) -> None:
    record = run(lessons.fork_a_holder_and_hang, 2**30)
    assert (record.outcome, record.error) == (Outcome.KILLED, "")


def test_a_module_that_fills_memory_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watcher_enforced: str
) -> None:
    function = from_a_module_that(
        tmp_path, monkeypatch, "from lesson_functions import hold; hold()"
    )
    assert run(function).outcome is Outcome.KILLED


def test_the_reader_may_press_stop() -> None:
    record = run(loaders.endless_epoch, view=Stops(batches=5))
    assert (record.outcome, record.error) == (Outcome.STOPPED, "")
    assert record.counters.batches >= 5


@pytest.mark.skipif(
    "spawn" not in multiprocessing.get_all_start_methods(), reason="there is no spawn"
)
def test_a_workers_true_error_reaches_the_reader_under_spawn() -> None:
    record = run(
        loaders.one_epoch,
        loaders.CannotBeSentToWorkers(64),
        1,
        start_method="spawn",
        ram_budget="2 GiB",
    )
    assert record.outcome is Outcome.RAISED
    assert "exited unexpectedly" in record.error
    assert "AttributeError: no such row in a worker" in record.stderr


# The watcher alone


@pytest.mark.parametrize("function", [lessons.load_everything, lessons.fork_a_loader])
def test_the_watcher_kills_at_no_more_than_a_tenth_over_the_budget(
    watcher_enforced: str, four_times_the_budget: Path, function: Callable[[Path], Any]
) -> None:
    record = run(function, four_times_the_budget)
    assert record.ending == "killed: over its 512 MiB budget, by the watcher"
    assert BUDGET < record.peak_anonymous_bytes <= 1.1 * BUDGET


@needs_proc
def test_the_childs_own_account_agrees(watcher_enforced: str, four_times_the_budget: Path) -> None:
    """The kernel keeps the highest RSS of children that have ended: no look can have missed it."""
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from lesson_functions import load_everything\n"
        "from helpers.experiment import run\n"
        "from helpers.live import NoView\n"
        f"r = run(load_everything, Path(sys.argv[1]), ram_budget={BUDGET}, view=NoView())\n"
        "highest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024\n"
        "libraries = min(s.rss_bytes - s.anonymous_bytes for s in r.samples)\n"
        "print(r.outcome, highest - libraries)\n"
    )
    words = [sys.executable, "-c", code, str(four_times_the_budget)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run(words, capture_output=True, text=True, env=env, check=True).stdout
    outcome, highest = out.split()
    assert outcome == "killed"
    assert BUDGET < int(highest) <= 1.1 * BUDGET


def test_the_watcher_lets_a_map_of_the_same_file_finish(
    watcher_enforced: str, four_times_the_budget: Path
) -> None:
    record = run(lessons.map_everything, four_times_the_budget)
    assert record.outcome is Outcome.FINISHED
    assert record.added_anonymous_bytes < BUDGET / 8


def test_it_works_without_proc_and_cgroups(
    watcher_enforced: str, four_times_the_budget: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS and Windows."""
    monkeypatch.setenv("LARGER_THAN_RAM_MEASURE", "psutil")
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    record = run(lessons.load_everything, four_times_the_budget)
    assert record.ending == "killed: over its 512 MiB budget, by the watcher"
    assert (record.measure, record.start_method, record.read_bytes) == ("USS", "spawn", None)
    assert record.peak_anonymous_bytes <= 1.1 * BUDGET
    assert run(loaders.one_epoch, loaders.Rows(64), 0).value == 64


# Interrupts


def interrupting(method: Callable[..., Any], times: int = 1) -> Callable[..., Any]:
    """Return a method that is interrupted as it begins, so many times."""
    left = iter(range(times))

    @functools.wraps(method)
    def interrupted(*args: Any, **kwargs: Any) -> Any:
        if next(left, None) is not None:
            signal.raise_signal(signal.SIGINT)
        return method(*args, **kwargs)

    return interrupted


def interrupt(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    monkeypatch.setattr(owner, name, interrupting(getattr(owner, name)))


@pytest.mark.parametrize("name", ["_start_child", "_start_watcher", "wait_until_warm"])
def test_an_interrupt_during_the_warm_up_is_raised(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.clear()
    interrupt(monkeypatch, Spare, name)
    with pytest.raises(KeyboardInterrupt):
        run(lessons.add, 1, 2)
    assert run(lessons.add, 1, 2).value == 3


@pytest.mark.parametrize("name", ["_start", "_wait"])
def test_an_interrupt_in_mid_run_stops_it_and_returns_what_was_seen(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(monkeypatch, Experiment, name)
    record = run(lessons.hang)
    assert (record.outcome, record.error) == (Outcome.STOPPED, "")


@needs_fork
def test_an_interrupt_in_mid_run_ends_the_workers_too(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    view = Does(lambda: signal.raise_signal(signal.SIGINT), when=said_by_both_workers(pids))
    record = run(lessons.hang_with_two_workers, pids, "fork", view=view)
    assert record.outcome is Outcome.STOPPED
    assert record.samples
    assert not any(is_running(int(pid)) for pid in pids.read_text().split())


@pytest.mark.parametrize(
    ("owner", "name"), [(Experiment, "_end"), (Spare, "put_away"), (Bench, "warm_up")]
)
def test_an_interrupt_during_the_clean_up_loses_nothing(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.warm_up()
    if owner is Bench:  # it is called at the beginning as well
        monkeypatch.setattr(bench, "warm_up", interrupting(bench.warm_up))
        monkeypatch.setattr(Bench, "take", lambda own: _take(own))
    else:
        interrupt(monkeypatch, owner, name)
    record = run(lessons.add, 1, 2)
    assert (record.outcome, record.value) == (Outcome.FINISHED, 3)


def _take(own: Bench) -> Spare:
    spare, own._spare = own._spare, None
    assert spare is not None
    spare.wait_until_warm()
    return spare


def test_an_impatient_reader_interrupts_the_clean_up_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for owner, name in ((Experiment, "_wait"), (Experiment, "_end"), (Spare, "put_away")):
        interrupt(monkeypatch, owner, name)
    assert run(lessons.hang).outcome is Outcome.STOPPED


# When the machinery itself fails


@needs_fork
def test_a_watcher_that_is_killed_is_said_and_everything_is_ended(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    view = Does(
        lambda: process_that_runs("helpers.watcher").kill(), when=said_by_both_workers(pids)
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
    bench.clear()
    with monkeypatch.context() as patch:
        patch.setattr("helpers.board.Board.create", no_room)
        with pytest.raises(OSError, match="No space left on device"):
            run(lessons.add, 1, 2)


def no_room(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_record_is_not_lost_when_the_next_spare_cannot_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench.warm_up()
    monkeypatch.setattr("helpers.board.Board.create", no_room)
    assert run(lessons.add, 1, 2).value == 3


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_result_that_cannot_be_written_is_a_crash() -> None:
    record = run(lessons.have_no_room_for_the_result)
    assert record.outcome is Outcome.CRASHED
    assert "without a result" in record.error


# What a function may leave, and do


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
def test_a_daemon_that_the_watcher_has_seen_is_ended(watcher_enforced: str) -> None:
    record = run(lessons.leave_a_daemon_behind, 0.5)
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
            "TypeError: the function's value cannot be loaded here: I",
        ),
        (lessons.raise_stubborn, "ValueError: <lesson_functions.Stubborn object"),
    ],
)
def test_what_cannot_come_back_is_said(function: Callable[[], Any], words: str) -> None:
    record = run(function)
    assert record.outcome is Outcome.RAISED
    assert record.error.startswith(words)
    assert record.value is None


# Bad arguments


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ram_budget": "much"}, "'much' is not a size"),
        ({"ram_budget": 0}, "0 is not a size"),
        ({"timeout": 0}, "timeout is 0: pass a number of seconds above zero"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"start_method": "thread"}, "start method 'thread' is not available here"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_starts(
    options: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bench, "take", lambda own: pytest.fail("a process was started"))
    with pytest.raises(ValueError, match=words):
        run(lessons.add, 1, 2, **options)


def test_what_cannot_be_packed_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Bench, "take", lambda own: pytest.fail("a process was started"))
    with pytest.raises(TypeError, match="begins with %%importable"):
        run(lambda: 1)
    with pytest.raises(TypeError, match="cannot be pickled"):
        run(lessons.add, threading.Lock(), 1)


def test_a_budget_below_what_torch_takes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ram_budget 64 MiB is too small: .* Pass at least \d+ M"):
        run(lessons.add, 1, 2, ram_budget="64 MiB")


def test_a_measure_that_nobody_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_MEASURE", "guess")
    with pytest.raises(ValueError, match="LARGER_THAN_RAM_MEASURE is 'guess': use auto, proc or"):
        run(lessons.add, 1, 2)
