import ctypes
import errno
import struct
import sys
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from ballast import MIB, Child

from helpers.memory import MemoryMeter, measure_name

RSS, USS, PRIVATE = 100 * MIB, 90 * MIB, 30 * MIB  # most of the USS is a mapped file


def libproc(footprint: int = PRIVATE, *, error: int = 0) -> SimpleNamespace:
    """Return macOS's library, which tells a footprint or fails."""

    def proc_pid_rusage(pid: int, flavour: int, buffer: Any) -> int:
        ctypes.set_errno(error)
        if error:
            return -1
        info = struct.pack("=16s10Q", b"uuid", 1, 2, 3, 4, 5, 6, RSS, footprint, 9, 10)
        assert (flavour, ctypes.sizeof(buffer._obj)) == (0, len(info))
        ctypes.memmove(buffer, info, len(info))
        return 0

    return SimpleNamespace(proc_pid_rusage=proc_pid_rusage)


def pretend(monkeypatch: pytest.MonkeyPatch, platform: str, library: Any) -> None:
    """Be on another system."""

    def load(path: str, *, use_errno: bool) -> Any:
        assert (path, use_errno) == ("/usr/lib/libproc.dylib", True)
        if library is None:
            raise OSError(f"dlopen({path}): image not found")
        return library

    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", load)


@pytest.mark.parametrize(
    ("platform", "library", "tells", "anonymous", "name"),
    [
        ("darwin", libproc(), "uss", PRIVATE, "footprint"),
        ("darwin", libproc(3 * RSS), "uss", 3 * RSS, "footprint"),  # compressed: not resident
        ("darwin", libproc(error=errno.EPERM), "uss", USS, "USS"),
        ("darwin", libproc(error=errno.EINVAL), "uss", USS, "USS"),  # an unknown flavour
        ("darwin", SimpleNamespace(), "uss", USS, "USS"),  # no such call
        ("darwin", None, "uss", USS, "USS"),
        ("darwin", libproc(error=errno.EPERM), "", RSS, "RSS"),
        ("win32", None, "uss private", PRIVATE, "private bytes"),
        ("win32", None, "uss", USS, "USS"),  # an older psutil
        ("freebsd14", None, "uss private", USS, "USS"),
        ("freebsd14", None, "private", RSS, "RSS"),
    ],
)
def test_the_best_figure_that_a_system_tells_is_shown_and_named(
    child: Child,
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    library: Any,
    tells: str,
    anonymous: int,
    name: str,
) -> None:
    told = SimpleNamespace(rss=RSS, **{each: globals()[each.upper()] for each in tells.split()})

    def full_info(process: psutil.Process) -> SimpleNamespace:
        if "uss" not in tells:
            raise psutil.AccessDenied(process.pid)
        return told

    monkeypatch.setattr(psutil.Process, "memory_info", lambda process: told)
    monkeypatch.setattr(psutil.Process, "memory_full_info", full_info)
    pretend(monkeypatch, platform, library)
    with MemoryMeter(child.pid, backend="psutil") as sampler:
        reading = sampler.read()
    assert [process.pid for process in reading.processes] == [child.pid]
    assert reading.exact is (name != "RSS")
    assert reading.anonymous_bytes == anonymous
    assert reading.file_bytes == max(RSS - anonymous, 0)
    assert measure_name("psutil") == name


@pytest.mark.parametrize("platform", ["darwin", "freebsd14"])
def test_a_process_that_ends_before_its_exact_figures_is_left_out(
    child: Child, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    def gone(process: psutil.Process) -> None:
        raise psutil.NoSuchProcess(process.pid)

    monkeypatch.setattr(psutil.Process, "memory_full_info", gone)
    pretend(monkeypatch, platform, libproc(error=errno.ESRCH))
    with MemoryMeter(child.pid, backend="psutil") as sampler:
        reading = sampler.exact()
    assert (reading.processes, reading.exact) == ((), True)
