from pathlib import Path
from typing import Any

import psutil
import pytest

from helpers.system.ram import (
    available_ram_bytes,
    machine_ram_bytes,
    physical_ram_bytes,
    swap_bytes,
)

KIB, MIB, GIB = 2**10, 2**20, 2**30


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Return a /proc of a machine with 8 GiB, 6 of them available, and no cgroups."""
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text(
        f"MemTotal:       {8 * GIB // KIB} kB\nMemFree:         {MIB} kB\n"
        f"MemAvailable:    {6 * GIB // KIB} kB\nSwapTotal:       2048 kB\nHugePages_Total:   0\n"
    )
    return folder


def set_groups(proc: Path, line: str, mount: str) -> Path:
    """Stand in a cgroup, and return the folder that its hierarchy is mounted on."""
    top = proc.parent / "cgroup"
    (proc / "self" / "cgroup").write_text(f"5:devices:/\n{line}\n")
    (proc / "self" / "mountinfo").write_text(
        f"23 1 254:0 / / rw - ext4 /dev/vda rw\n31 23 0:28 {mount.format(top)}\n"
    )
    return top


def write_group(folder: Path, version: int, limit: str, used: int, stat: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = {1: ("limit_in_bytes", "usage_in_bytes"), 2: ("max", "current")}[version]
    (folder / f"memory.{names[0]}").write_text(f"{limit}\n")
    (folder / f"memory.{names[1]}").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(stat)


def test_without_a_limit_the_ram_is_the_machines(proc: Path) -> None:
    assert machine_ram_bytes(str(proc)) == physical_ram_bytes(str(proc)) == 8 * GIB
    assert available_ram_bytes(str(proc)) == 6 * GIB
    assert swap_bytes(str(proc)) == 2 * MIB


V1, V2 = "/ {} rw - cgroup cgroup rw,memory", "/ {} rw - cgroup2 cgroup2 rw"
NO_LIMIT_IN_V1 = "9223372036854771712"
CACHE = f"anon 1\ninactive_file {200 * MIB}\nactive_file {100 * MIB}\n"
TOTALS = f"inactive_file 7\ntotal_inactive_file {MIB}\ntotal_active_file {MIB}\n"


@pytest.mark.parametrize(
    ("line", "mount", "groups", "ram", "available"),
    [
        ("0::/a/b", V2, [("a/b", 2, f"{2 * GIB}", GIB, CACHE)], 2 * GIB, GIB + 300 * MIB),
        (
            "0::/a/b",
            V2,  # the lowest limit above us counts
            [("a/b", 2, "max", GIB, ""), ("a", 2, f"{4 * GIB}", 3 * GIB, "inactive_file 0\n")],
            *(4 * GIB, GIB),
        ),
        ("0::/a", V2, [("a", 2, f"{GIB}", GIB + MIB, "")], GIB, 0),  # over its limit
        (
            "4:memory:/docker/ab12",
            V1.replace("/", "/docker/ab12", 1),  # as seen from inside a container
            [("", 1, f"{GIB}", 512 * MIB, TOTALS)],
            *(GIB, 514 * MIB),
        ),
        ("4:memory:/a", V1, [("a", 1, NO_LIMIT_IN_V1, 512 * MIB, "")], 8 * GIB, 6 * GIB),
        ("2:cpu:/a", V1.replace("memory", "cpu"), [("a", 1, f"{MIB}", 0, "")], 8 * GIB, 6 * GIB),
    ],
)
def test_the_lowest_limit_on_memory_is_the_ram_and_page_cache_counts_as_free(
    proc: Path, line: str, mount: str, groups: Any, ram: int, available: int
) -> None:
    top = set_groups(proc, line, mount)
    for inside, *told in groups:
        write_group(top / inside, *told)
    assert (machine_ram_bytes(str(proc)), available_ram_bytes(str(proc))) == (ram, available)
    assert physical_ram_bytes(str(proc)) == 8 * GIB


def test_without_proc_psutil_tells(tmp_path: Path) -> None:
    assert machine_ram_bytes(str(tmp_path)) == psutil.virtual_memory().total
    assert 0 < available_ram_bytes(str(tmp_path)) <= psutil.virtual_memory().total
    assert swap_bytes(str(tmp_path)) == psutil.swap_memory().total


def test_this_machine_has_ram() -> None:
    assert 0 < available_ram_bytes() <= machine_ram_bytes() <= physical_ram_bytes()
