"""Judge how an experiment ended, from what its processes left behind."""

import re
import signal
from pathlib import Path

from helpers.records import Outcome
from helpers.running.child import Result
from helpers.running.failures import file_in_the_way
from helpers.running.watch import WatchReport


def find_outcome(
    report: WatchReport | None,
    result: Result | None,
    *,
    stderr: str,
    watcher_stderr: str,
    timeout: float | None,
) -> tuple[Outcome, str]:
    """Return the outcome and its error in words.

    `report` is None when the watcher died, `result` is None when the child did. The others are
    the last lines that each wrote.
    """
    if report is None:
        words = f" ({watcher_stderr.splitlines()[-1]})" if watcher_stderr else ""
        return Outcome.CRASHED, f"the watcher died{words}, and nothing held the budget: run again"
    if result is not None and not result.error:
        return Outcome.FINISHED, ""
    error = result.error if result else ""
    # A systemd scope goes with its last process, and its count of kills with it.
    lost_count = report.kernel_kills is None and _died_of(report.code) == "SIGKILL"
    by_kernel = report.kernel_kills or report.killed_from_above or lost_count
    if by_kernel or report.reason in ("over budget", "stalled"):
        return Outcome.KILLED, error
    if report.reason == "timed out":
        return Outcome.TIMED_OUT, f"not finished after {timeout:g} s"
    if report.reason == "stopped":
        return Outcome.STOPPED, ""
    if result is not None:  # what a worker died of stands on standard error only
        said = result.traceback + stderr
        hint = file_in_the_way(said, before=result.own_path, now=result.path)
        words = f"{hint} ({error})" if hint else error
        return Outcome.REFUSED if result.refused else Outcome.RAISED, words
    return Outcome.CRASHED, _how_it_died(report.code, stderr)


def _how_it_died(code: int | None, stderr: str) -> str:
    if code is None:
        return "how the process ended is not known; it left no result"
    if code >= 0:
        last = next((line for line in reversed(stderr.splitlines()) if line.strip()), "")
        said = f"; its last words: {last}" if last else ""
        return f"the process left without a result (exit code {code}){said}"
    name = _died_of(code)
    if name == "SIGKILL":
        return "SIGKILL, not by its budget: the machine itself may be out of memory"
    # What faulthandler wrote: the innermost Python line comes first.
    place = re.search(r'^Fatal Python error.*?File "([^"]+)", line (\d+)', stderr, re.DOTALL | re.M)
    where = f", at {Path(place[1]).name} line {place[2]}" if place else ""
    words = signal.strsignal(-code)
    return f"{name} ({words}){where}" if words else f"{name}{where}"


def _died_of(code: int | None) -> str:
    """Return the name of the signal that an exit code tells of, or ''."""
    if code is None or code >= 0:
        return ""
    try:
        return signal.Signals(-code).name
    except ValueError:  # a real-time signal has a number only
        return f"signal {-code}"
