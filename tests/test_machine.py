import multiprocessing
import os
import platform
from collections import namedtuple
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from helpers import machine
from helpers.machine import check_machine
from helpers.system.machine_report import MachineReport, Row, State
from helpers.system.ram import machine_ram_bytes
from helpers.units import format_bytes

MIB, GIB = 2**20, 2**30
HUGE = 2**60
READY, NOTE, FIX = State
Usage = namedtuple("Usage", "total used free")


def row(report: MachineReport, what: str) -> Row:
    [found] = [row for row in report.rows if row.what == what]
    return found


def test_a_report_names_what_the_lessons_depend_on(tmp_path: Path) -> None:
    report = check_machine(tmp_path, enforced_by="kernel (cgroup v2)")
    first, middle = ["Python", *sorted(machine.PACKAGES)], ["start methods", "cores", "RAM", "disk"]
    last = ["/dev/shm", "RAM budget held by", "memory shown as", "swap"]
    assert [row.what for row in report.rows] == [*first, *middle, *last]
    assert row(report, "torch").value == metadata.version("torch")
    assert row(report, "RAM").value.endswith(f" free of {format_bytes(machine_ram_bytes())}")
    assert row(report, "RAM budget held by") == Row("RAM budget held by", "kernel (cgroup v2)")
    assert row(report, "memory shown as").value == "PSS"


def test_too_little_disk_or_ram_is_to_be_fixed_and_enough_is_ready(tmp_path: Path) -> None:
    enough = check_machine(tmp_path / "not_yet", needed_bytes=1, needed_ram_bytes=1)
    report = check_machine(tmp_path / "not_yet", needed_bytes=HUGE, needed_ram_bytes=HUGE)
    for what in ("disk", "RAM"):
        assert (row(enough, what).state, row(report, what).state) == (READY, FIX)
        assert row(report, what).hint.startswith(f"{format_bytes(HUGE)} needed: ")
    assert report.summary == "Fix first: RAM, disk."


def answer(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def version(package: str, told: str | None) -> Callable[[str], str]:
    """Return how to ask for versions where a package has another, or is not installed."""
    really = metadata.version

    def tell(asked: str) -> str:
        if asked == package and told is None:
            raise metadata.PackageNotFoundError(asked)
        return told if asked == package and told else really(asked)

    return tell


PYTHON, VERSION = "platform.python_version", "importlib.metadata.version"
MEASURE, SHARED = "helpers.machine.measure_name", "shutil.disk_usage"
OLD_KERNEL = "7.4.0 (7.4.0 holds the Stop button's click back until the cell ends: python -m pip "


@pytest.mark.parametrize(
    ("target", "told", "what", "state", "said"),
    [
        (PYTHON, answer("3.10.14"), "Python", FIX, "the lessons are tested with Python"),
        (PYTHON, answer("3.11.0"), "Python", READY, "3.11.0 on "),
        (PYTHON, answer("3.14.0"), "Python", FIX, "3.14.0"),
        (VERSION, version("ipykernel", "7.4.0"), "ipykernel", FIX, OLD_KERNEL),
        (VERSION, version("ipykernel", "7.4.0"), "ipykernel", FIX, "'ipykernel!=7.4.0,>=7.0'"),
        (VERSION, version("ipykernel", "7.4.1"), "ipykernel", READY, "7.4.1"),
        (VERSION, version("torch", "1.13.0"), "torch", FIX, "1.13.0 (the lessons need >=2.4: pyth"),
        (VERSION, version("torch", None), "torch", FIX, "not installed (python -m pip install"),
        ("helpers.machine.PROJECT", "no-such-project", "no-such-project", FIX, "make lab"),
        ("os.sched_getaffinity", answer({0}), "cores", NOTE, "1 (workers take turns"),
        ("helpers.machine.swap_bytes", answer(2 * GIB), "swap", NOTE, "2 GiB (without a budget"),
        ("helpers.machine.swap_bytes", answer(0), "swap", READY, "none ()"),
        (SHARED, answer(Usage(64 * MIB, 0, 9)), "/dev/shm", FIX, "--shm-size=1g"),
        (SHARED, answer(Usage(256 * MIB, 0, 9)), "/dev/shm", READY, "256 MiB ()"),
        (MEASURE, answer("footprint"), "memory shown as", NOTE, "footprint (anonymous mem"),
        (MEASURE, answer("private bytes"), "memory shown as", NOTE, "touched or not"),
        (MEASURE, answer("USS"), "memory shown as", NOTE, "USS (private memory"),
        (MEASURE, answer("RSS"), "memory shown as", NOTE, "once for each process"),
    ],
)
def test_what_a_machine_has_is_ready_noted_or_to_be_fixed(
    monkeypatch: pytest.MonkeyPatch, target: str, told: Any, what: str, state: State, said: str
) -> None:
    monkeypatch.setattr(target, told)
    found = row(check_machine(), what)
    assert (found.state, found.ok) == (state, state is not FIX)
    assert said in f"{found.value} ({found.hint})"


@pytest.mark.parametrize(
    ("methods", "chosen", "state", "said"),
    [
        (["fork", "spawn", "forkserver"], None, READY, "from Python 3.14 the default"),
        (["forkserver", "fork", "spawn"], None, READY, "forkserver pickles the dataset"),
        (["spawn"], "spawn", READY, "spawn pickles the dataset"),
        (["fork", "spawn"], "spawn", NOTE, "this process has been set to spawn"),
    ],
)
def test_the_start_method_is_told_and_not_set(
    monkeypatch: pytest.MonkeyPatch, methods: list[str], chosen: str | None, state: State, said: str
) -> None:
    def get(*, allow_none: bool) -> str | None:
        assert allow_none, "asked without it, Python would fix the method for good"
        return chosen

    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: methods)
    monkeypatch.setattr(multiprocessing, "get_start_method", get)
    found = row(check_machine(), "start methods")
    assert found.value.startswith(f"{methods[0]} (default)")
    assert found.state is state
    assert said in found.hint


