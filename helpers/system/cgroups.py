"""Memory cgroups, in both versions of the kernel's interface: their files, and where we stand.

Rules followed here: https://docs.kernel.org/admin-guide/cgroup-v2.html (and cgroup-v1/memory).
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# What the same thing is called in the two versions.
LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}
_SWAP = {1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}
USAGE = {1: "memory.usage_in_bytes", 2: "memory.current"}
_KILLS = {1: "memory.oom_control", 2: "memory.events"}
_RECLAIMABLE = {
    1: ("total_inactive_file", "total_active_file"),
    2: ("inactive_file", "active_file"),
}
_HUGE_PAGE = 2 << 20  # the most that is charged in one go


@dataclass(frozen=True)
class Group:
    """One memory cgroup. A file of it that is not there raises OSError."""

    path: Path
    version: int  # 1 or 2

    def admit(self, pid: int) -> None:
        """Move a process in. What it allocates from now on is charged here."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def set_limit(self, limit_bytes: int) -> None:
        """Let the kernel hold the group to so many bytes, without swap."""
        (self.path / LIMIT[self.version]).write_text(str(limit_bytes))
        swap = self.path / _SWAP[self.version]
        if swap.exists():  # absent where swap is not accounted
            swap.write_text(str(limit_bytes if self.version == 1 else 0))

    def limit_bytes(self) -> int | None:
        """Return the limit on this group itself, None where none is set."""
        text = (self.path / LIMIT[self.version]).read_text().strip()
        return int(text) if text.isdigit() else None  # "max"

    def charged_bytes(self) -> int:
        """Return what is charged now, page cache included."""
        return int((self.path / USAGE[self.version]).read_text())

    def held_bytes(self) -> int:
        """Return what is charged without page cache, which the kernel takes back first."""
        stat = self._numbers("memory.stat")
        reclaimable = sum(stat.get(name, 0) for name in _RECLAIMABLE[self.version])
        return max(self.charged_bytes() - reclaimable, 0)

    def kills(self) -> int:
        """Return how many processes the kernel has killed here, at this limit or one above."""
        return self._numbers(_KILLS[self.version]).get("oom_kill", 0)

    def was_full(self) -> bool:
        """Return whether the group has ever met its own limit."""
        if self.version == 1:  # its count of failures misses those of memory and swap together
            most = int((self.path / "memory.max_usage_in_bytes").read_text())
            return most >= (self.limit_bytes() or 0) - _HUGE_PAGE
        return self._numbers(_KILLS[2]).get("oom", 0) > 0

    def pids(self) -> list[int]:
        """Return the processes in the group now: none when the group has gone."""
        try:
            return [int(pid) for pid in (self.path / "cgroup.procs").read_text().split()]
        except OSError:
            return []

    def remove(self) -> bool:
        """Remove the group, and say whether it is gone. It must be empty."""
        for _ in range(50):  # a killed process leaves its group a moment after it dies
            with contextlib.suppress(OSError):
                self.path.rmdir()
            if not self.path.exists():
                return True
            time.sleep(0.02)
        return False

    def _numbers(self, name: str) -> dict[str, int]:
        lines = (line.split() for line in (self.path / name).read_text().splitlines())
        return {words[0]: int(words[1]) for words in lines}


def own_group(process: str) -> Group | None:
    """Return the memory cgroup that a process (its folder in /proc) stands in, as mounted here."""
    for version, _, folder in _own_folders(process):
        if (folder / LIMIT[version]).exists():  # a v2 root group has no limit to set
            return Group(folder, version)
    return None


def groups_above(process: str) -> Iterator[Group]:
    """Yield a process's own memory cgroup and every one above it."""
    for version, top, folder in _own_folders(process):
        for path in (folder, *folder.parents):
            if path.is_relative_to(top):
                yield Group(path, version)


def _own_folders(process: str) -> Iterator[tuple[int, Path, Path]]:
    """Yield version, mount point and own folder of each cgroup hierarchy that may limit memory."""
    try:
        names = Path(process, "cgroup").read_text().splitlines()
        mounts = Path(process, "mountinfo").read_text().splitlines()
    except OSError:  # not Linux
        return
    inside = {}  # by version: "4:memory:/docker/ab12" is version 1, "0::/user.slice" version 2
    for line in names:
        _, controllers, name = line.split(":", 2)
        if "memory" in controllers.split(","):
            inside[1] = name
        elif not controllers:
            inside[2] = name
    for mount in mounts:
        before, _, after = mount.partition(" - ")
        root, top = before.split()[3:5]
        kind, *_, options = after.split()
        version = 2 if kind == "cgroup2" else 1 if "memory" in options.split(",") else 0
        if version in inside:  # a container sees its own group as the top of the mount
            below = inside[version].removeprefix(root.rstrip("/")).lstrip("/")
            yield version, Path(top), Path(top, below)
