"""The child as its parent, the watcher, has it: started, listened to, and waited for.

The watcher is the parent, and not the caller of `run`, so that nothing in the caller's process can
take the exit code away, and so that orphans come to somebody who ends them.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import IO

from helpers.running.run_folder import RunFolder
from helpers.system.processes import adopt_orphans

LAST_BYTES = 20_000  # of what the child writes to each stream: enough for any traceback
_CHUNK = 1 << 16  # what a pipe holds
_LAST_WORDS_SECONDS = 1.0  # for a stream to end when everybody who could write is gone


class ChildProcess:
    """A child that waits for its request, or works on it."""

    def __init__(self, folder: RunFolder, scope: list[str], ended: Callable[[], None]) -> None:
        if hasattr(signal, "SIGCHLD"):  # a caller that ignores it hands that on
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        adopt_orphans()
        self.folder, self.code = folder, None
        self._tell = ended
        self._process = subprocess.Popen(
            [*scope, *python("helpers.running.child"), str(folder.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(folder.temporary)},
            start_new_session=True,
        )
        self.pid = self._process.pid
        folder.note_pid(self.pid)
        group = folder.group()
        if group is not None:
            group.admit(self.pid)  # before it imports: torch counts, too
        self._streams = {
            name: _LastBytes(stream)
            for name, stream in (("stdout", self._process.stdout), ("stderr", self._process.stderr))
            if stream is not None
        }
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        self._waiter.start()
        self.tell("go")

    code: int | None  # the exit code as `Popen` has it, None while it runs

    def tell(self, word: str) -> None:
        """Say a word on the child's standard input."""
        try:
            self._process.stdin.write(word.encode() + b"\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
        except BrokenPipeError:  # it died: whoever waits for it will see
            pass

    def keep_last_words(self) -> None:
        """Write the last bytes of each stream into the folder. All writers must be gone."""
        self._waiter.join(_LAST_WORDS_SECONDS)
        for name, stream in self._streams.items():
            (self.folder.path / name).write_bytes(stream.end())

    def _wait(self) -> None:
        """Wait for the child, and for every orphan that comes to us."""
        if sys.platform == "win32":
            self._end(self._process.wait())
            return
        while True:
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:  # nobody is left
                return
            if pid == self.pid:
                self._end(os.waitstatus_to_exitcode(status))

    def _end(self, code: int) -> None:
        self.code = self._process.returncode = code
        self._tell()


class _LastBytes:
    """Reads a stream to its end and keeps the last bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._kept = stream, b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while chunk := os.read(self._stream.fileno(), _CHUNK):
            self._kept = (self._kept + chunk)[-LAST_BYTES:]
            if len(chunk) == _CHUNK:  # a flood: let the readings of memory go first
                time.sleep(0.001)

    def end(self) -> bytes:
        self._thread.join(_LAST_WORDS_SECONDS)
        return self._kept


def python(module: str) -> list[str]:
    """Return the words that run a module's `main`."""
    # -P: a file beside the notebook must not stand in for a module of ours, whoever wrote it.
    # Not `-m`: a spawned worker would import the child's main module again.
    return [sys.executable, "-P", "-c", f"from {module} import main; main()"]
