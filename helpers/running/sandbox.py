"""The processes of one experiment: started before they are needed, put away afterwards.

A sandbox serves one run only: every experiment starts in a process that has done nothing yet.
"""

import contextlib
import dataclasses
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from helpers.budget import Group, group_of, make_group, scope_command, watcher_wanted
from helpers.running.child import Request
from helpers.running.shared_state import SharedState
from helpers.running.watch import Task
from helpers.system.processes import end_all

FOLDER_PREFIX = "larger-than-ram-run-"
LAST_BYTES = 20_000  # of what the child writes: enough for any traceback
IMPORT_SECONDS = 120.0  # to import torch from a cold or a network disk


class Sandbox:
    """A waiting child and a waiting watcher, with a folder and, where it can be had, a cgroup."""

    def __init__(self) -> None:
        self._watched_only = watcher_wanted()
        with contextlib.ExitStack() as undo:
            self.folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
            undo.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self.state = SharedState.create(self.folder / "state")
            undo.callback(self.state.close)
            self.group: Group | None = make_group()
            if self.group is not None:
                undo.callback(self.group.remove)
            self.process = self._start_child()
            undo.callback(_end, self.process)
            if self.group is not None:
                self.group.admit(self.process.pid)  # before it imports: torch counts, too
            self.watcher = self._start_watcher()
            undo.callback(_end, self.watcher)
            self._send(b"go\n")
            undo.pop_all()  # all is well: from here on `put_away` does it

    def task(self) -> Task:
        """Return what the watcher must know to clean up."""
        group = self.group
        return Task(
            pid=self.process.pid,
            folder=str(self.folder),
            group=str(group.path) if group else "",
            version=group.version if group else 0,
        )

    def wait_until_warm(self) -> None:
        """Return when torch is imported. Raises RuntimeError with its last words if it died."""
        patience = time.monotonic() + IMPORT_SECONDS
        while not (self.folder / "warm").exists():
            if self.process.poll() is not None or time.monotonic() > patience:
                words = self.read("stderr") or f"exit code {self.process.poll()}"
                raise RuntimeError(f"the experiment's process could not import torch: {words}")
            time.sleep(0.005)
        if self._in_scope:
            self.group = group_of(self.process.pid)

    def is_ready(self) -> bool:
        """Return whether both processes still wait, for what the environment now asks for."""
        return (
            self.process.poll() is None
            and self.watcher.poll() is None
            and self._watched_only == watcher_wanted()
        )

    def give(self, request: Request) -> None:
        """Hand the request to the child."""
        self._send(pickle.dumps(request))

    def tell_watcher(self, line: str) -> None:
        """Hand a line to the watcher."""
        with contextlib.suppress(OSError, ValueError):  # it may have ended: its silence tells
            self.watcher.stdin.write(line + "\n")  # type: ignore[union-attr]
            self.watcher.stdin.flush()  # type: ignore[union-attr]

    def read(self, name: str, lines: int = 40) -> str:
        """Return the last lines that were written to "stdout" or "stderr"."""
        try:
            with (self.folder / name).open("rb") as file:
                file.seek(max(file.seek(0, os.SEEK_END) - LAST_BYTES, 0))  # it may be huge
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def put_away(self) -> None:
        """End both processes and remove the folder and the cgroup. May be called again."""
        self.tell_watcher("over")
        for process in (self.process, self.watcher):
            with contextlib.suppress(OSError):  # its input may be closed already
                process.stdin.close()  # type: ignore[union-attr]
        _wait(self.watcher)
        if self.process.poll() is None or self.watcher.returncode != 0:  # it was killed itself
            end_all(self.process.pid, listed=self.group.pids if self.group else tuple)
        _wait(self.process)
        with contextlib.suppress(OSError):
            self.watcher.stdout.close()  # type: ignore[union-attr]
        if self.group is not None:
            self.group.remove()
        self.state.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start_child(self) -> subprocess.Popen[bytes]:
        scope = scope_command() if self.group is None else []
        self._in_scope = bool(scope)
        with (self.folder / "stdout").open("wb") as out, (self.folder / "stderr").open("wb") as err:
            return subprocess.Popen(
                [*scope, *_python("helpers.running.child"), str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env=_environment(),
                start_new_session=True,  # an interrupt of the caller must not reach it
            )

    def _start_watcher(self) -> subprocess.Popen[str]:
        with (self.folder / "watcher-stderr").open("wb") as err:
            return subprocess.Popen(
                [*_python("helpers.running.watcher"), json.dumps(dataclasses.asdict(self.task()))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                env=_environment(),
                start_new_session=True,
                text=True,
            )

    def _send(self, words: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # it died: whoever waits for it will see
            self.process.stdin.write(words)  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]


def _wait(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """End a process that has not begun to work."""
    process.kill()
    with process:  # closes its pipes and waits
        pass


def _python(module: str) -> list[str]:
    # -P: a file beside the notebook must not stand in for a module of ours, whoever wrote it.
    # Not `-m`: a spawned worker would import the child's main module again.
    return [sys.executable, "-P", "-c", f"from {module} import main; main()"]


def _environment() -> dict[str, str]:
    """Return an environment in which a fresh interpreter finds this package."""
    root = str(Path(__file__).resolve().parents[2])
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = [root, *filter(os.path.isabs, entries)]  # others mean the working folder, as "" does
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}
