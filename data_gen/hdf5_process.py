"""HDF5 written in a process of its own, because it may not survive a full disk.

What HDF5 cannot write it keeps, tries again when the file is closed or the interpreter ends, and
crashes. So the process that writes tells of an error first, and then ends without closing anything.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

from data_gen.writers import Tick
from helpers.running.interrupts import interrupts_held

_PROBE_BYTES = 1 << 24  # at least what HDF5 writes in one go: as it fails, so does this
# Not `-m` and not multiprocessing: both may import the caller's main module, which may be a script
# without a guard.
_START = """import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from data_gen.hdf5_process import main
main()"""


def write_apart(write: Callable[..., None], path: Path, tick: Tick) -> None:
    """Call `write(path, tick=tick)` in a child that ends with its caller.

    `write` is a function of a module, or a partial of one. It is given the name of the file alone:
    `path` must be in a folder of its own, where the child works. Raises the child's error, the
    OSError that the disk gives to a further write, or ChildProcessError where the child died and
    the disk takes more.
    """
    request, words = path.with_name("request"), path.with_name("words")
    modules = [*filter(os.path.isabs, sys.path), str(Path(__file__).parents[1])]
    request.write_bytes(pickle.dumps(modules) + pickle.dumps((path.name, write)))
    with request.open("rb") as asked, words.open("wb") as said:
        child = subprocess.Popen(
            [sys.executable, "-c", _START],
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=said,
            # Once its caller was killed, somebody else may make this folder anew. The child stays
            # in the old one, and a relative name cannot reach the new file.
            cwd=path.parent,
            start_new_session=True,  # an interrupt is the caller's, who then ends the child
        )
    try:
        done = _follow(child, tick)
        child.wait()
        if not done:
            _probe(path)
            raise ChildProcessError(_last_words(child.returncode, words))
    finally:
        with interrupts_held(), child:
            child.kill()


def main() -> None:
    """Be the child: write what the request on standard input asks for, tell of it on the output."""
    tell = partial(_tell, sys.stdout.buffer)
    sys.stdout = sys.stderr  # what a library prints must not come between
    try:
        name, write = pickle.load(sys.stdin.buffer)
        write(Path(name), tick=tell)
        tell(None)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the caller raises it
        tell(error)
        os._exit(1)


def _tell(stream: BinaryIO, word: int | BaseException | None) -> None:
    """Tell how many more bytes are written, the error that ends the child, or None: all is done.

    A status would not do: nobody learns it in a program that ignores the end of its children.
    """
    try:
        stream.write(pickle.dumps(word))
        stream.flush()
    except OSError:  # the caller has gone, and nobody wants the file any more
        os._exit(1)


def _follow(child: "subprocess.Popen[bytes]", tick: Tick) -> bool:
    """Pass on what the child tells, and return whether it said in the end that all is done."""
    while True:
        try:
            word = pickle.load(child.stdout)  # type: ignore[arg-type]  # it is a pipe
        except (EOFError, pickle.UnpicklingError):  # the latter: killed in the middle of a word
            return False
        if word is None:
            return True
        if isinstance(word, BaseException):
            raise word
        tick(word)


def _probe(path: Path) -> None:
    """Let the disk say itself what it has against this file's growing."""
    with path.open("ab") as file:
        file.write(bytes(_PROBE_BYTES))
        file.flush()
        os.fsync(file.fileno())


def _last_words(status: int, words: Path) -> str:
    last = words.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"early, with status {status}"
    return (
        f"the process that writes HDF5 was ended {how}{': '.join(['', *last])}; if "
        "memory ran out, close other programs or pass fewer jobs, and make the data again"
    )
