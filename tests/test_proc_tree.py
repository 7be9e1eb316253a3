import os
from pathlib import Path

import pytest
from ballast import MIB, Child

from helpers.memory import MemoryBackend, MemoryMeter, MemoryReading
from helpers.system.proc_tree import DiskReads
from helpers.system.procfs import Process

READ = """
def read(path, size):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    while size > 0:
        size -= len(os.read(file, 1 << 20))
    os.close(file)
"""


both_backends = pytest.mark.parametrize("backend", ["proc", "psutil"])


def pids(reading: MemoryReading) -> list[int]:
    return [process.pid for process in reading.processes]


def test_workers_that_another_thread_forked_are_found(child: Child) -> None:
    child.do("import threading; forked, over = threading.Event(), threading.Event()")
    child.do("work = lambda: (fork(lambda: None), forked.set(), over.wait())")
    child.do("thread = threading.Thread(target=work); thread.start(); forked.wait()")
    with MemoryMeter(child.pid) as sampler:
        assert len(pids(sampler.cheap())) == 2
    child.do("over.set(); thread.join(); end_workers()")


@both_backends
def test_children_of_children_are_found_and_an_ended_one_is_left_out(
    child: Child, backend: MemoryBackend
) -> None:
    child.do("fork(lambda: fork(lambda: None))")
    with MemoryMeter(child.pid, backend=backend) as sampler:
        assert len(pids(sampler.cheap())) == 3
        child.do("end_workers()")  # ends the first; the second has a new parent now
        main, orphan = sampler.cheap().processes
        assert (main.pid, orphan.ppid == child.pid) == (child.pid, False)
    os.kill(orphan.pid, 9)


@both_backends
def test_workers_whose_parent_was_killed_stay_in_the_tree(
    child: Child, backend: MemoryBackend
) -> None:
    child.do("fork(lambda: None); fork(lambda: None)")
    with MemoryMeter(child.pid, backend=backend) as sampler:
        main, *workers = pids(sampler.cheap())
        assert main == child.pid
        child.kill()
        assert pids(sampler.cheap()) == workers
        assert pids(sampler.exact()) == workers


@both_backends
def test_a_zombie_has_no_memory_and_stays_out(child: Child, backend: MemoryBackend) -> None:
    child.do("fork(lambda: None); os.kill(workers[0], signal.SIGKILL)")
    child.do("os.waitid(os.P_PID, workers[0], os.WEXITED | os.WNOWAIT)")
    with MemoryMeter(child.pid, backend=backend) as sampler:
        assert pids(sampler.exact()) == [child.pid]


@pytest.mark.parametrize("listed", [False, True])
def test_reads_of_a_worker_count_once_before_and_after_its_parent_waits_for_it(
    child: Child, file: Path, listed: bool
) -> None:
    """A cgroup lists no zombie, and nobody has taken its reads over yet."""
    group = [child.pid]
    with MemoryMeter(child.pid, pids=(lambda: group) if listed else None) as sampler:
        before = sampler.cheap().read_bytes or 0
        child.do(f"{READ}\nfork(lambda: read({str(file)!r}, {8 * MIB}))")
        with MemoryMeter(child.pid) as finder:
            group[:] = pids(finder.cheap())
        alive = sampler.cheap().read_bytes or 0
        child.do("os.kill(workers[0], signal.SIGKILL)")
        child.do("os.waitid(os.P_PID, workers[0], os.WEXITED | os.WNOWAIT)")
        del group[1]
        zombie = sampler.cheap().read_bytes or 0
        child.do("end_workers()")
        gone = sampler.cheap().read_bytes or 0
        child.kill()
        assert sampler.cheap().read_bytes == gone  # also when the whole tree has ended
    # A little more may be read by the way: Python's own files, the rest of a page.
    for now in (alive, zombie, gone):
        assert 8 * MIB <= now - before < 9 * MIB
    assert alive <= zombie <= gone


class Counted(Process):
    """A process whose count of bytes read is told by the test; None when it has ended."""

    def __init__(self, ppid: int, count: int | None) -> None:
        self.ppid = ppid
        self.count = count

    def read_bytes(self) -> int:
        if self.count is None:
            raise ProcessLookupError
        return self.count

    def close(self) -> None:
        pass


def test_what_no_living_ancestor_took_over_is_kept() -> None:
    main, worker, orphan = Counted(1, 100), Counted(7, 40), Counted(1, 5)
    known: dict[int, Process] = {7: main, 8: worker, 9: orphan}
    reads = DiskReads()
    assert reads.total(known) == 145
    orphan.count = None  # nobody of the tree waits for it
    assert reads.total(known) == 145
    worker.count, main.count = None, 150  # waited for: 40 of them are the worker's
    assert reads.total(known) == 155
    assert list(known) == [7]
    main.count = None
    assert reads.total(known) == 155
    assert known == {}


def test_a_grandchild_that_went_with_its_parent_counts_once() -> None:
    main, middle, worker = Counted(1, 100), Counted(7, 40), Counted(8, 20)
    known: dict[int, Process] = {7: main, 8: middle, 9: worker}
    reads = DiskReads()
    assert reads.total(known) == 160
    middle.count, worker.count, main.count = None, None, 160
    assert reads.total(known) == 160


def test_reads_are_none_where_no_process_tells_them() -> None:
    class Silent(Counted):
        def read_bytes(self) -> None:  # type: ignore[override]
            return None

    assert DiskReads().total({7: Silent(1, 0)}) is None
