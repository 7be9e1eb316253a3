"""The other end of `run`: a fresh process that calls one function and says how it went.

It is started early and kept waiting with torch imported, so that a run need not wait for that.
Its input is the word "go" (it stands in its cgroup now), then the word "request" when its folder
has one: a pickled `Request`. It writes `result` there: a pickled `Result`. No file: it died.
"""

import contextlib
import faulthandler
import gc
import multiprocessing.spawn
import os
import pickle
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers.running.failures import describe, readers_traceback
from helpers.running.shared_state import STATE_VARIABLE, Phase, SharedState

WATCHER_SECONDS = 3.0  # to wait for a look of the watcher's; without one the run goes on


@dataclass(frozen=True)
class Request:
    """What to do, as far as it can be said without the lesson's own classes."""

    call: bytes  # the pickled (function, arguments): read after `path` is in place
    path: list[str]  # the caller's sys.path: lesson modules are on it
    folder: str  # to work in
    environment: dict[str, str]
    start_method: str  # of the DataLoader workers
    script: dict[str, Any] = field(default_factory=dict)  # the caller's, where the call needs it


@dataclass(frozen=True)
class Result:
    """How the call went."""

    value: Any = None
    error: str = ""  # "ValueError: ..." when it raised
    traceback: str = ""
    refused: bool = False  # it raised because the system would not give so much memory
    own_path: tuple[str, ...] = ()  # sys.path as it was before it became the caller's
    path: tuple[str, ...] = ()


def main() -> None:
    """Wait for a request, carry it out, and leave."""
    folder = Path(sys.argv[1])
    faulthandler.enable()  # a crash names the line on standard error
    if not sys.stdin.buffer.readline():
        return  # the caller has gone
    import torch.utils.data  # noqa: F401 - this is what the early start is for

    (folder / "warm").touch()
    if not sys.stdin.buffer.readline():
        return  # a sandbox that was never used
    request: Request = pickle.loads((folder / "request").read_bytes())
    state = SharedState.open(folder / "state")
    result = _carry_out(request, state, folder)
    state.ended = time.monotonic()
    _let_the_watcher_look(state, Phase.DONE)
    _leave(result, folder)


def _carry_out(request: Request, state: SharedState, folder: Path) -> Result:
    paths = tuple(sys.path), tuple(request.path)
    os.environ.clear()  # what the caller has deleted since we were started must not be here
    os.environ.update(request.environment)
    os.environ["PYTHONUNBUFFERED"] = "1"  # for workers: what they say is kept if they are killed
    state.owner = os.getpid()
    try:
        _prepare(request)  # a script that calls `run` here has forgotten its guard: see `pack`
        os.environ[STATE_VARIABLE] = str(folder / "state")
        function, arguments = pickle.loads(request.call)
        _let_the_watcher_look(state, Phase.READY)
        state.started = time.monotonic()
        return Result(function(*arguments))
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the result
        words, frames = describe(error), readers_traceback(error, without=__file__)
        refused = isinstance(error, MemoryError) or "can't allocate memory" in words  # torch's
        return Result(None, words, frames, refused, *paths)


def _prepare(request: Request) -> None:
    """Stand where the caller stands, as a spawned worker would.

    A script is run again, as `__mp_main__`; what must not be done meanwhile looks at `_inheriting`.
    """
    place = {"sys_path": request.path, "dir": request.folder, "start_method": request.start_method}
    process: Any = multiprocessing.current_process()
    process._inheriting = True
    try:
        multiprocessing.spawn.prepare(place | request.script)
    finally:
        del process._inheriting


def _let_the_watcher_look(state: SharedState, phase: Phase) -> None:
    """Stand still while the watcher takes an exact look."""
    state.phase = phase
    patience = time.monotonic() + WATCHER_SECONDS
    while state.phase == phase and time.monotonic() < patience:
        time.sleep(0.0005)


def _leave(result: Result, folder: Path) -> None:
    """Write the result whole or not at all, and end at once: workers are the watcher's to end."""
    try:
        content = pickle.dumps(result)
    except BaseException as error:  # noqa: BLE001 - any class may refuse, in its own way
        kind = type(result.value).__name__
        reason = f"the function returned a {kind} that cannot be pickled ({describe(error)})"
        content = pickle.dumps(Result(error=f"TypeError: {reason}: return numbers or arrays"))
    (folder / "result.part").write_bytes(content)
    (folder / "result.part").replace(folder / "result")
    gc.collect()  # a loader held by the frames of an exception ends its workers in good order
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):  # the function closed it, or put its own there
            stream.flush()
    os._exit(0)
