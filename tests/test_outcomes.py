"""How an experiment's ending is judged, from what its processes left behind."""

import dataclasses
import signal
from typing import Any

import pytest

from helpers.records import Outcome
from helpers.running.child import Result
from helpers.running.outcomes import find_outcome
from helpers.running.watch import WatchReport

FINISHED, RAISED = Result(value=1), Result(error="ValueError: no")
FAULT = """Fatal Python error: Segmentation fault

Current thread 0x1 (most recent call first):
  File "/lesson/rows.py", line 54 in read
  File "/helpers/child.py", line 77 in _carry_out
"""


def report(reason: str = "", kernel_kills: int | None = 0, **more: Any) -> WatchReport:
    return WatchReport(reason, kernel_kills, all_gone=True, cpu_seconds=0.1, **more)


def judged(
    seen: WatchReport | None, result: Result | None, code: int | None = 0, **more: Any
) -> tuple[Outcome, str]:
    seen = dataclasses.replace(seen, code=code) if seen else None
    settled: dict[str, Any] = {"stderr": "", "watcher_stderr": "", "timeout": 1}
    return find_outcome(seen, result, **settled | more)


@pytest.mark.parametrize(
    ("seen", "result", "code", "outcome"),
    [
        (report(), FINISHED, 0, Outcome.FINISHED),
        (report(), RAISED, 0, Outcome.RAISED),
        (report(kernel_kills=1), None, -9, Outcome.KILLED),
        (report(kernel_kills=1), RAISED, 0, Outcome.KILLED),  # a worker was killed
        (report(kernel_kills=1), FINISHED, 0, Outcome.FINISHED),  # and was not missed
        (report("over budget"), None, -9, Outcome.KILLED),
        (report(killed_from_above=True), None, -9, Outcome.KILLED),
        (report(killed_from_above=True), FINISHED, 0, Outcome.FINISHED),  # somebody else was
        (report("over budget"), FINISHED, -9, Outcome.FINISHED),  # it had just finished
        (report(kernel_kills=None), None, -9, Outcome.KILLED),  # the count went with its scope
        (report(kernel_kills=None), None, -11, Outcome.CRASHED),
        (report(kernel_kills=None), None, 3221225477, Outcome.CRASHED),  # on Windows
        (report(kernel_kills=None), RAISED, 0, Outcome.RAISED),
        (report("timed out"), None, -9, Outcome.TIMED_OUT),
        (report("stopped"), None, -9, Outcome.STOPPED),
        (report(), None, -9, Outcome.CRASHED),
        (report(), None, 3, Outcome.CRASHED),
        (None, FINISHED, 0, Outcome.CRASHED),
    ],
)
def test_every_ending_has_its_outcome(
    seen: WatchReport | None, result: Result | None, code: int, outcome: Outcome
) -> None:
    assert judged(seen, result, code=code)[0] is outcome


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seen": None}, "the watcher died, and nothing held the budget: run again"),
        (
            {"seen": None, "watcher_stderr": "Traceback\nOSError: no"},
            "the watcher died (OSError: no), and nothing held the budget: run again",
        ),
        ({"seen": report("timed out"), "timeout": 2.5}, "not finished after 2.5 s"),
        ({"code": 3}, "the process left without a result (exit code 3)"),
        (
            {"code": 1, "stderr": "Traceback\nOSError: no\n\n"},
            "the process left without a result (exit code 1); its last words: OSError: no",
        ),
        ({"code": None}, "how the process ended is not known; it left no result"),
        ({"code": -9}, "SIGKILL, not by its budget: the machine itself may be out of memory"),
        ({"code": -11, "stderr": FAULT}, "SIGSEGV (Segmentation fault), at rows.py line 54"),
        ({"code": -15}, "SIGTERM (Terminated)"),
        ({"result": RAISED}, "ValueError: no"),
    ],
)
def test_every_failure_has_its_words(given: dict[str, Any], words: str) -> None:
    settled: dict[str, Any] = {"seen": report(), "result": None}
    assert judged(**settled | given)[1] == words


@pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="no real-time signals here")
def test_a_signal_without_a_name_has_its_number() -> None:
    number = signal.SIGRTMIN + 6
    assert judged(report(), None, code=-number)[1].startswith(f"signal {number}")
