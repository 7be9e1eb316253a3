"""The process beside an experiment: what it is told, what it tells, and what it ends."""

import contextlib
import dataclasses
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from helpers.memory import MemoryReading
from helpers.records import Snapshot
from helpers.running import watch as watch_module
from helpers.running.run_folder import RunFolder
from helpers.running.shared_state import Phase, SharedState
from helpers.running.watch import LAST_WORDS_SECONDS, LINGERING_SECONDS, Task, Watch
from helpers.running.watcher import Wanted
from helpers.system.cgroups import Group
from helpers.system.procfs import ProcessMemory

MIB = 2**20
BUDGET = 100 * MIB
# Stands in for the child: takes so many MiB for every line that it reads from a named pipe.
TAKES = """
import sys
held = []
with open(sys.argv[1] + "/wishes") as wishes:
    for line in wishes:
        held.append(bytearray(b"x") * (int(line) << 20))
"""
WATCHES = f"""
import sys
from helpers.running import child_process, watcher
child_process.python = lambda module: [sys.executable, "-c", {TAKES!r}]
watcher.main()
"""
pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")


class Desk:
    """A real watcher, and the experiment's process that it watches. The test is the caller."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "run"
        self.folder.mkdir()
        self.state = SharedState.create(self.folder / "state")
        os.mkfifo(self.folder / "wishes")
        self.wishes = (self.folder / "wishes").open("r+b", buffering=0)
        self.watcher = subprocess.Popen(
            [sys.executable, "-c", WATCHES, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        while not (pids := RunFolder(self.folder).pids()):
            assert self.watcher.poll() is None
        self.child = psutil.Process(pids[0])

    def begin(self, **changes: Any) -> None:
        """Hand the watcher its task, and let the function start."""
        self.tell(json.dumps({"budget_bytes": 2**30, "timeout": 120.0} | changes))
        self.state.phase = Phase.READY
        assert self.next()["seconds"] == 0
        assert self.state.phase is Phase.GO
        self.state.started = time.monotonic()

    def tell(self, word: str) -> None:
        assert self.watcher.stdin is not None
        self.watcher.stdin.write(word + "\n")
        self.watcher.stdin.flush()

    def take(self, mib: int) -> None:
        """Let the child take memory."""
        self.wishes.write(f"{mib}\n".encode())

    def next(self) -> Any:
        """Return what the watcher says next."""
        assert self.watcher.stdout is not None
        return json.loads(self.watcher.stdout.readline())

    def records(self) -> list[dict[str, Any]]:
        """Return everything up to the last word."""
        records = [self.next()]
        while "reason" not in records[-1]:
            records.append(self.next())
        assert records[-1]["all_gone"]
        return records

    def report(self) -> dict[str, Any]:
        """Return the last word."""
        return self.records()[-1]

    def hang_up(self) -> None:
        """Do what the kernel's death does."""
        assert self.watcher.stdin is not None
        self.watcher.stdin.close()

    def has_cleaned_up(self) -> bool:
        """Return whether the watcher ends well, and nothing is left when it does."""
        code = self.watcher.wait(timeout=60)
        return code == 0 and not self.child.is_running() and not self.folder.exists()

    def close(self) -> None:
        for process in (self.child, self.watcher):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        with self.watcher:
            pass
        self.child.wait()
        self.state.close()
        self.wishes.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.close()


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("end", [lambda desk: desk.tell("over"), Desk.hang_up])
def test_what_nobody_needs_any_more_is_cleaned_up(
    desk: Desk, begun: bool, end: Callable[[Desk], None]
) -> None:
    if begun:
        desk.begin()
    end(desk)
    if begun:
        assert desk.report()["reason"] == ""
    assert desk.has_cleaned_up()


def test_a_caller_that_dies_while_nobody_listens_is_no_error(desk: Desk) -> None:
    desk.begin()
    assert desk.watcher.stdout is not None
    desk.watcher.stdout.close()
    desk.hang_up()
    assert desk.has_cleaned_up()
    assert desk.watcher.stderr is not None
    assert desk.watcher.stderr.read() == ""


