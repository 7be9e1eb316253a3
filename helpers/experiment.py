"""Run one function in a fresh child process under a RAM budget, and record what happens.

    >>> run(one_epoch, LoadsEverything, "features.npy", ram_budget="1 GiB")
    one_epoch(LoadsEverything): killed: over its 1 GiB budget, by the kernel (cgroup v2) after 1.4 s

The caller watches, the child suffers. A failure on purpose is a result: whatever becomes of the
child, `run` returns a record. It raises only for its own arguments, before anything starts; but
how much torch alone takes, only the waiting child can tell.
"""

import contextlib
import dataclasses
import json
import os
import pickle
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from helpers import predictions
from helpers.budget import watcher_wanted
from helpers.drawing.guarded_view import GuardedView
from helpers.live import choose_view, wanted_view
from helpers.memory import chosen_backend, measure_name
from helpers.page_cache import Eviction, evict
from helpers.records import Counters, Guess, ProcessPeak, Run, Snapshot, View
from helpers.running.child import Request, Result
from helpers.running.counting import above_zero
from helpers.running.failures import describe
from helpers.running.fitting import Budget, fit, lowest_limit
from helpers.running.interrupts import Interrupts, interrupts_held
from helpers.running.outcomes import find_outcome
from helpers.running.packing import make_request, title_of
from helpers.running.sandbox import CLEANING_SECONDS, Sandbox
from helpers.running.shared_state import STATE_VARIABLE
from helpers.running.warm_pool import pool
from helpers.running.watch import Task, WatchReport
from helpers.system.files import regular_file
from helpers.system.ram import physical_ram_bytes
from helpers.units import format_bytes, parse_size

POLL_SECONDS = 0.05
NO_HEADWAY = "watcher, as the kernel took back only what was read again"


def run(
    function: Callable[..., Any],
    *args: Any,
    ram_budget: str | int = "1 GiB",
    start_method: str | None = None,
    timeout: float | None = 300.0,
    title: str | None = None,
    guess: Any = None,
    cold: Iterable[str | Path] = (),
    view: View | None = None,
) -> Run:
    """Call `function(*args)` in a fresh child process and return the record of what happened.

    `ram_budget` is for the child and its workers together, in bytes or as "1 GiB"; in a container
    with less than that free it is lowered to what there is, and the record says so. `start_method`
    is what DataLoader workers use ("fork", "spawn", "forkserver"; None: the one named by
    LARGER_THAN_RAM_START_METHOD, else this Python's default). `timeout` is in seconds, None for no
    limit. `guess`, of `predict`, is drawn beside the measurement. Files named in `cold` are dropped
    from the page cache before the function starts, and the record says how much of them stayed.
    `view` shows the run while it goes on; None chooses by where we are: a live figure in a
    notebook, a line in a terminal.

    The function and its arguments are pickled, so they must come from a %%importable cell or from
    a file. A script calls `run` under `if __name__ == "__main__"`: the child runs it again. An
    interrupt stops the child and returns what was seen.

    Raises ValueError for a budget, start method or timeout that cannot be, OSError for a file in
    `cold` that cannot be read and for a working folder that was removed, TypeError for what has the
    wrong type or cannot be sent to the child, and RuntimeError inside another `run`.
    """
    _check_surroundings(view)
    title = _checked_title(title, function, args)
    budget_bytes, seconds = _checked_budget(ram_budget), _checked_timeout(timeout)
    files, request = _checked_files(cold), make_request(function, args, start_method)
    with interrupts_held() as interrupts:  # from before the first process to after the last one
        sandbox = pool.take(interrupts)
        try:
            budget = fit(sandbox.pid, budget_bytes)
            request = dataclasses.replace(request, environment=sandbox.environment())
            evictions = tuple(evict(path) for path in files)
            kept = predictions.take(guess, title)
            experiment = Experiment(sandbox, request, budget, seconds, title, kept, evictions)
            chosen = view or choose_view(title, budget.size_bytes, experiment.enforced_by)
            record = experiment.record(GuardedView(chosen), interrupts)
        finally:
            sandbox.put_away()
            with contextlib.suppress(OSError):  # if it cannot, the next run will say so
                pool.warm_up()  # while the reader reads
        interrupts.came = False  # it has stopped the run: the record says so
    return record


