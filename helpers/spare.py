"""The processes of one experiment, started before they are needed and put away afterwards.

Importing torch takes seconds, so a child waits with that done. A spare belongs to one run only:
every experiment starts in a process that has done nothing before.
"""

import atexit
import contextlib
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from helpers.board import Board
from helpers.budget import Group, group_of, make_group, scope_command
from helpers.child import Order
from helpers.processes import end_all

FOLDER_PREFIX = "larger-than-ram-run-"
IMPORT_SECONDS = 120.0  # to import torch from a cold or a network disk


class Spare:
    """A waiting child and a waiting watcher, with a folder and, where it can be had, a cgroup."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
        self.board = Board.create(self.folder / "board")
        self.group: Group | None = make_group()
        scope = scope_command() if self.group is None else []
        self._in_scope = bool(scope)
        with (self.folder / "stdout").open("wb") as out, (self.folder / "stderr").open("wb") as err:
            self.process = subprocess.Popen(
                [*scope, *_python("helpers.child"), str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env=_environment(),
                start_new_session=True,  # an interrupt of the kernel must not reach it
            )
        with (self.folder / "watcher-stderr").open("wb") as err:
            self.watcher = subprocess.Popen(
                _python("helpers.watcher"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                env=_environment(),
                start_new_session=True,
                text=True,
            )
        if self.group is not None:
            self.group.admit(self.process.pid)  # before it imports: torch counts, too
        self._send(b"go\n")

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

    def is_alive(self) -> bool:
        """Return whether both processes still wait."""
        return self.process.poll() is None and self.watcher.poll() is None

    def give(self, order: Order) -> None:
        """Hand the order to the child."""
        self._send(pickle.dumps(order))

    def read(self, name: str, lines: int = 40) -> str:
        """Return the last lines that were written to "stdout" or "stderr"."""
        try:
            text = (self.folder / name).read_text("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text[-20_000:].splitlines()[-lines:])

    def put_away(self) -> None:
        """End both processes and remove the folder and the cgroup. May be called again."""
        for process in (self.process, self.watcher):
            with contextlib.suppress(OSError):  # its input may be closed already
                process.stdin.close()  # type: ignore[union-attr]
        self._wait(self.watcher)
        if self.process.poll() is None:
            end_all(self.process.pid)
        self._wait(self.process)
        with contextlib.suppress(OSError):
            self.watcher.stdout.close()  # type: ignore[union-attr]
        if self.group is not None:
            self.group.remove()
        self.board.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _send(self, words: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # it died: whoever waits for it will see
            self.process.stdin.write(words)  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]

    @staticmethod
    def _wait(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Bench:
    """Keeps one spare warm for the next run."""

    def __init__(self) -> None:
        self._spare: Spare | None = None
        self._owner = 0

    def warm_up(self) -> None:
        """Start a spare, unless one waits already. Returns at once."""
        if self._spare is not None and self._owner == os.getpid() and self._spare.is_alive():
            return
        self.clear()
        if self._owner != os.getpid():
            sweep()
            atexit.register(self.clear)
        self._spare, self._owner = Spare(), os.getpid()

    def take(self) -> Spare:
        """Return the spare, warm. It belongs to the caller, who puts it away."""
        self.warm_up()
        spare, self._spare = self._spare, None
        assert spare is not None
        try:
            spare.wait_until_warm()
        except BaseException:
            spare.put_away()
            raise
        return spare

    def clear(self) -> None:
        """Put the spare away."""
        spare, self._spare = self._spare, None
        if spare is not None and self._owner == os.getpid():  # a fork's spare is its parent's
            spare.put_away()


bench = Bench()


def sweep() -> None:
    """Remove folders of runs whose kernel was killed together with its watcher."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*-*"):
        maker = folder.name.removeprefix(FOLDER_PREFIX).split("-")[0]
        if maker.isdigit() and not _exists(int(maker)):
            shutil.rmtree(folder, ignore_errors=True)


def _exists(pid: int) -> bool:
    import psutil  # late: most runs never need it

    return bool(psutil.pid_exists(pid))


def _python(module: str) -> list[str]:
    # Not `-m`: a spawned worker would import the child's main module again.
    return [sys.executable, "-c", f"from {module} import main; main()"]


def _environment() -> dict[str, str]:
    """Return an environment in which a fresh interpreter finds this package."""
    root = str(Path(__file__).resolve().parent.parent)
    path = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}
