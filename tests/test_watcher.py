"""One watch, with readings and a clock made up by hand, and what the caller tells the watcher.

Real watchers, and what they end and clean up, stand in the tests of `run` and of a caller's death.
"""

import dataclasses
import io
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from talking import said_by

from helpers.memory import MemoryReading
from helpers.records import Snapshot
from helpers.running import watch as watch_module
from helpers.running.run_folder import RunFolder
from helpers.running.shared_state import Phase, SharedState
from helpers.running.watch import (
    LAST_WORDS_SECONDS,
    LINGERING_SECONDS,
    STALLED_SECONDS,
    Task,
    Watch,
)
from helpers.running.watcher import Wanted
from helpers.system.cgroups import Group
from helpers.system.procfs import ProcessMemory

MIB = 2**20
BUDGET = 100 * MIB


def reading(*anonymous_mib: int, exact: bool = False, shared_mib: int = 0) -> MemoryReading:
    processes = tuple(
        ProcessMemory(pid, 1, mib * MIB, 0, shared_mib * MIB, mib * MIB)
        for pid, mib in enumerate(anonymous_mib, start=2**22 + 1)
    )
    return MemoryReading(processes, exact, read_bytes=1000, cpu_seconds=0.0001)


class Sampler:
    """Has the readings that it is given."""

    cheap, exact_look = reading(10), reading(10, exact=True)

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
        assert self.state.phase == Phase.GO
        self.state.started = self.now

    def stand_in(self, **told: Any) -> None:
        """Put the experiment into a cgroup that tells what it is made of."""
        self.watch.group = SimpleNamespace(**told)  # type: ignore[assignment]

    def step(self, look: MemoryReading | None = None, *, after: float = 0.0) -> str:
        """Return why the experiment must end, after so many seconds, with such a reading."""
        self.now += after
        self.sampler.cheap = look or self.sampler.cheap
        return self.watch.step()[0]


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    return Setting(tmp_path, monkeypatch)


def test_the_baseline_and_the_last_look_are_exact_and_let_the_child_go(setting: Setting) -> None:
    setting.begin()
    (baseline,) = setting.snapshots
    assert (baseline.seconds, baseline.exact, baseline.read_bytes) == (0.0, True, 0)
    setting.now += 1
    setting.state.ended, setting.state.phase = setting.now, Phase.DONE
    setting.step(after=5)
    assert (setting.snapshots[-1].exact, setting.snapshots[-1].seconds) == (True, 1.0)
    assert setting.state.phase == Phase.LEAVE


def test_before_the_function_only_its_limits_are_held(setting: Setting) -> None:
    assert setting.step() == ""
    assert setting.step(reading(200)) == "over budget"
    assert setting.step(reading(10), after=61) == "timed out"
    assert setting.snapshots == []


def test_samples_are_handed_on_at_their_pace_and_a_new_peak_at_once(setting: Setting) -> None:
    setting.begin()
    seen = []
    for seconds, mib in ((0.001, 10), (0.001, 30), (0.001, 20), (0.001, 30), (0.001, 31), (1, 20)):
        setting.step(reading(mib), after=seconds)
        seen.append(len(setting.snapshots) - 1)
    assert seen == [0, 1, 1, 1, 2, 3]
    (peak,) = setting.watch.peaks.values()
    assert (peak.first_anonymous_bytes, peak.peak_anonymous_bytes) == (10 * MIB, 31 * MIB)


def test_near_the_budget_it_looks_more_often(setting: Setting) -> None:
    setting.begin()
    setting.now += 1
    pauses = []
    for mib in (10, 80, 99):
        setting.sampler.cheap = dataclasses.replace(reading(mib), cpu_seconds=0.01)
        pauses.append(setting.watch.step()[1])
    assert pauses[0] > pauses[1] > pauses[2] > 0


def test_shared_memory_counts_and_workers_that_share_are_not_killed_for_a_cheap_look(
    setting: Setting,
) -> None:
    setting.begin()
    setting.sampler.exact_look = reading(30, 30, exact=True)
    assert setting.step(reading(60, 60)) == ""
    setting.sampler.exact_look = reading(60, 60, exact=True)
    assert setting.step() == "over budget"
    assert setting.step(reading(30, shared_mib=80)) == "over budget"


