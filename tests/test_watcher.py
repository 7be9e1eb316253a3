"""The process beside an experiment: what it is told, what it tells, and what it ends."""

import dataclasses
import io
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from helpers.budget import Group
from helpers.memory import MemoryReading
from helpers.records import Snapshot
from helpers.running import watch as watch_module
from helpers.running.shared_state import Phase, SharedState
from helpers.running.watch import LAST_WORDS_SECONDS, Task, Watch
from helpers.running.watcher import Wanted
from helpers.system.procfs import ProcessMemory

MIB = 2**20
BUDGET = 100 * MIB
# Takes so many MiB for every line that it reads.
TAKES = """
import sys
held = []
for line in sys.stdin:
    held.append(bytearray(b"x") * (int(line) << 20))
    print("taken", flush=True)
"""


class Desk:
    """A real watcher, and the experiment's process that it watches. The test is the kernel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "run"
        self.folder.mkdir()
        self.state = SharedState.create(self.folder / "state")
        self.child = self._start(TAKES, stderr=None, start_new_session=True)
        self.task = Task(pid=self.child.pid, folder=str(self.folder))
        words = json.dumps(dataclasses.asdict(self.task))
        main = "from helpers.running.watcher import main; main()"
        self.watcher = self._start(main, words, stderr=subprocess.PIPE)

    def _start(self, code: str, *words: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            **options,
        )

    def begin(self, **changes: Any) -> None:
        """Hand the watcher its task, and let the function start."""
        settled = {"budget_bytes": 2**30, "timeout": 120.0}
        task = dataclasses.replace(self.task, **settled | changes)
        self.tell(json.dumps(dataclasses.asdict(task)))
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
        assert self.child.stdin is not None
        self.child.stdin.write(f"{mib}\n")
        self.child.stdin.flush()

    def next(self) -> dict[str, Any]:
        """Return what the watcher says next, {} at its end."""
        assert self.watcher.stdout is not None
        line = self.watcher.stdout.readline()
        return json.loads(line) if line else {}

    def report(self) -> dict[str, Any]:
        """Return the last word."""
        *_, last = iter(self.next, {})
        assert last["all_gone"]
        return last

    def hang_up(self) -> None:
        """Do what the kernel's death does."""
        assert self.watcher.stdin is not None
        self.watcher.stdin.close()

    def is_running(self) -> bool:
        return self.child.poll() is None

    def close(self) -> None:
        for process in (self.child, self.watcher):
            process.kill()
            with process:
                pass
        self.state.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.close()


def test_a_spare_that_is_put_away_leaves_the_cleaning_to_the_kernel(desk: Desk) -> None:
    desk.tell("over")
    assert desk.watcher.wait(timeout=60) == 0
    assert desk.is_running()
    assert desk.folder.exists()


def test_a_spare_whose_kernel_dies_is_cleaned_up(desk: Desk) -> None:
    desk.hang_up()
    assert desk.watcher.wait(timeout=60) == 0
    assert desk.child.wait(timeout=60) != 0
    assert not desk.folder.exists()


def test_an_experiment_whose_kernel_dies_is_cleaned_up(desk: Desk) -> None:
    desk.begin()
    desk.hang_up()
    assert desk.report()["reason"] == ""
    assert desk.watcher.wait(timeout=60) == 0
    assert desk.child.wait(timeout=60) != 0
    assert not desk.folder.exists()


def test_a_kernel_that_dies_while_nobody_listens_is_no_error(desk: Desk) -> None:
    desk.begin()
    assert desk.watcher.stdout is not None
    desk.watcher.stdout.close()
    desk.hang_up()
    assert desk.watcher.wait(timeout=60) == 0
    assert not desk.folder.exists()
    assert desk.watcher.stderr is not None
    assert desk.watcher.stderr.read() == ""


@pytest.mark.parametrize(("word", "reason"), [("stop", "stopped"), ("over", "")])
def test_a_word_ends_the_experiment_and_keeps_its_folder(
    desk: Desk, word: str, reason: str
) -> None:
    desk.begin()
    desk.tell(word)
    report = desk.report()
    assert (report["reason"], report["kernel_kills"]) == (reason, 0)
    assert [peak["name"] for peak in report["peaks"]] == ["main"]
    assert desk.child.wait(timeout=60) != 0
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
    assert desk.is_running()


def test_what_takes_too_long_is_timed_out_and_seen_to_the_end(desk: Desk) -> None:
    desk.begin(timeout=0.1)
    *_, last_sample, report = iter(desk.next, {})
    assert report["reason"] == "timed out"
    assert last_sample["seconds"] > 0.1


def test_a_child_that_has_ended_is_watched_on_until_the_kernel_knows(desk: Desk) -> None:
    desk.begin(timeout=0.5)
    assert desk.child.stdin is not None
    desk.child.stdin.close()
    desk.child.wait()  # the watcher readings at nobody now, again and again
    *snapshots, report = iter(desk.next, {})
    assert report["reason"] == "timed out"
    assert all(snapshot["processes"] == 1 for snapshot in snapshots)


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
        task = Task(2**22 + 1, str(folder), budget_bytes=BUDGET, timeout=60.0)
        self.watch = Watch(task, self.snapshots.append)

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
    setting.watch.group = Group(tmp_path / "gone", 2)  # as a systemd scope's, after its end
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
    monkeypatch.setattr(watch_module, "end_all", lambda *_, **__: done.append("search"))
    commands = iter(["python -c from multiprocessing.resource_tracker import main"])
    monkeypatch.setattr(watch_module, "command_line", lambda pid: next(commands))
    setting.sampler.exact_look = reading(10, 1, exact=True)
    setting.begin()
    setting.watch.end("over budget")
    assert done == [setting.watch.task.pid, "search"]  # the tracker cleans up, and ends by itself


def test_peaks_are_kept_for_every_process(setting: Setting) -> None:
    setting.sampler.exact_look = reading(10, exact=True)
    setting.begin()
    for mib in (10, 30, 20):
        setting.sampler.cheap = reading(mib)
        setting.watch.step()
    (peak,) = setting.watch.peaks.values()
    assert peak.first_anonymous_bytes == 10 * MIB
    assert peak.peak_anonymous_bytes == 30 * MIB


# What the kernel wants


@pytest.mark.parametrize(
    ("words", "stop", "over", "has_died"),
    [
        ("", False, False, True),
        ("stop\n", True, False, True),
        ("over\n", False, True, False),
        ("stop\nover\n", True, True, False),
        ("ov", False, False, True),  # it died in the middle of a word
        ("nonsense\n", False, False, True),
    ],
)
def test_an_input_that_ends_without_over_means_that_the_kernel_has_died(
    monkeypatch: pytest.MonkeyPatch, words: str, stop: bool, over: bool, has_died: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(words))
    wanted = Wanted()
    wanted.listen()
    assert (wanted.stop, wanted.over, wanted.has_died()) == (stop, over, has_died)
    assert wanted.changed.is_set()


def test_another_parent_means_that_the_kernel_has_died(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = Wanted()
    assert not wanted.has_died()
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert wanted.has_died()


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