def test_a_stop_ends_the_experiment_and_keeps_its_folder(desk: Desk) -> None:
    desk.begin()
    desk.tell("stop")
    report = desk.report()
    assert (report["reason"], report["kernel_kills"], report["code"]) == ("stopped", 0, -9)
    assert [peak["name"] for peak in report["peaks"]] == ["main"]
    assert not desk.child.is_running()
    assert desk.folder.exists()


def test_what_is_over_its_budget_is_killed(desk: Desk) -> None:
    desk.begin(budget_bytes=BUDGET)
    desk.take(200)
    report = desk.report()
    assert report["reason"] == "over budget"
    assert report["peaks"][0]["peak_anonymous_bytes"] > BUDGET


def test_what_stays_inside_its_budget_is_sampled_and_lives(desk: Desk) -> None:
    desk.begin(budget_bytes=BUDGET)
    desk.take(50)
    snapshot = desk.next()
    while snapshot["anonymous_bytes"] < 50 * MIB:
        snapshot = desk.next()
    assert snapshot["anonymous_bytes"] < 75 * MIB
    assert desk.child.is_running()


def test_what_takes_too_long_is_timed_out_and_seen_to_the_end(desk: Desk) -> None:
    desk.begin(timeout=0.1)
    *_, last_sample, report = desk.records()
    assert report["reason"] == "timed out"
    assert last_sample["seconds"] > 0.1


def test_a_child_that_ends_ends_the_watch_and_its_exit_code_is_told(desk: Desk) -> None:
    desk.begin(timeout=None)
    desk.child.send_signal(signal.SIGSEGV)
    report = desk.report()
    assert (report["reason"], report["code"]) == ("", -signal.SIGSEGV)


def test_a_spare_whose_child_dies_ends_with_it(desk: Desk) -> None:
    desk.child.kill()
    assert desk.watcher.wait(timeout=60) == 1


# One watch, with readings made up by hand


def reading(*anonymous_mib: int, exact: bool = False, shared_mib: int = 0) -> MemoryReading:
    processes = tuple(
        ProcessMemory(pid, 1, mib * MIB, 0, shared_mib * MIB, mib * MIB)
        for pid, mib in enumerate(anonymous_mib, start=2**22 + 1)
    )
    return MemoryReading(processes, exact, read_bytes=1000, cpu_seconds=0.0001)


class Sampler:
    """Has the readings that it is given."""

    def __init__(self) -> None:
        self.cheap, self.exact_look = reading(10), reading(10, exact=True)

    def read(self) -> MemoryReading:
        return self.cheap

    def exact(self) -> MemoryReading:
        return self.exact_look


