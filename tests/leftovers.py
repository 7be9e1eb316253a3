"""What a test may leave behind: processes, shared memory, temporary files, cgroups.

Everything here can belong to somebody else as well, so a process counts when it descends from this
one or carries its mark in its environment, a cgroup by the process that made it, and anything else
only if it appeared during the test and stays.
"""

import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from helpers.budget import PREFIX
from helpers.system.cgroups import own_group
from helpers.system.processes import command_line

MARK = "LARGER_THAN_RAM_TESTS"  # an environment variable: children inherit it, orphans keep it
PATIENCE = 5.0  # for what is already ending
SHARED_MEMORY = Path("/dev/shm")
# One of each serves a Python process, and ends with it.
_SERVANTS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


def set_mark() -> None:
    """Mark all processes that this one starts from now on."""
    os.environ[MARK] = uuid.uuid4().hex


def traces() -> frozenset[str]:
    """Return everything of ours that there is now, one line for each thing."""
    return frozenset(_processes() | _shared_memory() | _temporary_files() | _groups())


def left_since(
    before: frozenset[str],
    *,
    allowed: Callable[[], frozenset[str]] = frozenset,
    patience: float = PATIENCE,
) -> list[str]:
    """Return what appeared since `before`, is not allowed, and does not go away."""
    started = time.monotonic()
    left = traces() - before - allowed()
    if any(f"file {SHARED_MEMORY}" in line for line in left):
        left -= _shared_memory_of_others()
    while left and time.monotonic() - started < patience:
        time.sleep(0.02)
        left &= traces() - allowed()
    return sorted(_described(line) for line in left)


def warm_spare() -> frozenset[str]:
    """Return the traces of the one sandbox that may wait for the next run."""
    module = sys.modules.get("helpers.running.warm_pool")
    sandbox = module.pool.waiting if module else None
    if sandbox is None:
        return frozenset()
    processes = {_line(pid) for pid in (sandbox.pid, sandbox.watcher.pid)}
    group = {_group_line(sandbox.group.path)} if sandbox.group else set()
    return frozenset(processes | {f"file {sandbox.folder}"} | group)


def _processes() -> set[str]:
    children = psutil.Process().children(recursive=True)
    pids = {child.pid for child in children if not _is_servant(child)}
    mark = f"{MARK}={os.environ.get(MARK)}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            marked = mark in path.read_bytes().split(b"\0")
        except OSError:  # it ended, or it is another user's
            continue
        if marked and not _is_servant(int(path.parent.name)):
            pids.add(int(path.parent.name))
    return {_line(pid) for pid in pids - {os.getpid()}}


def _is_servant(process: psutil.Process | int) -> bool:
    """Return whether this is the one helper of Python's own that outlives what it serves."""
    try:
        process = psutil.Process(process) if isinstance(process, int) else process
        mine = process.ppid() == os.getpid()
        return mine and any(name in " ".join(process.cmdline()) for name in _SERVANTS)
    except psutil.Error:
        return False


def _line(pid: int) -> str:
    return f"process {pid}"


def _described(line: str) -> str:
    kind, _, name = line.partition(" ")
    return f"{line}: {command_line(int(name))}" if kind == "process" else line


def _shared_memory() -> set[str]:
    me, found = getattr(os, "geteuid", lambda: None)(), set()
    for path in SHARED_MEMORY.glob("*"):
        with suppress(FileNotFoundError):
            if path.stat().st_uid == me:
                found.add(f"file {path}")
    return found


def _shared_memory_of_others() -> set[str]:
    """Return the shared memory that living processes which are not ours have mapped.

    By inode: the C library renames a semaphore after mapping it.
    """
    ours = {int(line.removeprefix("process ")) for line in _processes()} | {os.getpid()}
    inodes: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/maps"):
        if int(path.parent.name) not in ours:
            with suppress(OSError):  # it ended, or it is another user's
                lines = path.read_text().splitlines()
                inodes |= {int(line.split()[4]) for line in lines if f" {SHARED_MEMORY}/" in line}
    found = set()
    for path in SHARED_MEMORY.glob("*"):
        with suppress(OSError):
            if path.stat().st_ino in inodes:
                found.add(f"file {path}")
    return found


def _temporary_files() -> set[str]:
    return {f"file {path}" for path in Path(tempfile.gettempdir()).iterdir()}


def _groups() -> set[str]:
    own = own_group("/proc/self")
    if own is None:
        return set()
    parent = own.path if own.version == 1 else own.path.parent
    return {_group_line(path) for path in parent.glob(f"{PREFIX}-*") if _is_ours(path)}


def _is_ours(group: Path) -> bool:
    """Return whether this process made the group, or one that is gone."""
    maker = int(group.name.removeprefix(f"{PREFIX}-").split("-")[0])
    return maker == os.getpid() or not psutil.pid_exists(maker)


def _group_line(path: Path) -> str:
    return f"cgroup {path}"
