import multiprocessing
import os
import platform
import shutil
from collections import namedtuple
from html.parser import HTMLParser
from importlib import metadata
from pathlib import Path

import pytest

from helpers import machine
from helpers.machine import check_machine
from helpers.system.machine_report import MachineReport, Row, State
from helpers.system.ram import machine_ram_bytes
from helpers.units import format_bytes

MIB, GIB = 2**20, 2**30
HUGE = 2**60


def row(report: MachineReport, what: str) -> Row:
    [found] = [row for row in report.rows if row.what == what]
    return found


def test_a_report_names_what_the_lessons_depend_on(tmp_path: Path) -> None:
    report = check_machine(tmp_path, enforced_by="kernel (cgroup v2)")
    assert [row.what for row in report.rows] == [
        "Python",
        *sorted(machine.PACKAGES),
        "start methods",
        "cores",
        "RAM",
        "disk",
        "/dev/shm",
        "RAM budget held by",
        "memory shown as",
        "swap",
    ]
    assert row(report, "torch").value == metadata.version("torch")
    assert row(report, "RAM").value.endswith(f" free of {format_bytes(machine_ram_bytes())}")
    assert row(report, "RAM budget held by").value == "kernel (cgroup v2)"
    assert row(report, "memory shown as").value == "PSS"


def test_enough_is_ready(tmp_path: Path) -> None:
    report = check_machine(tmp_path, needed_bytes=1, needed_ram_bytes=1)
    assert row(report, "disk").state is row(report, "RAM").state is State.READY


def test_too_little_disk_or_ram_is_to_be_fixed(tmp_path: Path) -> None:
    report = check_machine(tmp_path / "not_yet", needed_bytes=HUGE, needed_ram_bytes=HUGE)
    for what in ("disk", "RAM"):
        assert row(report, what).state is State.FIX
        assert row(report, what).hint.startswith(f"{format_bytes(HUGE)} needed: ")
    assert not report.ok
    assert report.summary == "Fix first: RAM, disk."


def set_version(monkeypatch: pytest.MonkeyPatch, name: str, version: str | None) -> None:
    really = metadata.version

    def told(asked: str) -> str:
        if asked != name:
            return really(asked)
        if version is None:
            raise metadata.PackageNotFoundError(asked)
        return version

    monkeypatch.setattr(metadata, "version", told)


def test_the_ipykernel_that_loses_clicks_is_to_be_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    set_version(monkeypatch, "ipykernel", "7.4.0")
    found = row(check_machine(), "ipykernel")
    assert not found.ok
    assert found.hint.startswith("7.4.0 holds the Stop button's click back until the cell ends: ")
    assert found.hint.endswith("python -m pip install 'ipykernel!=7.4.0,>=7.0'")


@pytest.mark.parametrize("version", ["7.3.0", "7.4.1"])
def test_its_neighbours_are_ready(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    set_version(monkeypatch, "ipykernel", version)
    assert row(check_machine(), "ipykernel").state is State.READY


@pytest.mark.parametrize(
    ("version", "why"), [("1.13.0", "the lessons need >=2.4: "), (None, "python -m pip install")]
)
def test_an_old_or_missing_package_is_to_be_fixed(
    monkeypatch: pytest.MonkeyPatch, version: str | None, why: str
) -> None:
    set_version(monkeypatch, "torch", version)
    found = row(check_machine(), "torch")
    assert not found.ok
    assert found.value == (version or "not installed")
    assert found.hint.startswith(why)


@pytest.mark.parametrize(
    ("version", "ok"), [("3.10.14", False), ("3.11.0", True), ("3.13.1", True), ("3.14.0", False)]
)
def test_only_a_tested_python_is_ready(
    monkeypatch: pytest.MonkeyPatch, version: str, ok: bool
) -> None:
    monkeypatch.setattr(platform, "python_version", lambda: version)
    assert row(check_machine(), "Python").ok is ok


def test_a_project_that_is_not_installed_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PROJECT", "no-such-project")
    assert "make lab" in row(check_machine(), "no-such-project").hint


@pytest.mark.parametrize(
    ("methods", "chosen", "state", "said"),
    [
        (["fork", "spawn", "forkserver"], None, State.READY, "from Python 3.14 the default"),
        (["forkserver", "fork", "spawn"], None, State.READY, "forkserver pickles the dataset"),
        (["spawn"], "spawn", State.READY, "spawn pickles the dataset"),
        (["fork", "spawn"], "spawn", State.NOTE, "this process has been set to spawn"),
    ],
)
def test_the_start_method_is_told_and_not_set(
    monkeypatch: pytest.MonkeyPatch,
    methods: list[str],
    chosen: str | None,
    state: State,
    said: str,
) -> None:
    asked: list[bool] = []

    def get(allow_none: bool = False) -> str | None:
        asked.append(allow_none)
        return chosen

    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: methods)
    monkeypatch.setattr(multiprocessing, "get_start_method", get)
    found = row(check_machine(), "start methods")
    assert found.value.startswith(f"{methods[0]} (default)")
    assert found.state is state
    assert said in found.hint
    assert asked == [True]  # asked without it, Python would fix the method for good


