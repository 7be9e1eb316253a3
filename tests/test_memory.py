import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ballast import FORK, MIB, Child

from helpers.memory import MemoryBackend, MemoryMeter, MemoryReading, measure_name

BALLAST = 200 * MIB


@pytest.fixture
def child() -> Iterator[Child]:
    with Child() as child:
        yield child


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ballast.bin"
    block = os.urandom(MIB)
    with path.open("wb") as out:
        for _ in range(BALLAST // MIB):
            out.write(block)
    return path


def added(before: MemoryReading, after: MemoryReading) -> tuple[float, float, float]:
    """Return how much each kind has grown, as a share of the ballast."""
    return (
        (after.anonymous_bytes - before.anonymous_bytes) / BALLAST,
        (after.file_bytes - before.file_bytes) / BALLAST,
        (after.shared_bytes - before.shared_bytes) / BALLAST,
    )


def take_anonymous(child: Child) -> None:
    child.do(f"ballast = bytearray(b'x') * {BALLAST}")


def touch_file(child: Child, file: Path) -> None:
    child.do(f"import mmap; file = open({str(file)!r}, 'rb')")
    child.do("mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)")
    child.do(f"for page in range(0, len(mapped), {mmap.PAGESIZE}): mapped[page]")


# One thread: a forked worker must not wait for threads that only its parent has.
IMPORT_TORCH = "import torch; torch.set_num_threads(1); torch.ones(9).share_memory_()"
SHARE = f"shared = torch.ones({BALLAST} // 4).share_memory_()"
FORK_TWO_READERS = FORK + "for _ in range(2): fork(lambda: shared.sum())"


@pytest.mark.parametrize("way", ["exact", "read"])
def test_anonymous_ballast_shows_as_anonymous_only(child: Child, way: str) -> None:
    with MemoryMeter(child.pid) as sampler:
        before = sampler.exact()
        take_anonymous(child)
        anonymous, file, shared = added(before, getattr(sampler, way)())
    assert 0.9 <= anonymous <= 1.1
    assert abs(file) < 0.1
    assert shared == 0


@pytest.mark.parametrize("way", ["exact", "read"])
def test_a_mapped_file_shows_as_file_backed_only(child: Child, file: Path, way: str) -> None:
    with MemoryMeter(child.pid) as sampler:
        before = sampler.exact()
        touch_file(child, file)
        anonymous, file_backed, shared = added(before, getattr(sampler, way)())
    assert 0.9 <= file_backed <= 1.1
    assert abs(anonymous) < 0.1
    assert shared == 0


def test_a_shared_tensor_shows_as_shared_and_readers_do_not_multiply_it(child: Child) -> None:
    child.do(IMPORT_TORCH)
    with MemoryMeter(child.pid) as sampler:
        before = sampler.exact()
        child.do(SHARE)
        anonymous, _, shared = added(before, sampler.read())
        assert 0.9 <= shared <= 1.1
        assert abs(anonymous) < 0.1

        child.do(FORK_TWO_READERS)
        new_processes, corrected, exact = sampler.read(), sampler.read(), sampler.exact()
        cheap = sampler.cheap()
        child.do("end_workers()")

    assert new_processes.exact  # processes came, so this reading was exact by itself
    assert not corrected.exact
    for reading in (new_processes, corrected, exact):
        assert len(reading.processes) == 3
        anonymous, _, shared = added(before, reading)
        assert 0.9 <= shared <= 1.1
        assert abs(anonymous) < 0.1
    assert added(before, cheap)[2] > 2.7  # what the correction is for


def test_memory_that_a_corrected_look_sees_grow_is_the_workers_own(child: Child) -> None:
    child.do(FORK + f"ballast = bytearray(b'x') * {BALLAST}")
    child.do("fork(lambda: None)")
    with MemoryMeter(child.pid, clock=lambda: 0.0) as sampler:
        before = sampler.exact()
        child.do(f"more = bytearray(b'x') * {BALLAST}")
        after = sampler.read()
        child.do("end_workers()")
    assert not after.exact
    assert 0.9 <= added(before, after)[0] <= 1.1


def test_psutil_shows_private_memory_as_anonymous_and_the_rest_as_file_backed(
    child: Child,
) -> None:
    child.do(IMPORT_TORCH)
    with MemoryMeter(child.pid, backend="psutil") as sampler:
        before = sampler.exact()
        take_anonymous(child)
        child.do(SHARE)
        child.do(FORK_TWO_READERS)
        first, second = sampler.read(), sampler.read()
        child.do("end_workers()")
    for reading in (first, second):  # its cheap figure cannot tell kinds: every reading is exact
        assert reading.exact
        assert len(reading.processes) == 3
        assert reading.read_bytes is None
        assert reading.shared_bytes == 0
        # The forked workers share the 200 MiB with their parent: private to nobody.
        assert added(before, reading)[0] < 0.1
        assert added(before, reading)[1] > 3


def test_psutil_sees_the_private_memory_of_one_process(child: Child) -> None:
    with MemoryMeter(child.pid, backend="psutil") as sampler:
        before = sampler.exact()
        take_anonymous(child)
        for reading in (sampler.read(), sampler.exact()):
            anonymous, file, _ = added(before, reading)
            assert 0.9 <= anonymous <= 1.1
            assert abs(file) < 0.1


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
    with (
        Child() as other,
        MemoryMeter(
            child.pid,
            backend=measure,
            pids=lambda: listed,
        ) as sampler,
    ):
        assert sampler.read().processes == ()
        listed.append(other.pid)
        assert [process.pid for process in sampler.read().processes] == [other.pid]
        listed[:] = [child.pid, other.pid]
        assert {process.pid for process in sampler.exact().processes} == {child.pid, other.pid}
        listed[:] = [child.pid]
        assert [process.pid for process in sampler.cheap().processes] == [child.pid]


class Clocks:
    """Two clocks that a test moves: of the wall, and of what looking costs."""

    def __init__(self, cost: float) -> None:
        self.now = 0.0
        self.cpu = 0.0
        self.cost = cost

    def cpu_clock(self) -> float:
        self.cpu += self.cost  # it is read twice in a reading: at its start and its end
        return self.cpu


def exact_after(sampler: MemoryMeter, clocks: Clocks, seconds: float) -> bool:
    clocks.now += seconds
    return sampler.read().exact


def test_exact_looks_come_so_rarely_that_they_cost_one_percent_of_a_core(child: Child) -> None:
    child.do(FORK + "fork(lambda: None)")
    clocks = Clocks(cost=0.02)
    with MemoryMeter(child.pid, clock=lambda: clocks.now, cpu_clock=clocks.cpu_clock) as sampler:
        assert sampler.read().exact
        assert not exact_after(sampler, clocks, 1.99)
        assert exact_after(sampler, clocks, 0.02)  # 2 s after one that cost 0.02 s
        child.do("end_workers()")
        assert exact_after(sampler, clocks, 0.0)  # a process went
        assert not exact_after(sampler, clocks, 19.9)  # alone it shares with nobody
        assert exact_after(sampler, clocks, 0.2)


def test_a_cheap_exact_look_still_comes_at_most_four_times_a_second(child: Child) -> None:
    child.do(FORK + "fork(lambda: None)")
    clocks = Clocks(cost=0.0)
    with MemoryMeter(child.pid, clock=lambda: clocks.now, cpu_clock=clocks.cpu_clock) as sampler:
        assert sampler.read().exact
        assert not exact_after(sampler, clocks, 0.24)
        assert exact_after(sampler, clocks, 0.02)
        child.do("end_workers()")


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
    kib = 3 * 1024
    assert (cheap.anonymous_bytes, cheap.file_bytes, cheap.shared_bytes, cheap.rss_bytes) == (
        300 * kib, 200 * kib, 100 * kib, 600 * kib,
    )  # fmt: skip
    assert (exact.anonymous_bytes, exact.file_bytes, exact.shared_bytes, exact.rss_bytes) == (
        150 * kib, 100 * kib, 50 * kib, 600 * kib,
    )  # fmt: skip
    assert (cheap.exact, exact.exact) == (False, True)
    assert exact.read_bytes == 4096


def test_a_process_that_vanishes_between_listing_and_reading_is_left_out(
    made_up: Callable[..., Path],
) -> None:
    proc = made_up(7, children="8")  # 8 is listed, and has no folder any more
    with MemoryMeter(7, proc=str(proc)) as sampler:
        reading = sampler.exact()
    assert [process.pid for process in reading.processes] == [7]
    assert reading.exact


def test_a_process_that_ends_before_its_exact_figures_is_left_out(
    made_up: Callable[..., Path],
) -> None:
    proc = made_up(7, children="8")
    write_process(proc, 8, ppid=7, rollup=None)
    with MemoryMeter(7, proc=str(proc)) as sampler:
        reading = sampler.exact()
    assert [process.pid for process in reading.processes] == [7]
    assert reading.exact


def test_a_forbidden_exact_figure_falls_back_to_the_cheap_one_and_says_so(
    made_up: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    proc = made_up(7)
    really_open = os.open

    def forbid(path: str, flags: int) -> int:
        if path.endswith("7/smaps_rollup"):
            raise PermissionError(13, "Permission denied", path)
        return really_open(path, flags)

    with MemoryMeter(7, proc=str(proc)) as sampler:
        monkeypatch.setattr(os, "open", forbid)
        readings = sampler.exact(), sampler.read()
    for reading in readings:
        assert reading.anonymous_bytes == 300 * 1024
        assert not reading.exact


def test_a_kernel_without_exact_figures_gives_its_cheap_ones_and_says_so(
    made_up: Callable[..., Path],
) -> None:
    proc = made_up(7, rollup=None)
    with MemoryMeter(7, proc=str(proc)) as sampler:
        reading = sampler.exact()
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


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_closed_sampler_holds_no_descriptor(child: Child) -> None:
    before = descriptors()
    with MemoryMeter(child.pid) as sampler:
        sampler.exact()
        assert descriptors() > before
    assert descriptors() == before
