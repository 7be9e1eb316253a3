"""End an experiment's processes, all of them, and leave nothing of theirs behind."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
# They end by themselves when the processes they serve are gone, and remove their semaphores and
# segments from /dev/shm first. Killed, they would leave them there.
TRACKERS = ("multiprocessing.resource_tracker", "torch_shm_manager")
TRACKER_SECONDS = 5.0  # on a busy machine: in one second it got through three of fourteen


def end_all(find: Callable[[], set[int]], seen: set[int], *, patience: float = 8.0) -> bool:
    """Kill every process that `find` names, again and again, and say whether all are gone.

    `seen` are pids to end as well; every pid that is found is added to it.
    """
    started = time.monotonic()
    while time.monotonic() - started < patience:
        # A dying process may be on no list any more while it still gives its memory back.
        seen |= find()
        alive = [pid for pid in seen if is_alive(pid)]
        if not alive:
            return True
        waited_enough = time.monotonic() - started > TRACKER_SECONDS
        for pid in alive:
            if waited_enough or not _is_tracker(pid):
                kill(pid)
        time.sleep(0.005)
    return False


def members(
    session: int,
    *,
    mark: str = "",
    adopter: int = 0,
    known: Iterable[int] = (),
    proc: Path = Path("/proc"),
) -> set[int]:
    """Return the living processes of one experiment.

    They are those of the `session` that its main process leads, so a worker whose parent has died
    is found too; those with `mark` in the environment they were started with; and those below
    `adopter`, which inherits orphans. Where the system tells none of this: the descendants of the
    main process, and those of the `known` that live.
    """
    if not (proc / "self" / "stat").exists():
        return _members_without_proc(session, known)
    living = places(proc)
    found = {pid for pid, (_, leader) in living.items() if session and leader == session}
    found |= {pid for pid in living if mark and mark.encode() in _environment(pid, proc)}
    new = {pid for pid, (parent, _) in living.items() if adopter and parent == adopter}
    while new:
        found |= new
        new = {pid for pid, (parent, _) in living.items() if parent in new}
    return found


def places(proc: Path) -> dict[int, tuple[int, int]]:
    """Return the parent and the session of every living process."""
    pids = (int(path.name) for path in proc.iterdir() if path.name.isdigit())
    return {pid: place for pid in pids if (place := _place(pid, proc))}


def adopt_orphans() -> None:
    """Let this process be the parent of every descendant whose own parent ends (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill(pid: int) -> None:
    """Kill one process. It may have ended already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows has only SIGTERM


def command_line(pid: int, proc: Path = Path("/proc")) -> str:
    """Return a process's command line, or '' when it has ended or the system does not tell."""
    if not (proc / "self" / "cmdline").exists():
        import psutil  # only where there is no /proc

        with contextlib.suppress(psutil.Error):
            return " ".join(psutil.Process(pid).cmdline())
    with contextlib.suppress(OSError):
        words = (proc / str(pid) / "cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode("utf-8", "replace")
    return ""


def _place(pid: int, proc: Path) -> tuple[int, int] | None:
    """Return the parent and the session of a living process. A zombie is nowhere.

    Nor is a process in state X, which its parent is just collecting.
    """
    try:
        # The name in parentheses may hold anything: what follows the last one is regular.
        stat = (proc / str(pid) / "stat").read_text().rpartition(")")[2]
        state, parent, _, session = stat.split()[:4]
    except (OSError, ValueError):  # it ended while we looked
        return None
    return None if state in "ZX" else (int(parent), int(session))


def _environment(pid: int, proc: Path) -> bytes:
    try:
        return (proc / str(pid) / "environ").read_bytes()
    except OSError:  # it has ended, or it is another user's
        return b""


def _members_without_proc(session: int, known: Iterable[int]) -> set[int]:
    import psutil  # only where there is no /proc

    found = {pid for pid in known if psutil.pid_exists(pid)}
    with contextlib.suppress(psutil.Error):
        found |= {child.pid for child in psutil.Process(session).children(recursive=True)}
    if psutil.pid_exists(session):
        found.add(session)
    for pid in psutil.pids() if hasattr(os, "getsid") else ():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == session:
                found.add(pid)
    return found


def is_alive(pid: int) -> bool:
    """Return whether a process still runs. A zombie does not."""
    if Path("/proc/self/stat").exists():
        return _place(pid, Path("/proc")) is not None
    import psutil

    try:
        return psutil.Process(pid).status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.Error:
        return False


def _is_tracker(pid: int) -> bool:
    return any(name in command_line(pid) for name in TRACKERS)
