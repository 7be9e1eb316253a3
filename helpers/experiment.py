"""Run one function in a fresh child process under a RAM budget, and record what happens.

    >>> run(one_epoch, LoadsEverything, "features.npy", ram_budget="1 GiB")
    one_epoch(LoadsEverything): killed: over its 1 GiB budget, by the kernel (cgroup v2) after 1.4 s

The caller watches, the child suffers. A failure on purpose is a result: whatever becomes of the
child, `run` returns a record. It raises only for its own arguments, before anything starts.
"""

import contextlib
import dataclasses
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from helpers.drawing.guarded_view import GuardedView
from helpers.live import choose_view
from helpers.memory import MemoryMeter, chosen_backend, measure_name
from helpers.records import Counters, Guess, ProcessPeak, Run, Snapshot, View
from helpers.running.child import Request, Result
from helpers.running.interrupts import interrupts_held
from helpers.running.outcomes import find_outcome
from helpers.running.packing import choose_start_method, pack, title_of
from helpers.running.sandbox import Sandbox
from helpers.running.warm_pool import pool
from helpers.running.watch import WatchReport
from helpers.units import format_bytes, parse_size

POLL_SECONDS = 0.05
LAST_WORDS_SECONDS = 2.0  # for a child that has written its result and does not end


def run(
    function: Callable[..., Any],
    *args: Any,
    ram_budget: str | int = "1 GiB",
    start_method: str | None = None,
    timeout: float = 300.0,
    title: str | None = None,
    guess: Guess | None = None,
    view: View | None = None,
) -> Run:
    """Call `function(*args)` in a fresh child process and return the record of what happened.

    `ram_budget` is for the child and its workers together, in bytes or as "1 GiB". `start_method`
    is what DataLoader workers use ("fork", "spawn", "forkserver"; None: the one named by
    LARGER_THAN_RAM_START_METHOD, else this Python's default). `timeout` is in seconds. `guess` is
    drawn beside the measurement. `view` shows the run while it goes on; None chooses by where we
    are: a live figure in a notebook, a line in a terminal.

    The function and its arguments are pickled, so they must come from an importable module: a
    %%importable cell, or a file. An interrupt stops the child and returns what was seen.

    Raises ValueError for a budget, start method or timeout that cannot be, and TypeError for a
    function or arguments that the child could not receive.
    """
    title = title or title_of(function, args)
    budget_bytes = parse_size(ram_budget)
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout}: pass a number of seconds above zero")
    request = Request(
        call=pack(function, args),
        path=list(sys.path),
        folder=os.getcwd(),  # noqa: PTH109 - it goes to os.chdir
        environment=dict(os.environ),
        start_method=choose_start_method(start_method),
    )
    sandbox = pool.take()
    try:
        _check_budget(sandbox, budget_bytes)
        experiment = Experiment(sandbox, request, budget_bytes, timeout, title, guess)
        chosen = view or choose_view(title, budget_bytes, experiment.enforced_by)
        return experiment.record(GuardedView(chosen))
    finally:
        with contextlib.suppress(KeyboardInterrupt, OSError), interrupts_held():
            sandbox.put_away()
            pool.warm_up()  # while the reader reads; if it cannot, the next run will say so


