from pathlib import Path

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


def set_groups(proc: Path, line: str, mount: str = "/ {} rw - cgroup2 cgroup2 rw") -> Path:
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


def test_a_limit_of_version_2_is_the_ram_and_page_cache_counts_as_free(proc: Path) -> None:
    top = set_groups(proc, "0::/user.slice/job")
    stat = f"anon 1\ninactive_file {200 * MIB}\nactive_file {100 * MIB}\n"
    write_group(top / "user.slice/job", 2, str(2 * GIB), GIB, stat)
    assert machine_ram_bytes(str(proc)) == 2 * GIB
    assert physical_ram_bytes(str(proc)) == 8 * GIB
    assert available_ram_bytes(str(proc)) == GIB + 300 * MIB


def test_the_lowest_limit_above_us_counts(proc: Path) -> None:
    top = set_groups(proc, "0::/user.slice/job")
    write_group(top / "user.slice/job", 2, "max", GIB, "")
    write_group(top / "user.slice", 2, str(4 * GIB), 3 * GIB, "inactive_file 0\n")
    assert machine_ram_bytes(str(proc)) == 4 * GIB
    assert available_ram_bytes(str(proc)) == GIB


def test_a_limit_of_version_1_counts_as_seen_from_inside_a_container(proc: Path) -> None:
    top = set_groups(proc, "4:memory:/docker/ab12", "/docker/ab12 {} rw - cgroup cgroup rw,memory")
    stat = f"inactive_file 7\ntotal_inactive_file {MIB}\ntotal_active_file {MIB}\n"
    write_group(top, 1, str(GIB), 512 * MIB, stat)
    assert machine_ram_bytes(str(proc)) == GIB
    assert available_ram_bytes(str(proc)) == 514 * MIB


def test_no_limit_in_version_1_is_a_huge_number_that_changes_nothing(proc: Path) -> None:
    top = set_groups(proc, "4:memory:/job", "/ {} rw - cgroup cgroup rw,memory")
    write_group(top / "job", 1, "9223372036854771712", 512 * MIB, "")
    assert machine_ram_bytes(str(proc)) == 8 * GIB
    assert available_ram_bytes(str(proc)) == 6 * GIB


def test_a_group_over_its_limit_has_nothing_available(proc: Path) -> None:
    top = set_groups(proc, "0::/job")
    write_group(top / "job", 2, str(GIB), GIB + MIB, "")
    assert available_ram_bytes(str(proc)) == 0


def test_other_controllers_set_no_limit(proc: Path) -> None:
    top = set_groups(proc, "2:cpu:/job", "/ {} rw - cgroup cgroup rw,cpu")
    write_group(top / "job", 1, str(MIB), 0, "")
    assert machine_ram_bytes(str(proc)) == 8 * GIB


def test_without_proc_psutil_tells(tmp_path: Path) -> None:
    assert machine_ram_bytes(str(tmp_path)) == psutil.virtual_memory().total
    assert 0 < available_ram_bytes(str(tmp_path)) <= psutil.virtual_memory().total
    assert swap_bytes(str(tmp_path)) == psutil.swap_memory().total


def test_this_machine_has_ram() -> None:
    assert 0 < available_ram_bytes() <= machine_ram_bytes() <= physical_ram_bytes()