class Setting:
    """A watch whose readings and clock are made up."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.now, self.snapshots, self.sampler = 1000.0, list[Snapshot](), Sampler()
        clock = SimpleNamespace(monotonic=lambda: self.now, process_time=time.process_time)
        patch.setattr(watch_module, "time", clock)
        patch.setattr(watch_module, "MemoryMeter", lambda *_, **__: self.sampler)
        self.state = SharedState.create(folder / "state")
        run = RunFolder(folder)
        run.note_pid(2**22 + 1)
        self.watch = Watch(Task(BUDGET, 60.0), run, self.snapshots.append)

    def begin(self) -> None:
        """Take the baseline and start the function."""
        self.state.phase = Phase.READY
        self.watch.step()
        assert self.state.phase is Phase.GO
        self.state.started = self.now

    def close(self) -> None:
        self.state.close()
        self.watch.state.close()


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    setting = Setting(tmp_path, monkeypatch)
    yield setting
    setting.close()


def test_the_baseline_is_exact_and_what_was_read_before_it_does_not_count(
    setting: Setting,
) -> None:
    setting.begin()
    (baseline,) = setting.snapshots
    assert (baseline.seconds, baseline.exact, baseline.read_bytes) == (0.0, True, 0)


def test_before_the_function_only_its_limits_are_held(setting: Setting) -> None:
    assert setting.watch.step()[0] == ""
    setting.sampler.cheap = reading(200)
    assert setting.watch.step()[0] == "over budget"
    setting.sampler.cheap = reading(10)
    setting.now += 61
    assert setting.watch.step()[0] == "timed out"
    assert setting.snapshots == []


def test_the_last_look_is_exact_and_lets_the_child_go(setting: Setting) -> None:
    setting.begin()
    setting.now += 1
    setting.state.ended, setting.state.phase = setting.now, Phase.DONE
    setting.now += 5
    setting.watch.step()
    assert (setting.snapshots[-1].exact, setting.snapshots[-1].seconds) == (True, 1.0)
    assert setting.state.phase is Phase.LEAVE


def test_samples_are_handed_on_at_their_pace_and_a_new_peak_at_once(setting: Setting) -> None:
    setting.begin()
    seen = []
    for seconds, mib in ((0.001, 10), (0.001, 30), (0.001, 20), (0.001, 30), (0.001, 31), (1, 20)):
        setting.now += seconds
        setting.sampler.cheap = reading(mib)
        setting.watch.step()
        seen.append(len(setting.snapshots) - 1)
    assert seen == [0, 1, 1, 1, 2, 3]


def test_near_the_budget_it_looks_more_often(setting: Setting) -> None:
    setting.begin()
    setting.now += 1
    pauses = []
    for mib in (10, 80, 99):
        setting.sampler.cheap = dataclasses.replace(reading(mib), cpu_seconds=0.01)
        pauses.append(setting.watch.step()[1])
    assert pauses[0] > pauses[1] > pauses[2] > 0


def test_workers_that_share_are_not_killed_for_a_cheap(setting: Setting) -> None:
    setting.begin()
    setting.sampler.cheap, setting.sampler.exact_look = (
        reading(60, 60),
        reading(30, 30, exact=True),
    )
    assert setting.watch.step()[0] == ""
    setting.sampler.exact_look = reading(60, 60, exact=True)
    assert setting.watch.step()[0] == "over budget"


def test_shared_memory_counts_towards_the_budget(setting: Setting) -> None:
    setting.begin()
    setting.sampler.cheap = reading(30, shared_mib=80)
    assert setting.watch.step()[0] == "over budget"


def test_after_a_kill_by_the_kernel_the_main_process_has_a_moment_to_say_so(
    setting: Setting,
) -> None:
    setting.begin()
    kills = itertools.chain([0], itertools.repeat(1))
    setting.watch.group = SimpleNamespace(  # type: ignore[assignment]
        kills=lambda: next(kills), charged_bytes=lambda: 7
    )
    setting.sampler.cheap = reading(200)  # the kernel enforces: what we see does not matter
    assert setting.watch.step()[0] == ""
    assert setting.watch.step()[0] == ""
    setting.now += LAST_WORDS_SECONDS / 2
    assert setting.watch.step()[0] == ""
    setting.now += LAST_WORDS_SECONDS
    assert setting.watch.step()[0] == "over budget"
    assert setting.snapshots[-1].charged_bytes == 7


def test_a_group_that_has_gone_tells_nothing(setting: Setting, tmp_path: Path) -> None:
    gone = Group(tmp_path / "gone", 2)
    setting.watch.group = gone  # as a systemd scope's, after its end
    setting.watch.folder.note_group(gone)
    setting.begin()
    assert setting.watch.step()[0] == ""
    assert setting.snapshots[-1].charged_bytes is None
    assert setting.watch.end("").kernel_kills is None


def test_processes_are_named_by_what_they_do(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = iter(
        [
            "python -c from multiprocessing.resource_tracker import main",
            "python -c from multiprocessing.forkserver import main",
            "python -c from multiprocessing.forkserver import main",  # forked by it
            "python -c from multiprocessing.spawn import spawn_main",
        ]
    )
    monkeypatch.setattr(watch_module, "command_line", lambda pid: next(commands))
    setting.sampler.exact_look = reading(10, 1, 2, 3, 4, exact=True)
    setting.begin()
    names = [peak.name for peak in setting.watch.peaks.values()]
    assert names == ["main", "resource tracker", "fork server", "worker 1", "worker 2"]


def test_what_is_over_its_budget_is_killed_before_the_rest_is_searched_for(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []
    monkeypatch.setattr(watch_module, "kill", done.append)
    monkeypatch.setattr(RunFolder, "end", lambda *_, **__: done.append("search"))
    commands = iter(["python -c from multiprocessing.resource_tracker import main"])
    monkeypatch.setattr(watch_module, "command_line", lambda pid: next(commands))
    setting.sampler.exact_look = reading(10, 1, exact=True)
    setting.begin()
    setting.watch.end("over budget")
    assert done == [setting.watch.pid, "search"]  # the tracker cleans up, and ends by itself


def test_peaks_are_kept_for_every_process(setting: Setting) -> None:
    setting.sampler.exact_look = reading(10, exact=True)
    setting.begin()
    for mib in (10, 30, 20):
        setting.sampler.cheap = reading(mib)
        setting.watch.step()
    (peak,) = setting.watch.peaks.values()
    assert peak.first_anonymous_bytes == 10 * MIB
    assert peak.peak_anonymous_bytes == 30 * MIB


def test_a_child_that_does_not_end_after_its_result_is_not_waited_for(setting: Setting) -> None:
    setting.begin()
    (setting.watch.folder.path / "result").touch()
    assert not setting.watch.lingers()
    setting.state.ended = setting.now
    assert not setting.watch.lingers()
    setting.now += LINGERING_SECONDS + 1
    assert setting.watch.lingers()


@pytest.mark.parametrize("full", [False, True])
def test_a_kill_at_the_limit_of_a_container_is_told_from_one_at_the_budget(
    setting: Setting, full: bool
) -> None:
    group = SimpleNamespace(kills=lambda: 1, was_full=lambda: full)
    setting.watch.group = group  # type: ignore[assignment]
    assert setting.watch.end("").killed_from_above is not full


def test_without_a_group_of_its_own_a_kill_in_the_callers_is_one_from_above(
    setting: Setting,
) -> None:
    setting.watch.outer = SimpleNamespace(kills=lambda: 3)  # type: ignore[assignment]
    setting.watch.kills_before = 3
    assert not setting.watch.end("").killed_from_above
    setting.watch.kills_before = 2
    assert setting.watch.end("").killed_from_above


# What the caller wants


@pytest.mark.parametrize(
    ("words", "stop", "task"),
    [
        ("", False, None),
        ("stop\n", True, None),
        ("over\n", False, None),
        ("nonsense\n", False, None),
        ('{"budget_bytes": 1, "timeout": null}\nstop\n', True, Task(1, None)),
        ('{"budget_bytes": 1, "timeout": null}', False, None),  # it died in the middle of a word
    ],
)
def test_words_are_heeded_and_an_input_that_ends_means_that_it_is_over(
    monkeypatch: pytest.MonkeyPatch, words: str, stop: bool, task: Task | None
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(words))
    wanted = Wanted()
    wanted.listen()
    assert (wanted.stop, wanted.task, wanted.over) == (stop, task, True)
    assert wanted.changed.is_set()


def test_another_parent_means_that_the_caller_has_died(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = Wanted()
    assert not wanted.over
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert wanted.over


def test_the_watcher_is_light() -> None:
    """It stands beside every experiment: no numpy, no torch, and little memory of its own."""
    code = (
        "import helpers.running.watcher, sys; print('numpy' in sys.modules, 'torch' in sys.modules)"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", code]
    out = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
    assert out.split() == ["False", "False"]


def test_a_desk_is_gone_after_its_test(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.close()
    assert not psutil.pid_exists(desk.watcher.pid)
    assert not psutil.pid_exists(desk.child.pid)
