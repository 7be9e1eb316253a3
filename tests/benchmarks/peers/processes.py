"""Call a function in a fresh process: in an environment and a memory group, ended whatever it does.

Each has a session, a home and a temporary folder of its own, which go with it. Each peer has an
environment, because they want different versions of the same packages.
"""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from helpers.budget import Group, make_group
from helpers.system.processes import end_all, members

_SHARED = Path("/dev/shm")
PROJECT = Path(__file__).resolve().parents[3]
_COMMON = "torch==2.13.0 psutil==7.2.2 tqdm==4.70.1"  # torch, and what data_gen imports
# Nothing is imported before it is told what to do: by then it stands in its memory group, and what
# the imports take is charged there.
_CHILD = "import pickle, sys; f, arguments = pickle.load(sys.stdin.buffer); f(*arguments)"
_LEAVING = 10  # seconds: libraries remove their shared memory on the way out; some find no way out


class CannotRunError(Exception):
    """Somebody who cannot be measured here. The message is the reason that the table gives."""


def find_python(pins: str, folder: Path) -> Path:
    """Return the Python of an environment with these packages, made now if it is not there."""
    if not pins:
        return Path(sys.executable)
    home, wanted = folder / pins.split("==")[0], f"{_COMMON} {pins}"
    python, stamp = home / "bin" / "python", home / "pins.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        sys.stderr.write(f"making the environment of {home.name}\n")
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", *wanted.split()]
        done = subprocess.run(pip, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            shutil.rmtree(home)
            raise CannotRunError(done.stderr.strip().splitlines()[-1][:160])
        stamp.write_text(wanted)
    return python


def in_child(
    function: Callable[..., Any],
    *arguments: Any,
    seconds: float,
    python: Path = Path(sys.executable),
    limit_bytes: int = 0,
) -> Any:
    """Return what a function returns in a fresh process, inside a kernel memory limit if given.

    Raises CannotRunError, which says how it ended, where there is no answer within `seconds`.
    """
    with ExitStack() as leaving:
        leaving.callback(_remove_shared_memory, but=set(_SHARED.glob("torch_*_*")))
        folder = TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True)
        home = Path(leaving.enter_context(folder))  # its name is short, for sockets
        group = _make_group(limit_bytes, leaving) if limit_bytes else None
        process = _start(python, home)
        leaving.callback(process.wait)
        leaving.callback(end_all, partial(members, process.pid), {process.pid})
        if group:
            group.admit(process.pid)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(pickle.dumps((_answer, (home, function, arguments))), seconds)
        if (home / "answer").exists():
            return pickle.loads((home / "answer").read_bytes())
        killed = "killed by the kernel, over its memory limit: " if group and group.kills() else ""
        raise CannotRunError(killed + _how_it_ended(home, process.poll()))


def _make_group(limit_bytes: int, leaving: ExitStack) -> Group:
    group = make_group()
    if not group:
        raise CannotRunError("no memory group can be made here, so the kernel holds no limit")
    leaving.callback(group.remove)
    group.set_limit(limit_bytes)
    return group


def _start(python: Path, home: Path) -> subprocess.Popen[bytes]:
    ours = {name: str(home) for name in ("HOME", "TMPDIR", "HF_HOME")}
    ours |= {"PYTHONPATH": f"{PROJECT}:{PROJECT}/tests", "HF_HUB_OFFLINE": "1"}
    with (home / "last_words").open("w") as words:
        how: dict[str, Any] = {"env": os.environ | ours, "cwd": PROJECT, "start_new_session": True}
        asked, command = subprocess.PIPE, [str(python), "-c", _CHILD]
        return subprocess.Popen[bytes](command, stdin=asked, stdout=words, stderr=words, **how)


def _answer(home: Path, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Call the function, in the process, and leave its answer; a traceback goes to its words."""
    try:
        (home / "answer").write_bytes(pickle.dumps(function(*arguments)))
    finally:
        signal.alarm(_LEAVING)


def _how_it_ended(home: Path, status: int | None) -> str:
    if status is None or status < 0:
        return f"ended by {signal.Signals(-status).name}" if status else "no answer in time"
    words = (home / "last_words").read_text(errors="replace").splitlines()
    return [f"ended with status {status}", *(line for line in words if "Error" in line)][-1][:200]


def _remove_shared_memory(but: set[Path]) -> None:
    """Remove what a torch worker (torch_PID_...) left that was killed in handing it over."""
    for path in set(_SHARED.glob("torch_*_*")) - but:
        if not Path("/proc", path.name.split("_")[1]).exists():
            path.unlink(missing_ok=True)
