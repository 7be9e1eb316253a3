"""`run` over its budget, for real: killed by the kernel, and by the watcher alone."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lesson_functions as lessons
import lesson_loaders as loaders
import numpy as np
import pytest
from running import BUDGET, MIB, needs_fork, run
from talking import Talking, said_by

from helpers.budget import PREFIX
from helpers.records import Outcome
from helpers.running.watch import FULL_SHARE, STALLED_SECONDS
from helpers.system.cgroups import Group, own_group

MOST = 1.1 * BUDGET  # that may be held before the watcher's kill has worked
needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")


@pytest.fixture(scope="module")
def four_times_the_budget(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file of zeros, in the page cache as far as anything gets that loads it.

    The rest takes no room on the disk. All of it would take none, but then the kernel frees and
    fills pages of the file for ten seconds before it kills.
    """
    path = tmp_path_factory.mktemp("data") / "zeros.npy"
    header = {"descr": "<f4", "fortran_order": False, "shape": (BUDGET,)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        start = file.tell()
        for _ in range(BUDGET * 5 // 4 // MIB):
            file.write(bytes(MIB))
        file.truncate(start + 4 * BUDGET)
    yield path
    path.unlink()


# The kernel


def test_the_kernel_kills_what_is_over_its_budget(
    kernel_enforced: str, four_times_the_budget: Path
) -> None:
    record = run(lessons.load_everything, four_times_the_budget)
    assert (record.outcome, record.enforced_by) == (Outcome.KILLED, kernel_enforced)
    assert record.ending == f"killed: over its 512 MiB budget, by the {kernel_enforced}"
    assert max(snapshot.charged_bytes or 0 for snapshot in record.snapshots) <= BUDGET


@needs_fork
def test_a_worker_killed_by_the_kernel_is_a_kill(kernel_enforced: str) -> None:
    record = run(loaders.one_epoch, loaders.FillsMemoryInOneWorker(64), 2, start_method="fork")
    assert record.outcome is Outcome.KILLED
    assert "RuntimeError: DataLoader worker" in record.error
    assert "which raised RuntimeError: DataLoader worker" in record.ending


@needs_fork
@pytest.mark.parametrize(
    ("then", "outcome", "value"), [("join", Outcome.FINISHED, -9), ("hang", Outcome.KILLED, None)]
)
def test_a_worker_killed_by_the_kernel_is_a_kill_only_if_somebody_misses_it(
    kernel_enforced: str, then: str, outcome: Outcome, value: int | None
) -> None:
    record = run(lessons.fork, lessons.hold, 2**30, then)
    assert (record.outcome, record.value, record.error) == (outcome, value, "")


# The container

IN_A_CONTAINER = """
import sys
from helpers import experiment
from helpers.running import fitting
from helpers.live import NoView
from lesson_functions import hold
fitting.RESERVED_SHARE = float(sys.argv[2])
r = experiment.run(hold, 2**31, ram_budget=sys.argv[1], view=NoView())
print(r.ending, r.enforced_by, bool(r.asked_bytes), sep="; ")
"""


@pytest.fixture
def container() -> Iterator[Group]:
    """A group for the caller and all its experiments, with a limit of 1 GiB."""
    own = own_group("/proc/self")
    if own is None or own.version != 1 or not os.access(own.path, os.W_OK):
        pytest.skip("no group with processes can be made below our own")
    made = Group(own.path / f"{PREFIX}-{os.getpid()}-container", 1)
    made.path.mkdir()
    made.set_limit(2**30)
    yield made
    assert made.remove()


@pytest.mark.parametrize("enforcer", ["auto", "watcher"])
@pytest.mark.parametrize(
    ("budget", "reserved", "lowered"),
    [("4 GiB", 0.05, True), ("1023 MiB", -1.0, False)],  # as if others took the room afterwards
)
def test_a_kill_at_the_limit_of_the_container_is_no_kill_at_the_budget(
    container: Group, enforcer: str, budget: str, reserved: float, lowered: bool
) -> None:
    env = os.environ | {"LARGER_THAN_RAM_ENFORCER": enforcer}
    with Talking(f"input()\n{IN_A_CONTAINER}", budget, reserved, env=env) as caller:
        container.admit(caller.pid)
        caller.tell("go on")
        ending, enforced_by, asked = caller.hear().split("; ")
    said = f"the 1 GiB limit of this container, below its {budget} budget"
    assert ending == f"killed: at {said}"
    assert asked == str(lowered)
    assert enforced_by.startswith("kernel, at the 1 GiB limit") or lowered


# The watcher alone


def best_of_three(peak: Callable[[], float]) -> float:
    """Return the lowest of up to three peaks: on a busy machine the watcher may have to wait."""
    lowest = float("inf")
    for _ in range(3):
        lowest = min(lowest, peak())
        if lowest <= MOST:
            break
    return lowest


@needs_fork
def test_the_watcher_kills_a_worker_at_no_more_than_a_tenth_over_the_budget(
    watcher_enforced: str, four_times_the_budget: Path
) -> None:
    def peak() -> float:
        record = run(lessons.fork, lessons.load_everything, four_times_the_budget, "join")
        assert record.ending == "killed: over its 512 MiB budget, by the watcher"
        return record.peak_anonymous_bytes

    assert BUDGET < best_of_three(peak) <= MOST


ACCOUNTS = f"""
import resource, sys
from pathlib import Path
from typing import Any
from lesson_functions import load_everything
from helpers.experiment import run
from helpers.live import NoView
r = run(load_everything, Path(sys.argv[1]), ram_budget={BUDGET}, view=NoView())
highest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
libraries = min(s.rss_bytes - s.anonymous_bytes for s in r.snapshots)
print(r.outcome, highest - libraries)
"""


@needs_proc
def test_the_childs_own_account_agrees(watcher_enforced: str, four_times_the_budget: Path) -> None:
    """The kernel keeps the highest RSS of children that have ended: no look can have missed it."""

    def peak() -> float:
        outcome, highest = said_by(ACCOUNTS, four_times_the_budget).split()
        assert outcome == "killed"
        return float(highest)

    assert BUDGET < best_of_three(peak) <= MOST


@needs_proc
def test_the_watcher_counts_files_in_shared_memory_that_nobody_maps(watcher_enforced: str) -> None:
    path = Path("/dev/shm", f"ltr-test-{os.getpid()}")
    try:
        record = run(lessons.write_to_shared_memory, path)
    finally:
        path.unlink(missing_ok=True)
    assert record.ending == "killed: over its 512 MiB budget, by the watcher"
    assert BUDGET < max(s.budgeted_bytes for s in record.snapshots) <= MOST


@needs_proc
def test_memory_that_the_system_would_not_give_is_refused(four_times_the_budget: Path) -> None:
    record = run(lessons.ask_for_too_much, four_times_the_budget)
    assert record.outcome is Outcome.REFUSED
    assert record.ending == "refused: the system would not give 2 GiB at once"
    assert "MemoryError" in record.error


def test_a_run_at_its_budget_without_headway_is_ended_by_the_watcher(
    kernel_enforced: str, tmp_path: Path
) -> None:
    with (tmp_path / "cold.npy").open("wb") as file:  # with a place on the disk, unlike zeros
        header = {"descr": "<f4", "fortran_order": False, "shape": (BUDGET // 2,)}
        np.lib.format.write_array_header_1_0(file, header)
        some = os.urandom(MIB)
        for _ in range(2 * BUDGET // MIB):
            file.write(some)
    record = run(lessons.pickle_a_map, tmp_path / "cold.npy", cold=[tmp_path / "cold.npy"])
    assert record.outcome is Outcome.KILLED
    full = [s.seconds for s in record.snapshots if s.budgeted_bytes > FULL_SHARE * BUDGET]
    assert record.seconds - full[0] < 3 * STALLED_SECONDS
    assert record.why_not_cold == ""


@pytest.mark.parametrize("enforcer", ["auto", "watcher"])
def test_a_map_of_the_same_file_finishes(
    enforcer: str, four_times_the_budget: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", enforcer)
    record = run(lessons.map_everything, four_times_the_budget)
    assert record.outcome is Outcome.FINISHED
    assert record.added_anonymous_bytes < BUDGET / 8


def test_a_run_knows_that_its_file_ended_in_the_page_cache(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.ones(16 * MIB // 4, "f4"))
    functions: dict[Callable[..., Any], float] = {lessons.map_everything: 1, str: 0}
    for function, share in functions.items():
        record = run(function, tmp_path / "rows.npy", cold=[tmp_path / "rows.npy"])
        assert (record.cold[0].resident_at_end or 0) / record.cold[0].file_bytes == share
        assert bool(record.why_in_ram) == bool(share)


def test_it_works_without_proc_and_cgroups(
    watcher_enforced: str, four_times_the_budget: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS and Windows."""
    monkeypatch.setenv("LARGER_THAN_RAM_BACKEND", "psutil")
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])

    def peak() -> float:
        record = run(lessons.load_everything, four_times_the_budget)
        assert record.ending == "killed: over its 512 MiB budget, by the watcher"
        assert (record.measure, record.start_method, record.read_bytes) == ("USS", "spawn", None)
        return record.peak_anonymous_bytes

    assert BUDGET < best_of_three(peak) <= MOST
    assert run(loaders.one_epoch, loaders.Rows(64), 0).value == 64
