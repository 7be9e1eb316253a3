"""`run` interrupted at any moment: it stops, says what was seen, and leaves nothing."""

import functools
import itertools
import signal
from pathlib import Path
from typing import Any

import lesson_functions as lessons
import pytest
from running import Does, is_running, needs_fork, run, said_by_both_workers

from helpers.experiment import Experiment
from helpers.records import Outcome
from helpers.running.sandbox import Sandbox
from helpers.running.warm_pool import WarmPool, pool


def interrupt(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int = 1) -> None:
    """Let a method be interrupted as it begins, at one of its calls."""
    method, calls = getattr(owner, name), itertools.count(1)

    @functools.wraps(method)
    def interrupted(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return method(*args, **kwargs)

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.parametrize("name", ["_start_watcher", "wait_until_warm"])
def test_an_interrupt_during_the_warm_up_is_raised(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.clear()
    interrupt(monkeypatch, Sandbox, name)
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
    assert record.snapshots
    assert not any(is_running(int(pid)) for pid in pids.read_text().split())


@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [(Experiment, "_run", 1), (Sandbox, "put_away", 1), (WarmPool, "warm_up", 2)],
)
def test_an_interrupt_during_the_clean_up_loses_nothing(
    owner: Any, name: str, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(monkeypatch, owner, name, call)
    record = run(lessons.add, 1, 2)
    assert (record.outcome, record.value) == (Outcome.FINISHED, 3)


def test_an_impatient_reader_interrupts_the_clean_up_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for owner, name in ((Experiment, "_wait"), (Experiment, "_run"), (Sandbox, "put_away")):
        interrupt(monkeypatch, owner, name)
    assert run(lessons.hang).outcome is Outcome.STOPPED
