"""A RAM budget: enforced by the kernel where a memory cgroup can be had, else by the watcher.

A cgroup counts what its processes touch first, page cache included. When it is full the kernel
frees page cache, and kills when there is none left to free. That is how a container or a batch
system enforces its limit, so it is what the workshop shows wherever it can.
"""

import contextlib
import itertools
import os
import shutil
import subprocess
from pathlib import Path

from helpers.system.cgroups import LIMIT
from helpers.system.cgroups import Group as Group  # a budget is held by one
from helpers.system.cgroups import own_group as own_group
from helpers.system.processes import is_alive

PREFIX = "larger-than-ram"
PROBE_SECONDS = 5.0  # for systemd to start a process that does nothing
_numbers = itertools.count(1)


def make_group(proc: str = "/proc") -> Group | None:
    """Make a memory cgroup below the process's own (v1) or beside it (v2), or return None.

    In v2 a group that holds processes cannot hand memory control to children, so the new group
    stands beside ours, in the same parent. None where the system does not let us.
    """
    own = own_group(f"{proc}/self")
    if own is None or watcher_wanted():
        return None
    parent = own.path if own.version == 1 else own.path.parent
    _sweep(parent)
    group = Group(parent / f"{PREFIX}-{os.getpid()}-{next(_numbers)}", own.version)
    try:
        group.path.mkdir()
    except OSError:  # not ours to write
        return None
    # A v2 process may move only where it may also write the common parent's list.
    lists = [group.path / "cgroup.procs", *([parent / "cgroup.procs"] if own.version == 2 else [])]
    if (group.path / LIMIT[own.version]).exists() and all(os.access(p, os.W_OK) for p in lists):
        return group
    group.remove()
    return None


def _sweep(parent: Path) -> None:
    """Remove empty groups whose maker was killed before he could note them in a run's folder."""
    for path in parent.glob(f"{PREFIX}-*-*"):
        maker = path.name.removeprefix(f"{PREFIX}-").split("-")[0]
        if maker.isdigit() and not is_alive(int(maker)):
            with contextlib.suppress(OSError):  # in use, or somebody else was quicker
                path.rmdir()


def scope_command() -> list[str]:
    """Return the words that start a command in a scope of the user's systemd, or [].

    The scope is a v2 group that belongs to the user; systemd removes it when it is empty.
    """
    if watcher_wanted() or not shutil.which("systemd-run"):
        return []
    scope = ["systemd-run", "--user", "--scope", "--quiet", "--collect"]
    name = f"--unit={PREFIX}-{os.getpid()}-{next(_numbers)}"
    try:
        probe = subprocess.run(  # what it prints counts: some callers never learn a status
            [*scope, f"{name}-probe", "echo", PREFIX],
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [*scope, name, "--"] if probe.stdout.strip() == PREFIX.encode() else []


def group_of(pid: int) -> Group | None:
    """Return the group a process was started in by `scope_command`, if its limit can be set."""
    group = own_group(f"/proc/{pid}")
    if group is None or group.version != 2 or not group.path.name.startswith(PREFIX):
        return None
    return group if os.access(group.path / LIMIT[2], os.W_OK) else None


def enforcement() -> str:
    """Return how a budget will be enforced on this machine: 'kernel (cgroup v2)' or 'watcher'."""
    group = make_group()
    if group is not None:
        group.remove()
        return f"kernel (cgroup v{group.version})"
    return "kernel (cgroup v2)" if scope_command() else "watcher"


def watcher_wanted() -> bool:
    """Return whether the environment asks for the watcher, and not for the best there is."""
    wanted = os.environ.get("LARGER_THAN_RAM_ENFORCER") or "auto"
    if wanted not in ("auto", "watcher"):
        raise ValueError(f"LARGER_THAN_RAM_ENFORCER is {wanted!r}: set it to 'auto' or 'watcher'")
    return wanted == "watcher"
