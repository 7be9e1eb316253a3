"""Ending all processes of an experiment, wherever they hide."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from running import is_running
from talking import Talking

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


start = partial(Talking, start_new_session=True)


def end(session: int, listed: Callable[[], list[int]] = list, *, patience: float = 8.0) -> bool:
    return end_all(lambda: members(session) | set(listed()), set(), patience=patience)


@dataclass
class Family:
    pid: int  # of the leader
    child: int
    orphan: int
    stranger: int  # in a session of its own


@pytest.fixture
def family(monkeypatch: pytest.MonkeyPatch) -> Iterator[Family]:
    with start(FAMILY) as leader, monkeypatch.context() as patch:
        child, orphan = map(int, leader.hear().split())
        patch.setenv("LESSON_MARK", "a run's own")
        with start(WAITS) as stranger:
            stranger.hear()  # it is ready
            yield Family(leader.pid, child, orphan, stranger.pid)
            stranger.kill()
        end(leader.pid)


def test_a_session_is_ended_with_its_orphans_and_nobody_else(family: Family) -> None:
    assert members(family.pid) == {family.pid, family.child, family.orphan}
    assert end(family.pid)
    assert not any(is_running(pid) for pid in (family.pid, family.child, family.orphan))
    assert members(family.pid) == set()
    assert is_running(family.stranger)


@needs_proc
def test_a_process_outside_the_session_is_known_by_its_mark_and_by_its_adopter(
    family: Family,
) -> None:
    assert members(0, mark="LESSON_MARK=a run's own\0") == {family.stranger}
    assert members(0, adopter=family.pid) == {family.child}
    everybody = {family.pid, family.child, family.orphan, family.stranger}
    assert members(family.pid, adopter=os.getpid()) >= everybody


def test_a_process_that_cannot_be_ended_is_waited_for_also_when_it_is_on_no_list_any_more(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a dying process is, until its memory has been given back."""
    lists = iter([[family.stranger]])
    with monkeypatch.context() as patch:
        patch.setattr(processes, "kill", lambda pid: None if pid == family.stranger else kill(pid))
        assert not end(family.pid, listed=lambda: next(lists, []), patience=0.2)


@pytest.mark.parametrize("sessions", [True, False])
def test_without_proc_descendants_and_known_processes_are_members(
    family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sessions: bool
) -> None:
    if not sessions:
        monkeypatch.delattr(os, "getsid")  # Windows
    found = members(family.pid, known=[family.stranger, 2**22 + 1], proc=tmp_path)
    expected = {family.pid, family.child, family.stranger}
    assert found == (expected | {family.orphan} if sessions else expected)


def test_a_resource_tracker_may_end_by_itself(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends when what it serves has ended: so it is killed last, and only if it does not."""
    killed: list[int] = []
    monkeypatch.setattr(processes, "TRACKER_SECONDS", 0.2)

    def note(pid: int) -> None:
        killed.append(pid)
        kill(pid)

    monkeypatch.setattr(processes, "kill", note)
    with start(WAITS, processes.TRACKERS[0]) as tracker:
        tracker.hear()
        assert end(family.pid, lambda: [tracker.pid])
    assert set(killed) == {family.pid, family.child, family.orphan, tracker.pid}
    assert killed.index(tracker.pid) == len(killed) - killed.count(tracker.pid)


def test_killing_works_without_sigkill_and_is_no_error_where_nobody_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kill(2**22 + 1)
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
        "14": "14 (being collected) X 1 14 77 0",
        "15": "cut off",
    }.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_text(line)
    assert members(77, proc=tmp_path) == {11}
