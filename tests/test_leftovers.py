"""The check that holds after every test: here it has to find something."""

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import leftovers
import pytest
from talking import Talking

from helpers.budget import make_group
from helpers.running.sandbox import Sandbox
from helpers.running.warm_pool import pool
from helpers.system.processes import kill

# Starts a process, in a session of its own, and leaves it.
LEAVES = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[1]], start_new_session=True)
"""
WAITS = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
SHARES = """
import multiprocessing, os, sys
semaphore = multiprocessing.get_context("spawn").Semaphore()
print(os.getpid(), "sem." + semaphore._semlock.name.lstrip("/"), flush=True)
sys.stdin.read()
"""


@contextmanager
def orphaned(code: str, env: dict[str, str] | None = None) -> Iterator[list[str]]:
    """Start a process whose parent ends, and yield the words that it says."""
    with Talking(LEAVES, code, env=env or os.environ) as parent:
        words = parent.hear().split()
        parent.wait()
        try:
            yield words
        finally:
            kill(int(words[0]))


@contextmanager
def an_orphan() -> Iterator[str]:
    with orphaned(WAITS) as (pid,):
        yield f"process {pid}"


@contextmanager
def a_shared_segment() -> Iterator[str]:
    memory = SharedMemory(create=True, size=1)
    with closing(memory):
        yield f"file /dev/shm/{memory.name}"
    memory.unlink()


@contextmanager
def a_temporary_folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="larger-than-ram-run-1-") as folder:
        yield f"file {folder}"


@contextmanager
def a_cgroup() -> Iterator[str]:
    group = make_group()
    if group is None:
        pytest.skip("no memory cgroup can be made here")
    try:
        yield f"cgroup {group.path}"
    finally:
        group.remove()


KINDS = [an_orphan, a_shared_segment, a_temporary_folder, a_cgroup]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="orphans are found through /proc")
@pytest.mark.parametrize("leave", KINDS)
def test_what_a_test_leaves_is_found_and_named(
    leave: Callable[[], AbstractContextManager[str]],
) -> None:
    before = leftovers.traces()
    with leave() as line:
        left = leftovers.left_since(before, patience=0.1)
        assert any(found.startswith(line) for found in left), left
    assert leftovers.left_since(before) == []


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="it is found through /proc")
def test_shared_memory_that_somebody_else_uses_is_theirs() -> None:
    """Other notebooks may run on this machine."""
    before = leftovers.traces()
    theirs = {name: value for name, value in os.environ.items() if name != leftovers.MARK}
    with orphaned(SHARES, env=theirs) as (_, name):
        assert f"file /dev/shm/{name}" in leftovers.traces()
        assert leftovers.left_since(before, patience=0.1) == []
    with orphaned(SHARES) as (_, name):
        left = leftovers.left_since(before, patience=0.1)
        assert f"file /dev/shm/{name}" in left


def test_what_goes_away_by_itself_is_not_left() -> None:
    before = leftovers.traces()
    folder, looks = Path(tempfile.mkdtemp()), itertools.count()

    def forget() -> frozenset[str]:
        if next(looks) == 2:
            folder.rmdir()
        return frozenset()

    assert leftovers.left_since(before, allowed=forget) == []
    assert not folder.exists()


def test_the_spare_that_waits_is_allowed_and_no_other() -> None:
    before = leftovers.traces()
    pool.warm_up()
    assert leftovers.left_since(before, patience=0.1) != []
    assert leftovers.left_since(before, allowed=leftovers.warm_spare) == []
    other = Sandbox()
    try:
        left = leftovers.left_since(before, allowed=leftovers.warm_spare, patience=0.1)
        assert {line.partition(" ")[0] for line in left} >= {"process", "file"}
    finally:
        other.put_away()
