"""A RAM budget: enforced by the kernel where a memory cgroup can be had, else by the watcher.

A cgroup counts what its processes touch first, page cache included. When it is full the kernel
frees page cache, and kills when there is none left to free. That is how a container or a batch
system enforces its limit, so it is what the workshop shows wherever it can.

Rules followed here: https://docs.kernel.org/admin-guide/cgroup-v2.html (and cgroup-v1/memory).
"""

import contextlib
import itertools
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from helpers.system.ram import own_memory_folders

PREFIX = "larger-than-ram"
PROBE_SECONDS = 5.0  # for systemd to start a process that does nothing
_numbers = itertools.count(1)

# What the same thing is called in the two versions of the interface.
_LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}
_SWAP = {1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}
_USAGE = {1: "memory.usage_in_bytes", 2: "memory.current"}
_KILLS = {1: "memory.oom_control", 2: "memory.events"}


@dataclass(frozen=True)
class Group:
    """One memory cgroup of our own, made for one experiment."""

    path: Path
    version: int  # 1 or 2

    def admit(self, pid: int) -> None:
        """Move a process in. What it allocates from now on is charged here."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def set_limit(self, limit_bytes: int) -> None:
        """Let the kernel hold the group to so many bytes, without swap."""
        (self.path / _LIMIT[self.version]).write_text(str(limit_bytes))
        swap = self.path / _SWAP[self.version]
        if swap.exists():  # absent where swap is not accounted
            swap.write_text(str(limit_bytes if self.version == 1 else 0))

    def charged_bytes(self) -> int:
        """Return what is charged now, page cache included."""
        return int((self.path / _USAGE[self.version]).read_text())

    def kills(self) -> int:
        """Return how many processes the kernel has killed here for want of memory."""
        for line in (self.path / _KILLS[self.version]).read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
        return 0

    def pids(self) -> list[int]:
        """Return the processes in the group now: none when the group has gone."""
        try:
            return [int(pid) for pid in (self.path / "cgroup.procs").read_text().split()]
        except OSError:
            return []

    def remove(self) -> bool:
        """Remove the group, and say whether it is gone. It must be empty."""
        for _ in range(50):  # a killed process leaves its group a moment after it dies
            try:
                self.path.rmdir()
            except FileNotFoundError:
                return True
            except OSError:
                time.sleep(0.02)
            else:
                return True
        return False


def make_group(proc: str = "/proc") -> Group | None:
    """Make a memory cgroup below the process's own (v1) or beside it (v2), or return None.

    In v2 a group that holds processes cannot hand memory control to children, so the new group
    stands beside ours, in the same parent. None where the system does not let us.
    """
    own = own_group(f"{proc}/self")
    if own is None or watcher_wanted():
        return None
    parent = own.path if own.version == 1 else own.path.parent
    sweep(parent)
    group = Group(parent / f"{PREFIX}-{os.getpid()}-{next(_numbers)}", own.version)
    try:
        group.path.mkdir()
    except OSError:  # not ours to write
        return None
    # A v2 process may move only where it may also write the common parent's list.
    lists = [group.path / "cgroup.procs", *([parent / "cgroup.procs"] if own.version == 2 else [])]
    if (group.path / _LIMIT[own.version]).exists() and all(os.access(p, os.W_OK) for p in lists):
        return group
    group.remove()
    return None


def scope_command() -> list[str]:
    """Return the words that start a command in a scope of the user's systemd, or [].

    The scope is a v2 group that belongs to the user; systemd removes it when it is empty.
    """
    if watcher_wanted() or not shutil.which("systemd-run"):
        return []
    scope = ["systemd-run", "--user", "--scope", "--quiet", "--collect"]
    name = f"--unit={PREFIX}-{os.getpid()}-{next(_numbers)}"
    try:
        probe = subprocess.run(
            [*scope, f"{name}-probe", "true"],
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [*scope, name, "--"] if probe.returncode == 0 else []


def group_of(pid: int) -> Group | None:
    """Return the group a process was started in by `scope_command`, if its limit can be set."""
    group = own_group(f"/proc/{pid}")
    if group is None or group.version != 2 or not group.path.name.startswith(PREFIX):
        return None
    return group if os.access(group.path / _LIMIT[2], os.W_OK) else None


def enforcement() -> str:
    """Return how a budget will be enforced on this machine: 'kernel (cgroup v2)' or 'watcher'."""
    group = make_group()
    if group is not None:
        group.remove()
        return f"kernel (cgroup v{group.version})"
    return "kernel (cgroup v2)" if scope_command() else "watcher"


def sweep(parent: Path) -> None:
    """Remove empty groups of ours whose maker ended without removing them."""
    for path in parent.glob(f"{PREFIX}-*-*"):
        maker = path.name.removeprefix(f"{PREFIX}-").split("-")[0]
        if maker.isdigit() and not Path(f"/proc/{maker}").exists():
            with contextlib.suppress(OSError):  # still in use, or somebody else was quicker
                path.rmdir()


def watcher_wanted() -> bool:
    """Return whether the environment asks for the watcher, and not for the best there is."""
    wanted = os.environ.get("LARGER_THAN_RAM_ENFORCER") or "auto"
    if wanted not in ("auto", "watcher"):
        raise ValueError(f"LARGER_THAN_RAM_ENFORCER is {wanted!r}: set it to 'auto' or 'watcher'")
    return wanted == "watcher"


def own_group(process: str) -> Group | None:
    """Return the memory cgroup that a process (its folder in /proc) stands in, as mounted here."""
    for version, _, folder in own_memory_folders(process):
        if (folder / _LIMIT[version]).exists():  # a v2 root group has no limit to set
            return Group(folder, version)
    return None