class Experiment:
    """One child at work, from its request to its record."""

    def __init__(
        self,
        sandbox: Sandbox,
        request: Request,
        budget_bytes: int,
        timeout: float,
        title: str,
        guess: Guess | None,
    ) -> None:
        self.sandbox, self.request, self.guess = sandbox, request, guess
        self.budget_bytes, self.timeout, self.title = budget_bytes, timeout, title
        group = sandbox.group
        self.enforced_by = f"kernel (cgroup v{group.version})" if group else "watcher"
        self.snapshots: list[Snapshot] = []
        self.report: WatchReport | None = None
        self._reader = threading.Thread(target=self._read_watcher, daemon=True)

    def record(self, view: View) -> Run:
        """Carry the request out, let `view` show it, and return the record."""
        stopped = False
        try:
            with interrupts_held():
                self._start()
            stopped = self._wait(view)
        except KeyboardInterrupt:
            stopped = True
        with contextlib.suppress(KeyboardInterrupt), interrupts_held():
            self._end(stopped)
        run = self._run()
        view.finish(run)
        return run

    def _start(self) -> None:
        group = self.sandbox.group
        if group is not None:
            group.set_limit(self.budget_bytes)
        task = dataclasses.replace(
            self.sandbox.task(),
            budget_bytes=self.budget_bytes,
            timeout=self.timeout,
            backend=chosen_backend(),
        )
        self._reader.start()
        self.sandbox.tell_watcher(json.dumps(dataclasses.asdict(task)))
        self.sandbox.give(self.request)

    def _wait(self, view: View) -> bool:
        """Return when the child has ended: True if the reader has stopped it."""
        over_for = 0.0
        while over_for < LAST_WORDS_SECONDS and self._reader.is_alive():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.sandbox.process.wait(timeout=POLL_SECONDS)
                return False
            if (self.sandbox.folder / "result").exists():
                over_for += POLL_SECONDS
            view.update(self.snapshots[:])  # the reader thread adds to the list meanwhile
            if view.stop_requested():
                return True
        return False

    def _end(self, stopped: bool) -> None:
        """Let the watcher end what is left, and wait for its report."""
        self.sandbox.tell_watcher("stop" if stopped else "over")
        if self._reader.ident is not None:
            self._reader.join(timeout=10)
        if stopped and self.report is None:
            self.report = WatchReport("stopped", 0, all_gone=False, cpu_seconds=0.0)

    def _read_watcher(self) -> None:
        for line in self.sandbox.watcher.stdout or ():
            if not line.endswith("\n"):  # it was killed in the middle of a word
                return
            record = json.loads(line)
            if "reason" in record:
                peaks = tuple(ProcessPeak(**peak) for peak in record.pop("peaks"))
                self.report = WatchReport(**record, peaks=peaks)
            else:
                counters = Counters(**record.pop("counters"))
                self.snapshots.append(Snapshot(**record, counters=counters))

    def _run(self) -> Run:
        result = self._result()
        outcome, error = find_outcome(
            self.report,
            result,
            code=self.sandbox.process.poll(),
            stderr=self.sandbox.read("stderr"),
            watcher_stderr=self.sandbox.read("watcher-stderr"),
            timeout=self.timeout,
        )
        return Run(
            title=self.title,
            outcome=outcome,
            seconds=self.snapshots[-1].seconds if self.snapshots else 0.0,
            budget_bytes=self.budget_bytes,
            enforced_by=self.enforced_by,
            measure=measure_name(chosen_backend()),
            start_method=self.request.start_method,
            snapshots=tuple(self.snapshots),
            peaks=self.report.peaks if self.report else (),
            value=result.value if result and not result.error else None,
            error=error,
            traceback=result.traceback if result else "",
            stdout=self.sandbox.read("stdout"),
            stderr=self.sandbox.read("stderr"),
            guess=self.guess,
        )

    def _result(self) -> Result | None:
        try:
            result: Result = pickle.loads((self.sandbox.folder / "result").read_bytes())
        except FileNotFoundError:
            return None
        except Exception as error:  # noqa: BLE001 - any class may refuse to be loaded, in its own way
            return Result(error=f"TypeError: the function's value cannot be loaded here: {error}")
        return result


def _check_budget(sandbox: Sandbox, budget_bytes: int) -> None:
    """Refuse a budget that is used up before the function starts."""
    with MemoryMeter(sandbox.process.pid, backend=chosen_backend()) as meter:
        reading = meter.exact()
    needed = reading.anonymous_bytes + reading.shared_bytes
    if budget_bytes < needed * 1.1:
        raise ValueError(
            f"ram_budget {format_bytes(budget_bytes)} is too small: Python and torch alone take "
            f"{format_bytes(needed)} here. Pass at least {format_bytes(2 * needed)}"
        )
