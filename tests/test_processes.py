"""Ending all processes of an experiment, wherever they hide."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from helpers.system import processes
from helpers.system.processes import command_line, end_all, kill, members

# A leader and two children; the second one's parent has ended. Says the pids of both children.
FAMILY = """
import os, sys
read, write = os.pipe()
child = os.fork()
if child == 0:
    sys.stdin.read()
middle = os.fork()
if middle == 0:
    orphan = os.fork()
    if orphan == 0:
        sys.stdin.read()
    os.write(write, str(orphan).encode())
    os._exit(0)
os.waitpid(middle, 0)
print(child, os.read(read, 20).decode(), flush=True)
sys.stdin.read()
"""
WAITS = "import sys; print(flush=True); sys.stdin.read()"
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")


def start(code: str, *words: str, session: bool = True) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=session,
    )


def said(process: subprocess.Popen[str]) -> list[int]:
    """Return the numbers of the line that a process says when it is ready."""
    assert process.stdout is not None
    return [int(word) for word in process.stdout.readline().split()]


def end(session: int, listed: Callable[[], list[int]] = list, *, patience: float = 8.0) -> bool:
    return end_all(lambda: members(session) | set(listed()), set(), patience=patience)


@pytest.fixture
def leader() -> Iterator[subprocess.Popen[str]]:
    with start(FAMILY) as process:
        yield process
        end(process.pid)


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_a_session_is_ended_with_its_orphans(leader: subprocess.Popen[str]) -> None:
    child, orphan = said(leader)
    assert members(leader.pid) == {leader.pid, child, orphan}
    assert end(leader.pid)
    assert not any(is_running(pid) for pid in (leader.pid, child, orphan))
    assert members(leader.pid) == set()


def test_a_process_outside_the_session_lives_on(leader: subprocess.Popen[str]) -> None:
    said(leader)
    with start(WAITS) as other:
        said(other)
        assert end(leader.pid)
        assert is_running(other.pid)
        other.kill()


@needs_proc
def test_a_process_outside_the_session_is_known_by_its_mark_and_by_its_adopter(
    leader: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    child, orphan = said(leader)
    monkeypatch.setenv("LESSON_MARK", "a run's own")
    with start(WAITS) as marked:
        said(marked)
        assert members(0, mark="LESSON_MARK=a run's own\0") == {marked.pid}
        assert members(0, adopter=leader.pid) == {child}
        assert members(leader.pid, adopter=os.getpid()) >= {leader.pid, child, orphan, marked.pid}
        marked.kill()


def test_a_listed_process_is_ended_in_whatever_session_it_is(
    leader: subprocess.Popen[str],
) -> None:
    said(leader)
    with start(WAITS) as listed:
        said(listed)
        assert end(leader.pid, listed=lambda: [listed.pid])
        assert not is_running(listed.pid)


def test_a_listed_process_is_waited_for_also_when_it_is_on_no_list_any_more(
    leader: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a dying process is, until its memory has been given back."""
    said(leader)
    with start(WAITS) as listed:
        said(listed)
        lists = iter([[listed.pid]])
        with monkeypatch.context() as patch:
            patch.setattr(processes, "kill", lambda pid: None if pid == listed.pid else kill(pid))
            assert not end(leader.pid, listed=lambda: next(lists, []), patience=0.2)
        listed.kill()


def test_without_proc_descendants_and_known_processes_are_members(
    leader: subprocess.Popen[str], tmp_path: Path
) -> None:
    child, orphan = said(leader)
    with start(WAITS) as known:
        said(known)
        found = members(leader.pid, known=[known.pid, 2**22 + 1], proc=tmp_path)
        assert found >= {leader.pid, child, known.pid}
        if hasattr(os, "getsid"):
            assert orphan in found
        known.kill()


def test_without_sessions_known_processes_are_members(
    leader: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child, orphan = said(leader)
    monkeypatch.delattr(os, "getsid")  # Windows
    assert members(leader.pid, proc=tmp_path) == {leader.pid, child}
    assert members(leader.pid, known=[orphan], proc=tmp_path) == {leader.pid, child, orphan}


def test_it_says_so_when_a_process_cannot_be_ended(
    leader: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(leader)
    with monkeypatch.context() as patch:
        patch.setattr(processes, "kill", lambda pid: None)
        assert not end(leader.pid, patience=0.05)
    assert end(leader.pid)


def test_a_resource_tracker_may_end_by_itself(
    leader: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends when what it serves has ended: so it is killed last, and only if it does not."""
    child, orphan = said(leader)
    killed: list[int] = []
    monkeypatch.setattr(processes, "_is_tracker", lambda pid: pid == orphan)
    monkeypatch.setattr(processes, "TRACKER_SECONDS", 0.2)

    def note(pid: int) -> None:
        killed.append(pid)
        kill(pid)

    monkeypatch.setattr(processes, "kill", note)
    assert end(leader.pid)
    assert set(killed) == {leader.pid, child, orphan}
    assert killed[-1] == orphan


@needs_proc
def test_a_tracker_is_known_by_its_command_line() -> None:
    with start(WAITS, processes.TRACKERS[0]) as tracker, start(WAITS) as other:
        said(tracker), said(other)
        assert processes._is_tracker(tracker.pid)
        assert not processes._is_tracker(other.pid)
        tracker.kill()
        other.kill()


def test_killing_a_process_that_has_ended_is_no_error() -> None:
    with start("") as process:
        process.wait()
    kill(process.pid)


def test_where_there_is_no_sigkill_it_terminates(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.delattr(signal, "SIGKILL")  # Windows
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    kill(7)
    assert sent == [(7, signal.SIGTERM)]


@needs_proc
def test_a_command_line_is_read_and_may_be_missing(tmp_path: Path) -> None:
    assert "pytest" in command_line(os.getpid())
    assert "pytest" in command_line(os.getpid(), proc=tmp_path)  # psutil tells
    assert command_line(2**22 + 1) == command_line(2**22 + 1, proc=tmp_path) == ""


def test_a_process_name_may_hold_anything(tmp_path: Path) -> None:
    """The session is the fourth field after the name, which stands in parentheses."""
    for pid, line in {
        "self": "1 (x) S 0 0 0",
        "11": "11 (a) b (c) S 1 11 77 0",
        "12": "12 (zombie) Z 1 12 77 0",
        "13": "13 (other) S 1 13 78 0",
        "14": "cut off",
    }.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_text(line)
    assert members(77, proc=tmp_path) == {11}
