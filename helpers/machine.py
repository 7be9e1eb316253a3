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
    ("ipykernel", "7.4.0"): "7.4.0 holds the Stop button's click back until the cell ends: "
}
_MEASURES = {
    "PSS": "a page that processes share is divided among them",
    "footprint": "anonymous memory, compressed or not; pages of files show as file-backed",
    "private bytes": "memory promised to one process alone, touched or not; "
    "shared memory shows as file-backed on this system",
    "USS": "private memory; shared memory shows as file-backed on this system",
    "RSS": "this system shares nothing out: a page counts once for each process that maps it",
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
    rows.append(_disk(Path(folder), needed_bytes))
    if platform.system() == "Linux":  # elsewhere shared memory is not a file system
        rows.append(_shared_memory(Path("/dev/shm")))  # noqa: S108
    if enforced_by:
        rows.append(_enforcement(enforced_by))
    return MachineReport((*rows, _measure(measure_name()), _swap()))


def _row(what: str, value: str, ok: bool, hint: str, otherwise: State = State.FIX) -> Row:
    return Row(what, value) if ok else Row(what, value, otherwise, hint)


def _versions() -> Iterator[Row]:
    try:
        project = metadata.metadata(PROJECT)
        requirements = [Requirement(line) for line in metadata.requires(PROJECT) or ()]
    except metadata.PackageNotFoundError:
        hint = "run `make lab`, or `python -m pip install -e '.[workshop]'` in the project's folder"
        yield Row(PROJECT, "not installed", State.FIX, hint)
        return
    version, wanted = platform.python_version(), project["Requires-Python"]
    tested = SpecifierSet(wanted).contains(version, prereleases=True)
    hint = f"the lessons are tested with Python {wanted}: use one"
    yield _row("Python", f"{version} on {platform.system()}", tested, hint)
    for requirement in sorted(requirements, key=lambda each: each.name):
        if requirement.name in PACKAGES:
            yield _package(requirement)


def _package(requirement: Requirement) -> Row:
    name, wanted = requirement.name, requirement.specifier
    install = f"python -m pip install '{name}{wanted}'"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Row(name, "not installed", State.FIX, install)
    why = _WHY_NOT.get((name, version), f"the lessons need {wanted}: ")
    return _row(name, version, wanted.contains(version, prereleases=True), why + install)


def _start_methods() -> Row:
    first, *others = multiprocessing.get_all_start_methods()  # the first is this Python's default
    chosen = multiprocessing.get_start_method(allow_none=True) or first
    value = ", ".join([f"{first} (default)", *others])
    if chosen != first:
        return Row("start methods", value, State.NOTE, f"this process has been set to {chosen}")
    hint = f"{first} pickles the dataset for every worker"
    if first == "fork":
        hint = "from Python 3.14 the default on Linux is forkserver, which pickles the dataset"
    return Row("start methods", value, hint=hint)


def _cores() -> Row:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    hint = "workers take turns: more of them will not be faster"
    return _row("cores", str(cores or 1), (cores or 1) > 1, hint, State.NOTE)


def _ram(needed: int) -> Row:
    available, total = available_ram_bytes(), machine_ram_bytes()
    limited = " (a limit set on this process)" if total < physical_ram_bytes() else ""
    value = f"{format_bytes(available)} free of {format_bytes(total)}{limited}"
    hint = f"{format_bytes(needed)} needed: close programs or other notebooks, or give it more"
    return _row("RAM", value, available >= needed, hint)


def _disk(folder: Path, needed: int) -> Row:
    free = free_bytes(folder)
    hint = f"{format_bytes(needed)} needed: free some, or choose a folder on another disk"
    return _row("disk", f"{format_bytes(free)} free in {folder}", free >= needed, hint)


def _shared_memory(folder: Path) -> Row:
    size = shutil.disk_usage(folder).total if folder.is_dir() else 0
    hint = (
        f"workers hand batches over here: give it {format_bytes(ENOUGH_SHARED_BYTES)} or more "
        "(Docker's 64 MiB: pass --shm-size=1g)"
    )
    return _row(str(folder), format_bytes(size), size >= ENOUGH_SHARED_BYTES, hint)


def _enforcement(enforced_by: str) -> Row:
    hint = "no memory cgroup can be had: a process beside it ends an experiment over its budget"
    return _row("RAM budget held by", enforced_by, enforced_by != "watcher", hint, State.NOTE)


def _measure(measure: str) -> Row:
    state = State.READY if measure == "PSS" else State.NOTE
    return Row("memory shown as", measure, state, _MEASURES[measure])


def _swap() -> Row:
    swap = swap_bytes()
    hint = "without a budget, this machine slows down for minutes before a process dies"
    return _row("swap", format_bytes(swap) if swap else "none", not swap, hint, State.NOTE)
