"""Start a measured process, in an environment and a memory group, and end it whatever it does."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from helpers.budget import Group

from .records import Job

PROJECT = Path(__file__).resolve().parents[3]
_GRACE = 180.0  # seconds over what is measured: imports, opening, the first batch
_ENDING = 3.0  # seconds for what is left of a session to end


class ChildError(Exception):
    """A process that gave no answer. The message says how it ended."""


class Child:
    """One process of its own session, which takes its workers along when it is ended."""

    def __init__(self, python: Path, home: Path, group: Group | None = None) -> None:
        self._group = group
        self._shared_before = _shared_memory()
        home.mkdir(parents=True, exist_ok=True)
        # Short, because sockets lie in it. Some libraries leave locks there.
        self._temporary = TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True)
        self._log = home / "last_words.txt"
        self._answers, answers = os.pipe()
        try:
            with self._log.open("w") as words:
                self._process = subprocess.Popen(
                    [python, "-m", "tests.benchmarks.peers.child", str(answers)],
                    cwd=PROJECT,
                    env=_environment(home) | {"TMPDIR": self._temporary.name},
                    stdin=subprocess.PIPE,
                    stdout=words,
                    stderr=words,
                    pass_fds=(answers,),
                    start_new_session=True,
                )
        finally:
            os.close(answers)
        if group is not None:
            group.admit(self._process.pid)

    def ask(self, job: Job, patience: float = 0.0) -> dict[str, Any]:
        """Return the answer to a job, or raise ChildError where there is none."""
        assert self._process.stdin is not None
        line = json.dumps(job.as_json(), default=str) + "\n"
        with contextlib.suppress(BrokenPipeError):  # it has ended: said below
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        limit = 2 * job.seconds + (patience or _GRACE)
        answer = json.loads(self._read_line(limit))
        if "error" in answer:
            killed = self._group is not None and self._group.kills()
            raise ChildError(("the kernel killed a worker: " if killed else "") + answer["error"])
        return answer  # type: ignore[no-any-return]

    @property
    def pid(self) -> int:
        """Return the process's number."""
        return self._process.pid

    def end(self, patience: float = 10.0) -> None:
        """Let the process end by itself, then end it and everything it started.

        Libraries remove their shared memory on the way out, if they are let. multiprocessing has a
        process for that which ignores SIGTERM, and ends when all others have.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self._signal_all(signal.SIGTERM, min(patience, _ENDING))
        self._signal_all(signal.SIGKILL, _ENDING)
        self._process.wait()
        os.close(self._answers)
        self._temporary.cleanup()
        for path in _shared_memory() - self._shared_before:
            if not Path("/proc", path.name.split("_")[1]).exists():
                path.unlink(missing_ok=True)  # of a worker that was killed in handing it over

    def _signal_all(self, number: int, seconds: float) -> None:
        """Send a signal to all that is left of the session, and wait for it to end."""
        until = time.monotonic() + seconds
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
            while time.monotonic() < until:
                self._process.poll()
                os.killpg(self._process.pid, 0)
                time.sleep(0.02)

    def _read_line(self, seconds: float) -> str:
        until, read = time.monotonic() + seconds, b""
        while not read.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                raise ChildError(f"no answer within {seconds:.0f} s")
            some = os.read(self._answers, 1 << 16)
            if not some:
                raise ChildError(self._how_it_ended())
            read += some
        return read.decode()

    def _how_it_ended(self) -> str:
        status = self._process.wait()
        if self._group is not None and self._group.kills():
            return "killed by the kernel, over its memory limit"
        if status < 0:
            return f"ended by {signal.Signals(-status).name}"
        words = self._log.read_text(errors="replace").strip().splitlines()
        return words[-1][:200] if words else f"ended with status {status}"


def _shared_memory() -> set[Path]:
    """Return the shared memory of all torch workers: torch_PID_..."""
    return set(Path("/dev/shm").glob("torch_*_*"))


def _environment(home: Path) -> dict[str, str]:
    """Return our environment with another home: caches that libraries keep land there."""
    return os.environ | {
        "HOME": str(home),
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "1",  # nothing that is measured asks the network
    }