def test_one_core_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    assert row(check_machine(), "cores").state is State.NOTE
    monkeypatch.delattr(os, "sched_getaffinity")  # macOS, Windows
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert row(check_machine(), "cores") == Row("cores", "8")


def test_a_limit_on_ram_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "machine_ram_bytes", lambda: 2 * GIB)
    monkeypatch.setattr(machine, "available_ram_bytes", lambda: GIB)
    found = row(check_machine(needed_ram_bytes=GIB), "RAM")
    assert found == Row("RAM", "1 GiB free of 2 GiB (a limit set on this process)")


Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(("size", "ok"), [(64 * MIB, False), (256 * MIB, True)])
def test_the_small_shared_memory_of_a_container_is_to_be_fixed(
    monkeypatch: pytest.MonkeyPatch, size: int, ok: bool
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(size, 0, size))
    found = row(check_machine(), "/dev/shm")
    assert found.ok is ok
    assert ("--shm-size=1g" in found.hint) is not ok


def test_elsewhere_there_is_no_row_for_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    report = check_machine()
    assert "/dev/shm" not in [row.what for row in report.rows]
    assert row(report, "Python").value.endswith(" on Darwin")


def test_a_watched_budget_is_noted() -> None:
    found = row(check_machine(enforced_by="watcher"), "RAM budget held by")
    assert found.state is State.NOTE
    assert "no memory cgroup" in found.hint


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ("footprint", "compressed or not"),
        ("private bytes", "touched or not"),
        ("USS", "private memory"),
        ("RSS", "once for each process"),
    ],
)
def test_a_poorer_measure_is_noted(
    monkeypatch: pytest.MonkeyPatch, measure: str, said: str
) -> None:
    monkeypatch.setattr(machine, "measure_name", lambda: measure)
    found = row(check_machine(), "memory shown as")
    assert (found.value, found.state) == (measure, State.NOTE)
    assert said in found.hint


def test_swap_is_noted_and_none_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "swap_bytes", lambda: 2 * GIB)
    assert row(check_machine(), "swap").state is State.NOTE
    monkeypatch.setattr(machine, "swap_bytes", lambda: 0)
    assert row(check_machine(), "swap") == Row("swap", "none")


REPORT = MachineReport(
    (
        Row("Python", "3.11.7"),
        Row("disk", "1 GiB free in <here>", State.FIX, "4 GiB needed"),
        Row("swap", "2 GiB", State.NOTE, "slow & late"),
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


class Cells(HTMLParser):
    """The text of a table, and every tag that was opened and not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_notebook_shows_the_same_in_words_and_symbols() -> None:
    cells = Cells(REPORT._repr_html_())
    assert cells.open == []
    assert cells.texts == [
        *("what", "here"),
        *("✓ ready", "Python", "3.11.7"),
        *("✗ fix", "disk", "1 GiB free in <here>", "4 GiB needed"),
        *("! note", "swap", "2 GiB", "slow & late"),
        "Fix first: disk.",
    ]


def _luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("page", ["#ffffff", "#111111"])
def test_each_state_reads_on_a_light_and_on_a_dark_page(state: State, page: str) -> None:
    html = MachineReport((Row("x", "y", state),))._repr_html_()
    colour = html.partition("; color:")[2][:7]
    low, high = sorted((_luminance(colour), _luminance(page)))
    assert (high + 0.05) / (low + 0.05) >= 4
