import ctypes
import errno
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from ballast import FORK, MIB, Child

from helpers.memory import MemoryMeter, MemoryReading, measure_name


@pytest.fixture
def child() -> Iterator[Child]:
    with Child() as child:
        child.do(FORK)
        yield child


@pytest.fixture
def sampler(child: Child) -> Iterator[MemoryMeter]:
    with MemoryMeter(child.pid, backend="psutil") as sampler:
        yield sampler


def pids(reading: MemoryReading) -> list[int]:
    return [process.pid for process in reading.processes]


def test_nothing_outside_the_standard_library_is_imported_where_there_is_a_proc() -> None:
    code = (
        "import sys; from helpers.memory import MemoryMeter, measure_name; import os\n"
        "MemoryMeter(os.getpid()).read(); measure_name()\n"
        "print(*{'psutil', 'numpy', 'torch'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_workers_are_found_and_an_ended_one_is_left_out(child: Child, sampler: MemoryMeter) -> None:
    child.do("fork(lambda: None); fork(lambda: None)")
    assert len(pids(sampler.read())) == 3
    child.do("os.kill(workers[0], signal.SIGKILL)")
    child.do("os.waitid(os.P_PID, workers[0], os.WEXITED | os.WNOWAIT)")
    assert len(pids(sampler.read())) == 2  # a zombie holds nothing
    child.do("end_workers()")
    assert pids(sampler.read()) == [child.pid]


def test_workers_whose_parent_was_killed_stay_in_the_tree(
    child: Child, sampler: MemoryMeter
) -> None:
    child.do("fork(lambda: None)")
    main, worker = pids(sampler.read())
    assert main == child.pid
    child.kill()
    assert pids(sampler.read()) == [worker]
    os.kill(worker, signal.SIGKILL)


@pytest.mark.parametrize(
    "answer", [psutil.AccessDenied(), SimpleNamespace(rss=1)], ids=["forbidden", "no uss"]
)
def test_a_process_that_tells_no_private_memory_shows_its_rss_and_says_so(
    sampler: MemoryMeter, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    def tell(process: psutil.Process) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(psutil.Process, "memory_full_info", tell)
    reading = sampler.exact()
    assert not reading.exact
    assert reading.anonymous_bytes == reading.rss_bytes > 0
    assert measure_name("psutil") == "RSS"


def test_a_process_that_ends_before_its_exact_figures_is_left_out(
    sampler: MemoryMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(process: psutil.Process) -> None:
        raise psutil.NoSuchProcess(process.pid)

    monkeypatch.setattr(psutil.Process, "memory_full_info", gone)
    reading = sampler.exact()
    assert reading.processes == ()
    assert reading.exact


RSS, USS, PRIVATE = 100 * MIB, 90 * MIB, 30 * MIB


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return what psutil tells of every process: most of its USS is a mapped file."""
    told = SimpleNamespace(rss=RSS, uss=USS, private=PRIVATE)
    monkeypatch.setattr(psutil.Process, "memory_info", lambda process: told)
    monkeypatch.setattr(psutil.Process, "memory_full_info", lambda process: told)
    return told


def refuse(process: psutil.Process) -> None:
    raise psutil.AccessDenied(process.pid)


@pytest.fixture
def macos(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return how to pretend to be on macOS, with a libproc that tells `footprint` or fails."""

    def pretend(footprint: int = PRIVATE, *, error: int = 0) -> None:
        def proc_pid_rusage(pid: int, flavour: int, buffer: Any) -> int:
            ctypes.set_errno(error)
            if error:
                return -1
            info = struct.pack("=16s10Q", b"uuid", 1, 2, 3, 4, 5, 6, RSS, footprint, 9, 10)
            assert (flavour, ctypes.sizeof(buffer._obj)) == (0, len(info))
            ctypes.memmove(buffer, info, len(info))
            return 0

        def load(path: str, *, use_errno: bool) -> Any:
            assert (path, use_errno) == ("/usr/lib/libproc.dylib", True)
            return SimpleNamespace(proc_pid_rusage=proc_pid_rusage)

        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.setattr(ctypes, "CDLL", load)

    return pretend


def figures_of(pid: int) -> tuple[int, int, bool]:
    with MemoryMeter(pid, backend="psutil") as sampler:
        reading = sampler.read()
    assert pids(reading) == [pid]
    return reading.anonymous_bytes, reading.file_bytes, reading.exact


def test_on_macos_a_mapped_file_is_not_in_the_footprint(
    child: Child, told: SimpleNamespace, macos: Callable[..., None]
) -> None:
    macos()
    assert figures_of(child.pid) == (PRIVATE, RSS - PRIVATE, True)
    assert measure_name("psutil") == "footprint"


def test_compressed_memory_counts_though_it_is_not_resident(
    child: Child, told: SimpleNamespace, macos: Callable[..., None]
) -> None:
    macos(3 * RSS)
    assert figures_of(child.pid) == (3 * RSS, 0, True)


def test_on_windows_a_mapped_file_is_not_in_the_private_bytes(
    child: Child, told: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert figures_of(child.pid) == (PRIVATE, RSS - PRIVATE, True)
    assert measure_name("psutil") == "private bytes"


def test_a_psutil_that_tells_no_private_bytes_tells_the_uss(
    child: Child, told: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    del told.private
    assert figures_of(child.pid) == (USS, RSS - USS, True)
    assert measure_name("psutil") == "USS"


def test_on_other_systems_private_memory_is_the_uss(
    child: Child, told: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "freebsd14")
    assert figures_of(child.pid) == (USS, RSS - USS, True)
    assert measure_name("psutil") == "USS"


@pytest.mark.parametrize("error", [errno.EPERM, errno.EINVAL], ids=["refused", "unknown flavour"])
def test_without_a_footprint_the_uss_must_do_and_then_the_rss(
    child: Child,
    told: SimpleNamespace,
    macos: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    error: int,
) -> None:
    macos(error=error)
    assert figures_of(child.pid) == (USS, RSS - USS, True)
    assert measure_name("psutil") == "USS"
    monkeypatch.setattr(psutil.Process, "memory_full_info", refuse)
    assert figures_of(child.pid) == (RSS, 0, False)
    assert measure_name("psutil") == "RSS"


def no_library(path: str, *, use_errno: bool) -> Any:
    raise OSError(f"dlopen({path}): image not found")


def no_call(path: str, *, use_errno: bool) -> Any:
    return SimpleNamespace()


@pytest.mark.parametrize("load", [no_library, no_call])
def test_a_macos_that_cannot_be_asked_for_the_footprint_tells_the_uss(
    child: Child, told: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, load: Callable[..., Any]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", load)
    assert figures_of(child.pid) == (USS, RSS - USS, True)
    assert measure_name("psutil") == "USS"


def test_on_macos_a_process_that_ends_before_its_footprint_is_told_is_left_out(
    child: Child, told: SimpleNamespace, macos: Callable[..., None]
) -> None:
    macos(error=errno.ESRCH)
    with MemoryMeter(child.pid, backend="psutil") as sampler:
        reading = sampler.exact()
    assert reading.processes == ()
    assert reading.exact


def test_on_windows_a_process_that_ends_before_its_private_bytes_are_told_is_left_out(
    child: Child, told: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its RSS was told a moment before."""
    monkeypatch.setattr(sys, "platform", "win32")
    answers = iter([told])

    def tell_once(process: psutil.Process) -> SimpleNamespace:
        for answer in answers:
            return answer
        raise psutil.NoSuchProcess(process.pid)

    with MemoryMeter(child.pid, backend="psutil") as sampler:
        monkeypatch.setattr(psutil.Process, "memory_info", tell_once)
        reading = sampler.exact()
    assert reading.processes == ()
    assert reading.exact
