"""A child process that takes on known ballast, one statement at a time."""

import contextlib
import os
import signal
from pathlib import Path
from typing import Self

import pytest
from talking import Talking

MIB = 2**20

# Each statement is answered by one line, so that a test never has to wait for a time.
_LOOP = """
import sys
names = {}
for line in sys.stdin:
    try:
        exec(eval(line), names)
        print("done", flush=True)
    except BaseException as error:
        print(repr(error), flush=True)
"""

# Statements for `Child.do`. A forked worker does its work and then waits to be ended.
FORK = """
import os, signal
workers = []
def fork(work):
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        work()
        os.write(told, b"x")
        while True:
            signal.pause()
    assert os.read(ready, 1) == b"x"
    workers.append(pid)
def end_workers():
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    workers.clear()
"""


class Child:
    """A Python process that executes statements in a namespace of its own."""

    def __enter__(self) -> Self:
        self._process = Talking(_LOOP, start_new_session=True)
        self.pid = self._process.pid
        return self

    def do(self, statements: str) -> None:
        """Execute statements in the child and wait until they are done."""
        self._process.tell(repr(statements))
        answer = self._process.hear()
        assert answer == "done", answer

    def kill(self) -> None:
        """End the child at once, but not the workers it has forked, and wait until it has gone."""
        self._process.kill()
        self._process.wait()

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):  # nobody is left
            os.killpg(self.pid, signal.SIGKILL)
        with self._process:  # closes its pipes
            pass


def need_a_disk(folder: Path) -> None:
    """Skip the test where temporary files lie in RAM: there is no page cache to drop."""
    mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    above = [(len(top), kind) for top, kind in mounts if folder.resolve().is_relative_to(top)]
    if max(above)[1] in ("tmpfs", "ramfs"):
        pytest.skip("temporary files lie in RAM here: pass --basetemp=FOLDER, on a disk")
