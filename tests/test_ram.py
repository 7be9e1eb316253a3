from pathlib import Path
from typing import Any

import psutil
import pytest
from made_up_machine import Machine

from helpers.system.cgroups import LIMIT, USAGE
from helpers.system.ram import (
    available_ram_bytes,
    machine_ram_bytes,
    physical_ram_bytes,
    swap_bytes,
)

KIB, MIB, GIB = 2**10, 2**20, 2**30


@pytest.fixture
def proc(machine: Machine) -> Path:
    """Return a /proc of a machine with 8 GiB, 6 of them available, and no cgroups."""
    (machine.proc / "meminfo").write_text(
        f"MemTotal:       {8 * GIB // KIB} kB\nMemFree:         {MIB} kB\n"
        f"MemAvailable:    {6 * GIB // KIB} kB\nSwapTotal:       2048 kB\nHugePages_Total:   0\n"
    )
    return machine.proc


def test_without_a_limit_the_ram_is_the_machines(proc: Path) -> None:
    assert machine_ram_bytes(str(proc)) == physical_ram_bytes(str(proc)) == 8 * GIB
    assert available_ram_bytes(str(proc)) == 6 * GIB
    assert swap_bytes(str(proc)) == 2 * MIB


NO_LIMIT_IN_V1 = "9223372036854771712"
CACHE = f"anon 1\ninactive_file {200 * MIB}\nactive_file {100 * MIB}\n"
TOTALS = f"inactive_file 7\ntotal_inactive_file {MIB}\ntotal_active_file {MIB}\n"


DOCKER = "/docker/ab12"  # as seen from inside a container: its own group is the top


@pytest.mark.parametrize(
    ("place", "groups", "ram", "available"),
    [
        (("/a/b", 2), [("a/b", f"{2 * GIB}", GIB, CACHE)], 2 * GIB, GIB + 300 * MIB),
        (
            ("/a/b", 2),  # the lowest limit above us counts
            [("a/b", "max", GIB, ""), ("a", f"{4 * GIB}", 3 * GIB, "inactive_file 0\n")],
            *(4 * GIB, GIB),
        ),
        (("/a", 2), [("a", f"{GIB}", GIB + MIB, "")], GIB, 0),  # over its limit
        ((DOCKER, 1, DOCKER), [("", f"{GIB}", 512 * MIB, TOTALS)], GIB, 514 * MIB),
        (("/a", 1), [("a", NO_LIMIT_IN_V1, 512 * MIB, "")], 8 * GIB, 6 * GIB),
        (("/a", 1, "/", "cpu"), [("a", f"{MIB}", 0, "")], 8 * GIB, 6 * GIB),
    ],
)
def test_the_lowest_limit_on_memory_is_the_ram_and_page_cache_counts_as_free(
    machine: Machine, proc: Path, place: tuple[Any, ...], groups: Any, ram: int, available: int
) -> None:
    machine.stand_in(*place)
    for inside, limit, used, stat in groups:
        group = machine.top / inside
        (group / LIMIT[place[1]]).write_text(f"{limit}\n")
        (group / USAGE[place[1]]).write_text(f"{used}\n")
        (group / "memory.stat").write_text(stat)
    assert (machine_ram_bytes(str(proc)), available_ram_bytes(str(proc))) == (ram, available)
    assert physical_ram_bytes(str(proc)) == 8 * GIB


def test_without_proc_psutil_tells(tmp_path: Path) -> None:
    assert machine_ram_bytes(str(tmp_path)) == psutil.virtual_memory().total
    assert 0 < available_ram_bytes(str(tmp_path)) <= psutil.virtual_memory().total
    assert swap_bytes(str(tmp_path)) == psutil.swap_memory().total


def test_this_machine_has_ram() -> None:
    assert 0 < available_ram_bytes() <= machine_ram_bytes() <= physical_ram_bytes()
