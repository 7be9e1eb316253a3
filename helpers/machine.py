"""Is this machine ready for the workshop? One row for each thing that lessons depend on."""

import multiprocessing
import os
import platform
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from helpers.disk import free_bytes
from helpers.memory import measure_name
from helpers.system.machine_report import MachineReport, Row, State
from helpers.system.ram import (
    available_ram_bytes,
    machine_ram_bytes,
    physical_ram_bytes,
    swap_bytes,
)
from helpers.units import format_bytes

PROJECT = "larger-than-ram"  # its requirements are read from what is installed: one place for them
PACKAGES = ("torch", "numpy", "h5py", "jupyterlab", "ipykernel", "ipywidgets")
ENOUGH_SHARED_BYTES = 256 * 2**20
_WHY_NOT = {
    "ipykernel": {"7.4.0": "7.4.0 holds the Stop button's click back until the cell ends: "}
}


def check_machine(
    folder: str | Path = ".",
    *,
    needed_bytes: int = 0,
    needed_ram_bytes: int = 0,
    enforced_by: str = "",
) -> MachineReport:
    """Return what this machine has, and what to fix before the first lesson.

    `needed_bytes` is free disk in `folder`, `needed_ram_bytes` free RAM; `enforced_by` says how a
    RAM budget will be enforced, as `helpers.enforcement()` tells. Nothing is changed or set.
    """
    rows = [*_versions(), _start_methods(), _cores(), _ram(needed_ram_bytes)]
    rows += [_disk(Path(folder), needed_bytes), *_shared_memory(Path("/dev/shm"))]  # noqa: S108
    rows += [*_enforcement(enforced_by), _measure(measure_name()), _swap()]
    return MachineReport(tuple(rows))


def _versions() -> Iterator[Row]:
    try:
        project = metadata.metadata(PROJECT)
        requirements = [Requirement(line) for line in metadata.requires(PROJECT) or ()]
    except metadata.PackageNotFoundError:
        hint = "run `make lab`, or `python -m pip install -e '.[workshop]'` in the project's folder"
        yield Row(PROJECT, "not installed", State.FIX, hint)
        return
    yield _python(platform.python_version(), project["Requires-Python"])
    for requirement in sorted(requirements, key=lambda each: each.name):
        if requirement.name in PACKAGES:
            yield _package(requirement)


def _python(version: str, wanted: str) -> Row:
    value = f"{version} on {platform.system()}"
    if SpecifierSet(wanted).contains(version, prereleases=True):
        return Row("Python", value)
    return Row("Python", value, State.FIX, f"the lessons are tested with Python {wanted}: use one")


def _package(requirement: Requirement) -> Row:
    name = requirement.name
    install = f"python -m pip install '{name}{requirement.specifier}'"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Row(name, "not installed", State.FIX, install)
    if requirement.specifier.contains(version, prereleases=True):
        return Row(name, version)
    why = _WHY_NOT.get(name, {}).get(version, f"the lessons need {requirement.specifier}: ")
    return Row(name, version, State.FIX, why + install)


def _start_methods() -> Row:
    first, *others = multiprocessing.get_all_start_methods()  # the first is this Python's default
    chosen = multiprocessing.get_start_method(allow_none=True) or first
    value = ", ".join([f"{first} (default)", *others])
    if chosen != first:
        return Row("start methods", value, State.NOTE, f"this process has been set to {chosen}")
    if first == "fork":
        hint = "from Python 3.14 the default on Linux is forkserver, which pickles the dataset"
        return Row("start methods", value, hint=hint)
    return Row("start methods", value, hint=f"{first} pickles the dataset for every worker")


def _cores() -> Row:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if (cores or 1) > 1:
        return Row("cores", str(cores))
    return Row("cores", "1", State.NOTE, "workers take turns: more of them will not be faster")


def _ram(needed: int) -> Row:
    available, total = available_ram_bytes(), machine_ram_bytes()
    limited = " (a limit set on this process)" if total < physical_ram_bytes() else ""
    value = f"{format_bytes(available)} free of {format_bytes(total)}{limited}"
    if available >= needed:
        return Row("RAM", value)
    hint = f"{format_bytes(needed)} needed: close programs or other notebooks, or give it more"
    return Row("RAM", value, State.FIX, hint)


def _disk(folder: Path, needed: int) -> Row:
    free = free_bytes(folder)
    value = f"{format_bytes(free)} free in {folder}"
    if free >= needed:
        return Row("disk", value)
    hint = f"{format_bytes(needed)} needed: free some, or choose a folder on another disk"
    return Row("disk", value, State.FIX, hint)


def _shared_memory(folder: Path) -> Iterator[Row]:
    if platform.system() != "Linux":  # elsewhere shared memory is not a file system
        return
    size = shutil.disk_usage(folder).total if folder.is_dir() else 0
    if size >= ENOUGH_SHARED_BYTES:
        yield Row(str(folder), format_bytes(size))
        return
    hint = (
        f"workers hand batches over here: give it {format_bytes(ENOUGH_SHARED_BYTES)} or more "
        "(Docker's 64 MiB: pass --shm-size=1g)"
    )
    yield Row(str(folder), format_bytes(size), State.FIX, hint)


def _enforcement(enforced_by: str) -> Iterator[Row]:
    if enforced_by == "watcher":
        hint = "no memory cgroup can be had: a process beside it ends an experiment over its budget"
        yield Row("RAM budget held by", enforced_by, State.NOTE, hint)
    elif enforced_by:
        yield Row("RAM budget held by", enforced_by)


def _measure(measure: str) -> Row:
    if measure == "PSS":
        return Row(
            "memory shown as", "PSS", hint="a page that processes share is divided among them"
        )
    hints = {
        "footprint": "anonymous memory, compressed or not; pages of files show as file-backed",
        "private bytes": "memory promised to one process alone, touched or not; "
        "shared memory shows as file-backed on this system",
        "USS": "private memory; shared memory shows as file-backed on this system",
    }
    hint = hints.get(
        measure, "this system shares nothing out: a page counts once for each process that maps it"
    )
    return Row("memory shown as", measure, State.NOTE, hint)


def _swap() -> Row:
    swap = swap_bytes()
    if not swap:
        return Row("swap", "none")
    hint = "without a budget, this machine slows down for minutes before a process dies"
    return Row("swap", format_bytes(swap), State.NOTE, hint)
