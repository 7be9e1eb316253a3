"""`run` interrupted at any moment: it stops, says what was seen, and leaves nothing."""

import functools
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lesson_functions as lessons
import pytest
from running import (
    Does,
    is_running,
    needs_fork,
    run,
    said_by_both_workers,
)

from helpers.experiment import Experiment
from helpers.records import Outcome
from helpers.running.sandbox import Sandbox
from helpers.running.warm_pool import WarmPool, pool


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
    ("owner", "name"), [(Experiment, "_run"), (Sandbox, "put_away"), (WarmPool, "warm_up")]
)
def test_an_interrupt_during_the_clean_up_loses_nothing(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.warm_up()
    if owner is WarmPool:  # it is called at the beginning as well
        monkeypatch.setattr(pool, "warm_up", interrupting(pool.warm_up))
        monkeypatch.setattr(WarmPool, "take", lambda own, _: _take(own))
    else:
        interrupt(monkeypatch, owner, name)
    record = run(lessons.add, 1, 2)
    assert (record.outcome, record.value) == (Outcome.FINISHED, 3)


def _take(own: WarmPool) -> Sandbox:
    sandbox, own._sandbox = own._sandbox, None
    assert sandbox is not None
    sandbox.wait_until_warm()
    return sandbox


def test_an_impatient_reader_interrupts_the_clean_up_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for owner, name in ((Experiment, "_wait"), (Experiment, "_run"), (Sandbox, "put_away")):
        interrupt(monkeypatch, owner, name)
    assert run(lessons.hang).outcome is Outcome.STOPPED
