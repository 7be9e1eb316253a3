import itertools
import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from ballast import MIB, Child

from helpers.memory import (
    MemoryBackend,
    MemoryMeter,
    MemoryReading,
    anonymous_bytes,
    budgeted_bytes,
    measure_name,
)

BALLAST = 200 * MIB


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "ballast.bin"
    path.write_bytes(os.urandom(MIB) * (BALLAST // MIB))
    return path


def added(before: MemoryReading, after: MemoryReading) -> tuple[float, float, float]:
    """Return how much each kind (anonymous, file, shared) has grown, as a share of the ballast."""
    anonymous, file, shared = (
        (getattr(after, kind) - getattr(before, kind)) / BALLAST
        for kind in ("anonymous_bytes", "file_bytes", "shared_bytes")
    )
    return anonymous, file, shared


TAKE = f"ballast = bytearray(b'x') * {BALLAST}"
TOUCH = f"""
import itertools
import mmap
file = open({{path!r}}, "rb")
mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
for page in range(0, len(mapped), {mmap.PAGESIZE}): mapped[page]
"""
# One thread: a forked worker must not wait for threads that only its parent has.
IMPORT_TORCH = "import torch; torch.set_num_threads(1); torch.ones(9).share_memory_()"
SHARE = f"shared = torch.ones({BALLAST} // 4).share_memory_()"
FORK_TWO_READERS = "for _ in range(2): fork(lambda: shared.sum())"


@pytest.mark.parametrize("way", ["exact", "read"])
@pytest.mark.parametrize(
    ("backend", "statements", "expected"),
    [("proc", TAKE, (1, 0)), ("proc", TOUCH, (0, 1)), ("psutil", TAKE, (1, 0))],
)
def test_ballast_shows_as_what_it_is_and_as_nothing_else(
    child: Child,
    file: Path,
    way: str,
    backend: MemoryBackend,
    statements: str,
    expected: tuple[float, ...],
) -> None:
    with MemoryMeter(child.pid, backend=backend) as sampler:
        before = sampler.exact()
        child.do(statements.replace("{path!r}", repr(str(file))))
        *kinds, shared = added(before, getattr(sampler, way)())
    assert kinds == pytest.approx(expected, abs=0.1)
    assert shared == 0


def test_a_shared_tensor_shows_as_shared_and_readers_do_not_multiply_it(child: Child) -> None:
    child.do(IMPORT_TORCH)
    with MemoryMeter(child.pid) as sampler:
        before = sampler.exact()
        child.do(SHARE)
        alone = sampler.read()
        child.do(FORK_TWO_READERS)
        new_processes, corrected, exact = sampler.read(), sampler.read(), sampler.exact()
        cheap = sampler.cheap()
        child.do("end_workers()")

    assert new_processes.exact  # processes came, so this reading was exact by itself
    assert not corrected.exact
    for reading, processes in ((alone, 1), (new_processes, 3), (corrected, 3), (exact, 3)):
        assert len(reading.processes) == processes
        anonymous, _, shared = added(before, reading)
        assert 0.9 <= shared <= 1.1
        assert abs(anonymous) < 0.1
    assert added(before, cheap)[2] > 2.7  # what the correction is for


def test_memory_that_a_corrected_look_sees_grow_is_the_workers_own(child: Child) -> None:
    child.do(TAKE + "\nfork(lambda: None)")
    with MemoryMeter(child.pid, clock=lambda: 0.0) as sampler:
        before = sampler.exact()
        child.do(TAKE.replace("ballast", "more"))
        after = sampler.read()
        child.do("end_workers()")
    assert not after.exact
    assert 0.9 <= added(before, after)[0] <= 1.1


def test_psutil_shows_what_several_processes_share_as_file_backed(child: Child) -> None:
    child.do(IMPORT_TORCH)
    with MemoryMeter(child.pid, backend="psutil") as sampler:
        before = sampler.exact()
        for statements in (TAKE, SHARE, FORK_TWO_READERS):
            child.do(statements)
        first, second = sampler.read(), sampler.read()
        child.do("end_workers()")
    for reading in (first, second):  # its cheap figure cannot tell kinds: every reading is exact
        assert (reading.exact, len(reading.processes)) == (True, 3)
        assert (reading.read_bytes, reading.shared_bytes) == (None, 0)
        # The forked workers share the 200 MiB with their parent: private to nobody.
        assert added(before, reading)[0] < 0.1
        assert added(before, reading)[1] > 3


@pytest.mark.parametrize("measure", ["proc", "psutil"])
def test_a_tree_that_has_ended_is_empty_and_no_error(child: Child, measure: MemoryBackend) -> None:
    with MemoryMeter(child.pid, backend=measure) as sampler:
        assert sampler.read().anonymous_bytes > 0
        child.kill()
        for reading in (sampler.cheap(), sampler.read(), sampler.exact()):
            assert reading.processes == ()
            assert reading.anonymous_bytes == reading.rss_bytes == 0


@pytest.mark.parametrize("measure", ["proc", "psutil"])
def test_pids_of_a_cgroup_replace_the_search(child: Child, measure: MemoryBackend) -> None:
    listed: list[int] = []
    with Child() as other, MemoryMeter(child.pid, backend=measure, pids=lambda: listed) as sampler:
        for now in ([], [other.pid], [child.pid, other.pid], [child.pid]):
            listed[:] = now
            assert {process.pid for process in sampler.read().processes} == set(now)


@pytest.mark.parametrize(("cost", "pause"), [(0.02, 2.0), (0.0, 0.25)])
def test_exact_looks_cost_one_percent_of_a_core_and_come_four_times_a_second_at_most(
    child: Child, cost: float, pause: float
) -> None:
    child.do("fork(lambda: None)")
    now, cpu = [0.0], itertools.count()  # the second is read at a look's start and its end
    with MemoryMeter(
        child.pid, clock=lambda: now[0], cpu_clock=lambda: cost * next(cpu)
    ) as sampler:

        def exact_after(seconds: float) -> bool:
            now[0] += seconds
            return sampler.read().exact

        assert sampler.read().exact
        assert not exact_after(pause - 0.01)
        assert exact_after(0.02)
        child.do("end_workers()")
        assert exact_after(0.0)  # a process went
        assert not exact_after(10 * pause - 0.01)  # alone it shares with nobody
        assert exact_after(0.02)


def test_the_measure_is_named_as_what_the_system_tells(
    tmp_path: Path, made_up: Callable[..., Path]
) -> None:
    assert measure_name() == "PSS"
    assert measure_name(proc=str(tmp_path)) == "USS"
    assert measure_name("psutil") == "USS"
    without = made_up(7, rollup=None)
    assert measure_name(proc=str(without)) == "RSS"


def test_without_proc_the_sampler_uses_psutil(child: Child, tmp_path: Path) -> None:
    with MemoryMeter(child.pid, proc=str(tmp_path)) as sampler:
        reading = sampler.exact()
    assert [process.pid for process in reading.processes] == [child.pid]
    assert reading.read_bytes is None


def write_process(
    proc: Path, pid: int | str, *, ppid: int = 1, rollup: str | None, children: str = ""
) -> Path:
    folder = proc / str(pid)
    (folder / "task" / str(pid)).mkdir(parents=True)
    (folder / "task" / str(pid) / "children").write_text(children)
    (folder / "status").write_text(
        f"Name:\tpython\nPPid:\t{ppid}\nVmRSS:\t     600 kB\n"
        "RssAnon:\t     300 kB\nRssFile:\t     200 kB\nRssShmem:\t     100 kB\n"
    )
    (folder / "stat").write_text(f"{pid} (a (strange) name) S {ppid} 0 0")
    if rollup is not None:
        (folder / "smaps_rollup").write_text(rollup)
    return folder


ROLLUP = (
    "0-1 ---p 00000000 00:00 0 [rollup]\nRss:     600 kB\nPss:     300 kB\nPss_Dirty:   0 kB\n"
    "Pss_Anon:    150 kB\nPss_File:    100 kB\nPss_Shmem:    50 kB\n"
)


@pytest.fixture
def made_up(tmp_path: Path) -> Callable[..., Path]:
    """Return a maker of a /proc with known numbers, which holds one process."""

    def make(pid: int, *, rollup: str | None = ROLLUP, children: str = "") -> Path:
        proc = tmp_path / "proc"
        write_process(proc, "self", rollup=rollup)
        write_process(proc, pid, rollup=rollup, children=children)
        (proc / "thread-self").mkdir()
        (proc / "thread-self" / "children").write_text("")
        return proc

    return make


def test_known_numbers_come_back(made_up: Callable[..., Path]) -> None:
    proc = made_up(7, children="8 9")
    write_process(proc, 8, ppid=7, rollup=ROLLUP)
    write_process(proc, 9, ppid=7, rollup=ROLLUP)
    (proc / "7" / "io").write_text("rchar: 99\nread_bytes: 4096\n")
    with MemoryMeter(7, proc=str(proc)) as sampler:
        cheap, exact = sampler.cheap(), sampler.exact()
    assert [(process.pid, process.ppid) for process in cheap.processes] == [(7, 1), (8, 7), (9, 7)]
    for reading, kibibytes in ((cheap, [300, 200, 100, 600]), (exact, [150, 100, 50, 600])):
        kinds = reading.anonymous_bytes, reading.file_bytes, reading.shared_bytes
        assert [*kinds, reading.rss_bytes] == [3 * 1024 * size for size in kibibytes]
    assert (cheap.exact, exact.exact) == (False, True)
    assert exact.read_bytes == 4096


@pytest.mark.parametrize("listed", ["before it was looked at", "before its exact figures"])
def test_a_process_that_ends_between_two_looks_is_left_out(
    made_up: Callable[..., Path], listed: str
) -> None:
    proc = made_up(7, children="8")
    if listed == "before its exact figures":
        write_process(proc, 8, ppid=7, rollup=None)
    with MemoryMeter(7, proc=str(proc)) as sampler:
        reading = sampler.exact()
    assert [process.pid for process in reading.processes] == [7]
    assert reading.exact


@pytest.mark.parametrize("rollup", [ROLLUP, None], ids=["another user's", "an old kernel"])
def test_a_missing_exact_figure_falls_back_to_the_cheap_one_and_says_so(
    made_up: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, rollup: str | None
) -> None:
    proc = made_up(7, rollup=rollup)
    really_open = os.open

    def forbid(path: str, flags: int) -> int:
        if path.endswith("7/smaps_rollup"):
            raise PermissionError(13, "Permission denied", path)
        return really_open(path, flags)

    with MemoryMeter(7, proc=str(proc)) as sampler:
        monkeypatch.setattr(os, "open", forbid)
        for reading in (sampler.exact(), sampler.read()):
            assert reading.anonymous_bytes == 300 * 1024
            assert not reading.exact


def test_a_kernel_that_lists_no_children_is_searched_by_parent(
    made_up: Callable[..., Path],
) -> None:
    proc = made_up(7)
    (proc / "thread-self" / "children").unlink()
    for pid, ppid in ((8, 7), (9, 8), (10, 1)):
        write_process(proc, pid, ppid=ppid, rollup=ROLLUP)
    with MemoryMeter(7, proc=str(proc)) as sampler:
        assert [process.pid for process in sampler.cheap().processes] == [7, 8, 9]


def test_a_correction_never_goes_below_zero(made_up: Callable[..., Path]) -> None:
    proc = made_up(7)
    with MemoryMeter(7, proc=str(proc), clock=lambda: 0.0) as sampler:
        sampler.exact()  # 150 KiB of its anonymous memory are somebody else's
        status = proc / "7" / "status"
        status.write_text(status.read_text().replace("300 kB", "100 kB"))
        reading = sampler.read()
    assert not reading.exact
    assert reading.anonymous_bytes == 0
    assert reading.file_bytes == 100 * 1024


def test_a_closed_sampler_holds_no_descriptor(child: Child) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    with MemoryMeter(child.pid) as sampler:
        sampler.exact()
        assert count() > before
    assert count() == before


@pytest.mark.skipif(measure_name() != "PSS", reason="shared pages are not told here")
def test_anonymous_memory_of_a_tree_counts_a_page_once_until_it_is_copied(child: Child) -> None:
    child.do(TAKE)
    before = anonymous_bytes(child.pid)
    child.do("fork(lambda: None)")
    shared = anonymous_bytes(child.pid)
    child.do(f"fork(lambda: ballast.__setitem__(slice(None), b'y' * {BALLAST}))")
    copied = anonymous_bytes(child.pid)
    assert shared - before < 0.1 * BALLAST
    assert copied - shared > 0.9 * BALLAST
    assert anonymous_bytes() == pytest.approx(anonymous_bytes(os.getpid()), rel=0.05)


@pytest.mark.skipif(measure_name() != "PSS", reason="shared memory is not told here")
def test_what_counts_against_a_budget_is_anonymous_and_shared_memory() -> None:
    before = budgeted_bytes()
    with mmap.mmap(-1, 32 * MIB) as shared:
        shared.write(bytes(32 * MIB))
        assert budgeted_bytes() - before == pytest.approx(32 * MIB, abs=4 * MIB)


@pytest.mark.skipif(measure_name() != "PSS", reason="shared pages are not told here")
def test_exact_readings_come_sooner_while_pages_stop_being_shared(child: Child) -> None:
    now, costs = [0.0], itertools.count(step=0.1)  # each reading costs a tenth of a second
    meter = MemoryMeter(child.pid, clock=lambda: now[0], cpu_clock=lambda: next(costs))
    child.do(TAKE)
    child.do("fork(lambda: None)")

    def is_exact(seconds: float) -> bool:
        now[0] = seconds
        return meter.read().exact

    assert [is_exact(0), is_exact(9), is_exact(11)] == [True, False, True]
    child.do(f"ballast[:] = b'y' * {BALLAST}")
    assert [is_exact(20), is_exact(22), is_exact(24), is_exact(25)] == [False, True, False, True]
    assert [is_exact(34), is_exact(36)] == [False, True]  # nothing moves any more
    child.do("fork(lambda: None)")  # who knows what the new one will do
    assert [is_exact(37), is_exact(39), is_exact(40)] == [True, False, True]
    meter.close()
