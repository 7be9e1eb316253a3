"""The process beside an experiment: starts it, reads its memory, holds it to its budget, cleans up.

It is a process of its own so that drawing in the caller of `run` cannot delay a reading, and so
that nothing is left behind when the caller is killed. It is given the run's folder, and told on its
input what to watch (a `Task`, as JSON), then perhaps "stop", and "over" when the folder is not
needed any more. An input that ends means that, too, or that the caller has died. Its output is a
line of JSON for each snapshot and a last one, the `WatchReport`.
"""

import contextlib
import dataclasses
import json
import os
import sys
import threading
from pathlib import Path

from helpers.records import Snapshot
from helpers.running.child_process import ChildProcess
from helpers.running.run_folder import RunFolder
from helpers.running.watch import Task, Watch, WatchReport

CALLER_SECONDS = 1.0  # between looks whether the caller still lives


class Wanted:
    """What the caller wants, as its words arrive."""

    def __init__(self) -> None:
        self.task: Task | None = None
        self.stop = self.ended = self._over = False
        self.changed = threading.Event()
        self._caller = os.getppid()

    def listen(self) -> None:
        """Read standard input to its end."""
        for line in sys.stdin:
            if line.startswith("{") and line.endswith("\n"):
                self.task = Task(**json.loads(line))
            self.stop = self.stop or line == "stop\n"
            self._over = self._over or line == "over\n"
            self.changed.set()
        self._over = True
        self.changed.set()

    def child_ended(self) -> None:
        """Note that the child has ended."""
        self.ended = True
        self.changed.set()

    def wait(self, seconds: float) -> None:
        """Return after some seconds, or earlier when something has changed."""
        self.changed.wait(seconds)
        self.changed.clear()

    @property
    def over(self) -> bool:
        """Return whether nobody needs the experiment any more.

        A process that the caller has forked may keep our input open, so its death shows in two
        ways.
        """
        return self._over or os.getppid() != self._caller


def watch(experiment: Watch, wanted: Wanted) -> WatchReport:
    """Watch an experiment until it ends, is over its budget or its time, stopped, or not wanted."""
    reason, pause = "", 0.0
    while not reason:
        wanted.wait(pause)
        if wanted.stop:
            reason = "stopped"
        elif wanted.over or wanted.ended or experiment.lingers():
            break
        else:
            reason, pause = experiment.step()
    return experiment.end(reason)


def _write(record: Snapshot | WatchReport) -> None:
    with contextlib.suppress(OSError):  # the caller may be gone: cleaning up goes on
        print(json.dumps(dataclasses.asdict(record)), flush=True)  # noqa: T201 - the caller reads it


def main() -> None:
    """Start one experiment, and watch it as told on standard input."""
    folder, wanted = RunFolder(Path(sys.argv[1])), Wanted()
    child = ChildProcess(folder, sys.argv[2:], wanted.child_ended)
    threading.Thread(target=wanted.listen, daemon=True).start()
    while not (wanted.task or wanted.over or wanted.ended):
        wanted.wait(CALLER_SECONDS)
    if wanted.task:
        child.tell("request")
        report = watch(Watch(wanted.task, folder, _write, adopter=os.getpid()), wanted)
        child.keep_last_words()
        _write(dataclasses.replace(report, code=child.code))
    elif wanted.ended:  # it could not be warmed
        child.keep_last_words()
        os._exit(1)
    while not wanted.over:
        wanted.wait(CALLER_SECONDS)
    folder.remove(session=child.pid, adopter=os.getpid())
    os._exit(0)  # the listener still reads: an ordinary exit would wait for its lock
