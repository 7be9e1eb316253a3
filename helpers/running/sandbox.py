"""The processes of one experiment: started before they are needed, put away afterwards.

A sandbox serves one run only: every experiment starts in a process that has done nothing yet.
"""

import contextlib
import os
import pickle
import shutil
import subprocess
import time
from pathlib import Path

from helpers.budget import group_of, make_group, scope_command, watcher_wanted
from helpers.running.child import Request
from helpers.running.child_process import python
from helpers.running.interrupts import Interrupts
from helpers.running.run_folder import RunFolder
from helpers.running.shared_state import SharedState
from helpers.system.cgroups import Group
from helpers.system.processes import is_alive

IMPORT_SECONDS = 120.0  # to import torch from a cold or a network disk
CLEANING_SECONDS = 15.0  # for the watcher: ending processes may take it nine of them


class Sandbox:
    """A waiting child and a waiting watcher, with a folder and, where it can be had, a cgroup."""

    def __init__(self) -> None:
        self._watched_only = watcher_wanted()
        self._folder, self._lock = RunFolder.make()
        self.folder = self._folder.path
        try:
            SharedState.create(self.folder / "state")
            self.group: Group | None = make_group()
            if self.group is not None:
                self._folder.note_group(self.group)
            self._scope = scope_command() if self.group is None else []
            self.watcher = self._start_watcher()
        except BaseException:
            self._remove()
            raise

    @property
    def pid(self) -> int:
        """Return the child's pid, 0 as long as it has not been started."""
        return next(iter(self._folder.pids()), 0)

    def wait_until_warm(self, interrupts: Interrupts | None = None) -> None:
        """Return when torch is imported.

        Raises RuntimeError with the child's last words if it died, KeyboardInterrupt if one came.
        """
        patience = time.monotonic() + IMPORT_SECONDS
        while not (self.folder / "warm").exists():
            if interrupts and interrupts.came:
                raise KeyboardInterrupt
            if self.watcher.poll() is not None or time.monotonic() > patience:
                words = self.read("stderr") or self.read("watcher-stderr") or "it said nothing"
                raise RuntimeError(f"the experiment's process could not import torch: {words}")
            time.sleep(0.005)
        if self._scope:
            self.group = group_of(self.pid)
            if self.group is not None:
                self._folder.note_group(self.group)

    def is_ready(self) -> bool:
        """Return whether both processes still wait, for what the environment now asks for."""
        pid = self.pid
        return (
            self.watcher.poll() is None
            and (not pid or is_alive(pid))
            and self._watched_only == watcher_wanted()
        )

    def give(self, request: Request) -> None:
        """Lay the request out for the child. Raises OSError where there is no room for it."""
        (self.folder / "request").write_bytes(pickle.dumps(request))

    def environment(self) -> dict[str, str]:
        """Return the caller's environment as the child has to have it."""
        return {**os.environ, "TMPDIR": str(self._folder.temporary)}

    def tell_watcher(self, line: str) -> None:
        """Hand a line to the watcher."""
        with contextlib.suppress(OSError, ValueError):  # it may have ended: its silence tells
            self.watcher.stdin.write(line + "\n")  # type: ignore[union-attr]
            self.watcher.stdin.flush()  # type: ignore[union-attr]

    def read(self, name: str, lines: int = 40) -> str:
        """Return the last lines that were written to "stdout" or "stderr"."""
        try:
            text = (self.folder / name).read_text("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def put_away(self) -> None:
        """End both processes and remove the folder and the cgroup. May be called again."""
        self.tell_watcher("over")
        with contextlib.suppress(OSError):  # its input may be closed already
            self.watcher.stdin.close()  # type: ignore[union-attr]
        try:
            self.watcher.wait(CLEANING_SECONDS)
        except subprocess.TimeoutExpired:
            self.watcher.kill()
            self.watcher.wait()
        with contextlib.suppress(OSError):
            self.watcher.stdout.close()  # type: ignore[union-attr]
        self._remove()

    def _remove(self) -> None:
        """Do what the watcher has not done: it was killed, or never started."""
        if self.folder.exists():
            self._folder.remove(session=self.pid)
        self._lock.close()
        shutil.rmtree(self.folder, ignore_errors=True)  # Windows keeps a locked file

    def _start_watcher(self) -> subprocess.Popen[str]:
        with (self.folder / "watcher-stderr").open("wb") as err:
            return subprocess.Popen(
                [*python("helpers.running.watcher"), str(self.folder), *self._scope],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                env=_environment(),
                start_new_session=True,  # an interrupt of the caller must not reach it
                text=True,
            )


def _environment() -> dict[str, str]:
    """Return an environment in which a fresh interpreter finds this package."""
    root = str(Path(__file__).resolve().parents[2])
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = [root, *filter(os.path.isabs, entries)]  # others mean the working folder, as "" does
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}