def test_a_limit_on_ram_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "machine_ram_bytes", lambda: 2 * GIB)
    monkeypatch.setattr(machine, "available_ram_bytes", lambda: GIB)
    found = row(check_machine(needed_ram_bytes=GIB), "RAM")
    assert found == Row("RAM", "1 GiB free of 2 GiB (a limit set on this process)")


def test_elsewhere_cores_are_counted_and_there_is_no_row_for_shared_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    report = check_machine()
    assert "/dev/shm" not in [row.what for row in report.rows]
    assert row(report, "cores") == Row("cores", "8")
    assert row(report, "Python").value.endswith(" on Darwin")


def test_a_watched_budget_is_noted() -> None:
    found = row(check_machine(enforced_by="watcher"), "RAM budget held by")
    assert found.state is NOTE
    assert "no memory cgroup" in found.hint


REPORT = MachineReport(
    (
        Row("Python", "3.11.7"),
        Row("disk", "1 GiB free in <here>", FIX, "4 GiB needed"),
        Row("swap", "2 GiB", NOTE, "slow & late"),
    )
)


def test_the_report_reads_as_a_plain_table() -> None:
    assert repr(REPORT) == (
        "✓ ready  Python  3.11.7\n"
        "✗ fix    disk    1 GiB free in <here>\n"
        "                 (4 GiB needed)\n"
        "! note   swap    2 GiB\n"
        "                 (slow & late)\n"
        "Fix first: disk."
    )
    assert MachineReport(()).summary == "This machine is ready."


def test_the_notebook_shows_the_same_in_words_and_symbols() -> None:
    shown = ElementTree.fromstring(f"<div>{REPORT._repr_html_()}</div>")  # every tag is closed
    assert [*shown.itertext()] == [
        *("what", "here"),
        *("✓ ready", "Python", "3.11.7"),
        *("✗ fix", "disk", "1 GiB free in <here>", "4 GiB needed"),
        *("! note", "swap", "2 GiB", "slow & late"),
        "Fix first: disk.",
    ]


def luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("page", ["#ffffff", "#111111"])
def test_each_state_reads_on_a_light_and_on_a_dark_page(state: State, page: str) -> None:
    html = MachineReport((Row("x", "y", state),))._repr_html_()
    low, high = sorted((luminance(html.partition("; color:")[2][:7]), luminance(page)))
    assert (high + 0.05) / (low + 0.05) >= 4
