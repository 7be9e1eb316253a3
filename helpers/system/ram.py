"""How much RAM there is: the machine's, or less where a container or a cgroup sets a limit."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_RECLAIMABLE = {"total_inactive_file", "total_active_file"}, {"inactive_file", "active_file"}


@dataclass(frozen=True)
class _Group:
    """A memory cgroup with a limit on itself and all below it."""

    limit_bytes: int
    used_bytes: int  # without page cache, which the kernel takes back before it kills


def physical_ram_bytes(proc: str = "/proc") -> int:
    """Return the machine's RAM, whatever limit is set on us."""
    return _meminfo(proc).get("MemTotal") or _psutil_ram()[0]


def machine_ram_bytes(proc: str = "/proc") -> int:
    """Return the RAM that can be had at most: the machine's, or the lowest limit set on us."""
    return min([physical_ram_bytes(proc), *(group.limit_bytes for group in _limits(proc))])


def available_ram_bytes(proc: str = "/proc") -> int:
    """Return the RAM that can be had now without swapping; page cache counts as free."""
    available = _meminfo(proc).get("MemAvailable") or _psutil_ram()[1]
    rooms = (max(group.limit_bytes - group.used_bytes, 0) for group in _limits(proc))
    return min([available, *rooms])


def swap_bytes(proc: str = "/proc") -> int:
    """Return the size of the swap space, 0 where there is none."""
    known = _meminfo(proc).get("SwapTotal")
    if known is not None:
        return known
    import psutil

    return int(psutil.swap_memory().total)


def _psutil_ram() -> tuple[int, int]:
    import psutil  # only where there is no /proc

    ram = psutil.virtual_memory()
    return int(ram.total), int(ram.available)


def _meminfo(proc: str) -> dict[str, int]:
    try:
        lines = Path(proc, "meminfo").read_text().splitlines()
    except OSError:  # not Linux
        return {}
    fields = (line.split() for line in lines)
    return {name.rstrip(":"): int(size) * 1024 for name, size, *_ in fields}


def _limits(proc: str) -> list[_Group]:
    """Return the limits on our own cgroup and on every group above it."""
    groups = (
        _group(path, version)
        for version, top, folder in own_memory_folders(f"{proc}/self")
        for path in (folder, *folder.parents)
        if path.is_relative_to(top)
    )
    return [group for group in groups if group is not None]


def own_memory_folders(process: str) -> Iterator[tuple[int, Path, Path]]:
    """Yield version, mount point and own folder of each cgroup hierarchy that may limit memory.

    `process` is a process's folder in /proc.
    """
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


def _group(folder: Path, version: int) -> _Group | None:
    limit, usage = {
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        2: ("memory.max", "memory.current"),
    }[version]
    try:
        size = (folder / limit).read_text().strip()
        if not size.isdigit():  # "max": no limit
            return None
        used = int((folder / usage).read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except OSError:  # the top of version 2 has no limit; a container may not see every level
        return None
    reclaimable = sum(int(stat.get(name, 0)) for name in _RECLAIMABLE[version - 1])
    return _Group(int(size), max(used - reclaimable, 0))
