import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from ballast import FORK, Child

from helpers.memory import Look, TreeSampler, measure_name


@pytest.fixture
def child() -> Iterator[Child]:
    with Child() as child:
        child.do(FORK)
        yield child


@pytest.fixture
def sampler(child: Child) -> Iterator[TreeSampler]:
    with TreeSampler(child.pid, measure="psutil") as sampler:
        yield sampler


def pids(look: Look) -> list[int]:
    return [process.pid for process in look.processes]


def test_nothing_outside_the_standard_library_is_imported_where_there_is_a_proc() -> None:
    code = (
        "import sys; from helpers.memory import TreeSampler, measure_name; import os\n"
        "TreeSampler(os.getpid()).look(); measure_name()\n"
        "print(*{'psutil', 'numpy', 'torch'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_workers_are_found_and_an_ended_one_is_left_out(child: Child, sampler: TreeSampler) -> None:
    child.do("fork(lambda: None); fork(lambda: None)")
    assert len(pids(sampler.look())) == 3
    child.do("os.kill(workers[0], signal.SIGKILL)")
    child.do("os.waitid(os.P_PID, workers[0], os.WEXITED | os.WNOWAIT)")
    assert len(pids(sampler.look())) == 2  # a zombie holds nothing
    child.do("end_workers()")
    assert pids(sampler.look()) == [child.pid]


def test_workers_whose_parent_was_killed_stay_in_the_tree(
    child: Child, sampler: TreeSampler
) -> None:
    child.do("fork(lambda: None)")
    main, worker = pids(sampler.look())
    assert main == child.pid
    child.kill()
    assert pids(sampler.look()) == [worker]
    os.kill(worker, signal.SIGKILL)


@pytest.mark.parametrize(
    "answer", [psutil.AccessDenied(), SimpleNamespace(rss=1)], ids=["forbidden", "no uss"]
)
def test_a_process_that_tells_no_private_memory_shows_its_rss_and_says_so(
    sampler: TreeSampler, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    def tell(process: psutil.Process) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(psutil.Process, "memory_full_info", tell)
    look = sampler.exact()
    assert not look.exact
    assert look.anonymous_bytes == look.rss_bytes > 0
    assert measure_name("psutil") == "RSS"


def test_a_process_that_ends_before_its_exact_figures_is_left_out(
    sampler: TreeSampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(process: psutil.Process) -> None:
        raise psutil.NoSuchProcess(process.pid)

    monkeypatch.setattr(psutil.Process, "memory_full_info", gone)
    look = sampler.exact()
    assert look.processes == ()
    assert look.exact