@dataclasses.dataclass
class Experiment:
    """One child at work, from its request to its record."""

    sandbox: Sandbox
    request: Request
    budget: Budget
    timeout: float | None
    title: str
    guess: Guess | None
    cold: tuple[Eviction, ...]
    snapshots: list[Snapshot] = dataclasses.field(default_factory=list)
    report: WatchReport | None = None

    def __post_init__(self) -> None:
        group = self.sandbox.group
        self.enforced_by = f"kernel (cgroup v{group.version})" if group else "watcher"
        self._reader = threading.Thread(target=self._read_watcher, daemon=True)

    def record(self, view: View, interrupts: Interrupts) -> Run:
        """Carry the request out, let `view` show it, and return the record."""
        self._start()
        self._wait(view, interrupts)
        run = self._run()
        view.finish(run)
        return run

    def _start(self) -> None:
        if self.sandbox.group is not None:
            self.sandbox.group.set_limit(self.budget.size_bytes)
        self.sandbox.give(self.request)
        task = Task(self.budget.size_bytes, self.timeout, chosen_backend())
        self._reader.start()
        self.sandbox.tell_watcher(json.dumps(dataclasses.asdict(task)))

    def _wait(self, view: View, interrupts: Interrupts) -> None:
        """Return when the experiment has ended, or the reader has stopped it."""
        while self._reader.is_alive():
            self._reader.join(POLL_SECONDS)
            view.update(self.snapshots[:])  # the reader thread adds to the list meanwhile
            if interrupts.came or view.stop_requested():
                self.sandbox.tell_watcher("stop")
                self._reader.join(CLEANING_SECONDS)
                if self.report is None:
                    self.report = WatchReport("stopped", 0, all_gone=False, cpu_seconds=0.0)

    def _read_watcher(self) -> None:
        for line in self.sandbox.watcher.stdout or ():
            if not line.endswith("\n"):  # it was killed in the middle of a word
                return
            record = json.loads(line)
            if "reason" in record:
                peaks = tuple(ProcessPeak(**peak) for peak in record.pop("peaks"))
                self.report = WatchReport(**record, peaks=peaks)
                return
            counters = Counters(**record.pop("counters"))
            self.snapshots.append(Snapshot(**record, counters=counters))

    def _run(self) -> Run:
        result, limit = self._result(), self.budget.limit
        if self.report and self.report.killed_from_above:
            limit = limit or lowest_limit()[1]
            self.enforced_by = f"kernel, at {limit}"
        outcome, error = find_outcome(
            self.report,
            result,
            stderr=self.sandbox.read("stderr"),
            watcher_stderr=self.sandbox.read("watcher-stderr"),
            timeout=self.timeout,
        )
        return Run(
            title=self.title,
            outcome=outcome,
            seconds=self.snapshots[-1].seconds if self.snapshots else 0.0,
            budget_bytes=self.budget.size_bytes,
            asked_bytes=self.budget.asked_bytes,
            limit=limit,
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
            cold=tuple(eviction.at_end() for eviction in self.cold),
            ended_by=NO_HEADWAY if self.report and self.report.reason == "stalled" else "",
        )

    def _result(self) -> Result | None:
        try:
            result: Result = pickle.loads((self.sandbox.folder / "result").read_bytes())
        except FileNotFoundError:
            return None
        except BaseException as error:  # noqa: BLE001 - any class may refuse, in its own way
            words = describe(error)
            return Result(error=f"TypeError: the function's value cannot be loaded here: {words}")
        return result


def _check_surroundings(view: View | None) -> None:
    """Raise where no run can start, or a variable asks for what nobody has."""
    if Path(os.environ.get(STATE_VARIABLE, "")).is_file():
        raise RuntimeError(
            "run was called inside a function that runs in `run` already: call the function itself "
            "there, or give both to `run` one after the other from the notebook"
        )
    chosen_backend(), watcher_wanted()
    if view is None:
        wanted_view()
    elif not hasattr(view, "update"):
        raise TypeError(f"view is {view!r}: pass None, or an object with the methods of View")


def _checked_title(title: str | None, function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    if not isinstance(title, str | None):
        raise TypeError(f"title is {title!r}: pass words")
    return title or title_of(function, args)


def _checked_timeout(timeout: Any) -> float | None:
    seconds = above_zero(timeout)
    if seconds is None and timeout is not None:
        raise ValueError(f"timeout is {timeout!r}: pass seconds above zero, or None for no limit")
    return seconds


def _checked_files(cold: Iterable[str | Path]) -> tuple[Path, ...]:
    with contextlib.suppress(TypeError):
        if not isinstance(cold, str):  # its letters would be paths
            return tuple(regular_file(path) for path in cold)
    raise TypeError(f"cold is {cold!r}: pass a list of paths")


def _checked_budget(ram_budget: str | int) -> int:
    size, ram = parse_size(ram_budget), physical_ram_bytes()
    if size > ram:
        raise ValueError(
            f"ram_budget is {ram_budget!r} and this machine has {format_bytes(ram)} of RAM: "
            "pass less than that"
        )
    return size
