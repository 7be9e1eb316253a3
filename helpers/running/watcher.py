"""The process beside an experiment: reads its memory, holds it to its budget, cleans up.

It is a process of its own so that drawing in the caller of `run` cannot delay a reading, and so
that nothing is left behind when the caller is killed. It is told as JSON (a `Task`) what there is
to clean up when it starts, and what to watch on its input; after that only "stop" or "over".
An input that ends without "over" means that the caller has died. Its output is a line of JSON for
each snapshot and a last one, the `WatchReport`.
"""

import contextlib
import dataclasses
import json
import os
import sys
import threading
from collections.abc import Callable

from helpers.records import Snapshot
from helpers.running.watch import Task, Watch, WatchReport, clean_up


class Wanted:
    """What the caller wants, as its words arrive: that it goes on, stops, or is over."""

    def __init__(self) -> None:
        self.stop = self.over = self.orphaned = False
        self.changed = threading.Event()
        self._caller = os.getppid()

    def listen(self) -> None:
        """Read standard input to its end."""
        for word in sys.stdin:
            self.stop = self.stop or word == "stop\n"
            self.over = self.over or word == "over\n"
            self.changed.set()
        self.orphaned = not self.over
        self.changed.set()

    def has_died(self) -> bool:
        """Return whether there is no caller any more.

        A process that it has forked may keep our input open, so its death shows in two ways.
        """
        return self.orphaned or os.getppid() != self._caller


def watch(task: Task, emit: Callable[[Snapshot], None], wanted: Wanted) -> WatchReport:
    """Watch an experiment until it is over its budget or its time, stopped, or not wanted."""
    experiment = Watch(task, emit)
    reason, pause = "", 0.0
    while not reason:
        wanted.changed.wait(pause)
        if wanted.stop:
            reason = "stopped"
        elif wanted.over or wanted.has_died():
            break
        else:
            reason, pause = experiment.step()
    return experiment.end(reason)


def _write(record: Snapshot | WatchReport) -> None:
    with contextlib.suppress(OSError):  # the caller may be gone: cleaning up goes on
        print(json.dumps(dataclasses.asdict(record)), flush=True)  # noqa: T201 - the caller reads it


def main() -> None:
    """Watch one experiment, as told on standard input."""
    task = Task(**json.loads(sys.argv[1]))
    line = sys.stdin.readline()
    if line == "over\n":
        return  # a sandbox that was never used
    if line:
        task = Task(**json.loads(line))
        wanted = Wanted()
        threading.Thread(target=wanted.listen, daemon=True).start()
        _write(watch(task, _write, wanted))
        if not wanted.has_died():
            os._exit(0)  # the listener still reads: an ordinary exit would wait for its lock
    clean_up(task)
    os._exit(0)


if __name__ == "__main__":
    main()