def test_after_a_kill_by_the_kernel_the_main_process_has_a_moment_to_say_so(
    setting: Setting,
) -> None:
    setting.begin()
    setting.stand_in(kills=lambda: 0, charged_bytes=lambda: 7)
    assert setting.step(reading(200)) == ""  # the kernel enforces: what we see does not matter
    setting.stand_in(kills=lambda: 1, charged_bytes=lambda: 7)
    assert setting.step() == ""
    assert setting.step(after=LAST_WORDS_SECONDS / 2) == ""
    assert setting.step(after=LAST_WORDS_SECONDS) == "over budget"
    assert setting.snapshots[-1].charged_bytes == 7


@pytest.mark.parametrize(
    ("read_mib", "batches", "reason"), [(65, 0, "stalled"), (0, 0, ""), (65, 1, "")]
)
def test_what_stands_at_its_budget_and_only_reads_again_is_ended(
    setting: Setting, read_mib: int, batches: int, reason: str
) -> None:
    setting.begin()
    setting.stand_in(kills=lambda: 0, charged_bytes=lambda: BUDGET)
    assert setting.step(reading(99)) == ""
    setting.state.batches = batches
    look = dataclasses.replace(reading(99), read_bytes=1000 + read_mib * MIB)
    assert setting.step(look, after=STALLED_SECONDS + 1) == reason


def test_a_group_that_has_gone_tells_nothing(setting: Setting, tmp_path: Path) -> None:
    gone = Group(tmp_path / "gone", 2)
    setting.watch.group = gone  # as a systemd scope's, after its end
    setting.watch.folder.note_group(gone)
    setting.begin()
    assert setting.step() == ""
    assert setting.snapshots[-1].charged_bytes is None
    assert setting.watch.end("").kernel_kills is None


def test_processes_are_named_by_what_they_do_and_all_but_the_tracker_killed_before_a_search(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = iter(["resource_tracker", "forkserver", "forkserver", "spawn"])  # the third is forked
    monkeypatch.setattr(watch_module, "command_line", lambda pid: next(modules))
    setting.sampler.exact_look = reading(10, 1, 2, 3, 4, exact=True)
    setting.begin()
    names = [peak.name for peak in setting.watch.peaks.values()]
    assert names == ["main", "resource tracker", "fork server", "worker 1", "worker 2"]
    done: list[object] = []
    monkeypatch.setattr(watch_module, "kill", done.append)
    monkeypatch.setattr(RunFolder, "end", lambda *_, **__: done.append("search"))
    setting.watch.end("over budget")
    main, _tracker, *others = setting.watch.peaks
    assert done == [main, *others, "search"]  # the tracker cleans up, and ends by itself


def test_a_child_that_does_not_end_after_its_result_is_not_waited_for(setting: Setting) -> None:
    setting.begin()
    (setting.watch.folder.path / "result").touch()
    assert not setting.watch.lingers()
    setting.state.ended = setting.now
    assert not setting.watch.lingers()
    setting.now += LINGERING_SECONDS + 1
    assert setting.watch.lingers()


@pytest.mark.parametrize("own_group", [True, False])
@pytest.mark.parametrize("from_above", [True, False])
def test_a_kill_at_the_limit_of_a_container_is_told_from_one_at_the_budget(
    setting: Setting, own_group: bool, from_above: bool
) -> None:
    if own_group:
        setting.stand_in(kills=lambda: 1, was_full=lambda: not from_above)
    setting.watch.outer = SimpleNamespace(kills=lambda: 3)  # type: ignore[assignment]
    setting.watch.kills_before = 2 if from_above else 3
    assert setting.watch.end("").killed_from_above is from_above


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
    """It stands beside every experiment: where there is a /proc, only Python's own modules."""
    code = (
        "import helpers.running.watcher, os, sys; from helpers import memory\n"
        "memory.MemoryMeter(os.getpid()).read(); memory.measure_name()\n"
        "print({'psutil', 'numpy', 'torch'} & sys.modules.keys())"
    )
    assert said_by(code) == "set()"
