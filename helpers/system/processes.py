"""End an experiment's processes, all of them, and leave nothing of theirs behind."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

# A resource tracker ends by itself when the processes it serves are gone, and removes their
# semaphores from /dev/shm first. Killed, it would leave them there.
TRACKER = "multiprocessing.resource_tracker"
TRACKER_SECONDS = 5.0  # on a busy machine: in one second it got through three of fourteen


def end_all(
    session: int,
    known: Iterable[int] = (),
    *,
    listed: Callable[[], Iterable[int]] = tuple,
    patience: float = 8.0,
) -> bool:
    """Kill every process of a session, and say whether all are gone.

    `session` is the pid of the experiment's main process, which leads a session of its own, so a
    worker whose parent has died is found too. `known` are pids seen before, where the system has
    no sessions; `listed` names members another way, such as a cgroup's list.
    """
    started = time.monotonic()
    seen: set[int] = set()
    while time.monotonic() - started < patience:
        # A dying process may be on no list any more while it still gives its memory back.
        seen |= members(session, known) | set(listed())
        alive = [pid for pid in seen if _is_alive(pid)]
        if not alive:
            return True
        waited_enough = time.monotonic() - started > TRACKER_SECONDS
        for pid in alive:
            if waited_enough or not _is_tracker(pid):
                kill(pid)
        time.sleep(0.005)
    return False


def members(session: int, known: Iterable[int] = (), proc: Path = Path("/proc")) -> set[int]:
    """Return the living processes of a session; where there are no sessions, its descendants."""
    if (proc / "self" / "stat").exists():
        pids = (int(path.name) for path in proc.iterdir() if path.name.isdigit())
        return {pid for pid in pids if _session(pid, proc) == session}
    return _members_without_proc(session, known)


def kill(pid: int) -> None:
    """Kill one process. It may have ended already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows has only SIGTERM


def command_line(pid: int, proc: Path = Path("/proc")) -> str:
    """Return a process's command line, or '' when it has ended or the system does not tell."""
    try:
        words = (proc / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode("utf-8", "replace")


def _session(pid: int, proc: Path) -> int | None:
    """Return the session a living process belongs to. A zombie belongs to none."""
    try:
        # The name in parentheses may hold anything: what follows the last one is regular.
        state, _, _, session = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[:4]
    except (OSError, ValueError):  # it ended while we looked
        return None
    return None if state == "Z" else int(session)


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


def _is_alive(pid: int) -> bool:
    """Return whether a process still runs. A zombie does not."""
    if Path("/proc/self/stat").exists():
        return _session(pid, Path("/proc")) is not None
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _is_tracker(pid: int) -> bool:
    if Path("/proc/self/cmdline").exists():
        return TRACKER in command_line(pid)
    import psutil

    try:
        return TRACKER in " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return False
