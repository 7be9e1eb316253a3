"""How much RAM there is: the machine's, or less where a container or a cgroup sets a limit."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from helpers.system.cgroups import groups_above


@dataclass(frozen=True)
class Limit:
    """A limit that a memory cgroup sets on us and on all else below it."""

    size_bytes: int
    used_bytes: int  # without page cache, which the kernel takes back before it kills

    @property
    def room_bytes(self) -> int:
        """Return what may still be taken."""
        return max(self.size_bytes - self.used_bytes, 0)


def physical_ram_bytes(proc: str = "/proc") -> int:
    """Return the machine's RAM, whatever limit is set on us."""
    return _meminfo(proc).get("MemTotal") or _psutil_ram()[0]


def machine_ram_bytes(proc: str = "/proc") -> int:
    """Return the RAM that can be had at most: the machine's, or the lowest limit set on us."""
    return min([physical_ram_bytes(proc), *(limit.size_bytes for limit in limits(proc))])


def available_ram_bytes(proc: str = "/proc") -> int:
    """Return the RAM that can be had now without swapping; page cache counts as free."""
    available = _meminfo(proc).get("MemAvailable") or _psutil_ram()[1]
    return min([available, *(limit.room_bytes for limit in limits(proc))])


def limits(proc: str = "/proc") -> list[Limit]:
    """Return the limits on our own cgroup and on every group above it."""
    found = []
    for group in groups_above(f"{proc}/self"):
        # The top of version 2 has no limit; a container may not see every level.
        with contextlib.suppress(OSError):
            if (size := group.limit_bytes()) is not None:
                found.append(Limit(size, group.held_bytes()))
    return found


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
