"""Fresh Python processes that import what the tests import, and what they say."""

import os
import subprocess
import sys
from typing import Any


class Talking(subprocess.Popen[str]):
    """A process that runs a program text, hears lines and says lines."""

    def __init__(self, code: str, *words: object, **options: Any) -> None:
        command = [sys.executable, "-c", code, *map(str, words)]
        env = options.pop("env", os.environ) | {"PYTHONPATH": os.pathsep.join(sys.path)}
        pipe = subprocess.PIPE
        super().__init__(command, stdin=pipe, stdout=pipe, text=True, env=env, **options)

    def tell(self, line: str) -> None:
        assert self.stdin is not None
        self.stdin.write(f"{line}\n")
        self.stdin.flush()

    def hear(self) -> str:
        """Return the next line without its end; "" where the process has ended."""
        assert self.stdout is not None
        return self.stdout.readline().rstrip("\n")


def said_by(code: str, *words: object, **options: Any) -> str:
    """Return what a program says in all. Raises CalledProcessError where it fails."""
    with Talking(code, *words, **options) as process:
        said, _ = process.communicate(timeout=200)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, code, said)
    return said.strip()
