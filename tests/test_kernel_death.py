"""A kernel that is killed, restarted or interrupted: everything that it started ends by itself."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import leftovers
import psutil
import pytest
from running import said_by_both_workers
from talking import Talking

from helpers.running.run_folder import sweep

pytestmark = pytest.mark.skipif(
    not (hasattr(signal, "SIGKILL") and Path("/proc/self").exists()),
    reason="it is checked with signals, through /proc",
)
RUNS = """
import sys
from pathlib import Path
from lesson_functions import hang_with_two_workers
from helpers.running.warm_pool import pool
from helpers.experiment import run
from helpers.live import NoView

print("ready", flush=True)
arguments = Path(sys.argv[1]), sys.argv[2]
record = run(hang_with_two_workers, *arguments, ram_budget="2 GiB", timeout=120, view=NoView())
pool.clear()
print(record.outcome, len(record.snapshots) > 0, flush=True)
sys.stdin.read()
"""
WAITS = """
import sys
from helpers.running.warm_pool import pool
pool.warm_up()
if sys.argv[1] == "warm":
    pool.waiting.wait_until_warm()
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def kernel(code: str, *words: object) -> Iterator[Talking]:
    """Start a Python process that plays the kernel, and wait until it is ready."""
    with Talking(code, *words) as process:
        assert process.hear() == "ready"
        yield process
        process.kill()


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, "waited in vain"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("enforcer", "method"), [("auto", "spawn"), ("watcher", "spawn"), ("auto", "fork")]
)
def test_a_kernel_killed_in_mid_run_leaves_nothing(
    enforcer: str, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", enforcer)
    before, pids = leftovers.traces(), tmp_path / "pids"
    with kernel(RUNS, pids, method) as process:
        wait_for(said_by_both_workers(pids))
        during = leftovers.traces() - before
        assert {f"process {pid}" for pid in pids.read_text().split()} <= during
        if method == "spawn":
            assert any("sem.mp-" in line for line in during)
        process.kill()
    assert leftovers.left_since(before) == []


@pytest.mark.parametrize("enforcer", ["auto", "watcher"])
def test_what_a_kernel_killed_with_its_watcher_leaves_is_swept_by_the_next_start(
    enforcer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", enforcer)
    before, pids = leftovers.traces(), tmp_path / "pids"
    with kernel(RUNS, pids, "fork") as process:
        wait_for(said_by_both_workers(pids))
        sweep()
        assert process.poll() is None  # what has an owner is left alone
        (watcher,) = psutil.Process(process.pid).children()
        (child,) = watcher.children()
        Path(f"/dev/shm/torch_{child.pid}_1_0").touch()
        for dying in (watcher, process):
            dying.kill()
            dying.wait()
        assert child.is_running()
    sweep()
    assert leftovers.left_since(before) == []


@pytest.mark.parametrize("sandbox", ["warm", "importing"])
def test_a_kernel_killed_while_a_spare_waits_leaves_nothing(sandbox: str) -> None:
    before = leftovers.traces()
    with kernel(WAITS, sandbox) as process:
        assert leftovers.traces() - before
        process.kill()
    assert leftovers.left_since(before) == []


def test_a_kernel_that_ends_puts_its_spare_away_itself() -> None:
    before = leftovers.traces()
    with kernel(WAITS, "importing") as process:
        process.communicate("")
        assert leftovers.left_since(before, patience=0) == []


def test_interrupts_from_outside_stop_the_experiment_and_the_kernel_lives(tmp_path: Path) -> None:
    before, pids = leftovers.traces(), tmp_path / "pids"
    with kernel(RUNS, pids, "fork") as process:
        wait_for(said_by_both_workers(pids))
        for _ in range(3):  # an impatient reader
            process.send_signal(signal.SIGINT)
        assert process.hear() == "stopped True"
        left = leftovers.left_since(before, allowed=lambda: frozenset({f"process {process.pid}"}))
        assert left == []
        assert process.poll() is None
