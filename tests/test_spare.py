"""A warm spare: started early, used once, and put away without a trace."""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import leftovers
import pytest

from helpers import budget
from helpers.budget import Group
from helpers.running import bench as bench_module
from helpers.running import spare as spare_module
from helpers.running.bench import Bench, sweep
from helpers.running.child import Order
from helpers.running.spare import FOLDER_PREFIX, LAST_BYTES, Spare


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A bench of our own."""
    bench = Bench()
    yield bench
    bench.clear()


def test_a_spare_waits_with_torch_imported(bench: Bench) -> None:
    bench.warm_up()
    spare = bench.waiting
    assert spare is not None
    assert spare.is_ready()
    taken = bench.take()
    try:
        assert taken is spare
        assert (spare.folder / "warm").exists()
        assert spare.is_ready()
        assert bench.waiting is None
    finally:
        spare.put_away()
    assert not spare.is_ready()
    spare.put_away()  # a second time is no error


def test_one_spare_is_enough(bench: Bench) -> None:
    bench.warm_up()
    first = bench.waiting
    bench.warm_up()
    assert bench.waiting is first


@pytest.mark.parametrize("name", ["process", "watcher"])
def test_a_spare_that_has_died_is_replaced(bench: Bench, name: str) -> None:
    bench.warm_up()
    first = bench.waiting
    process = getattr(first, name)
    process.kill()
    process.wait()
    bench.warm_up()
    assert bench.waiting is not first
    assert first is not None
    assert not first.folder.exists()


def test_a_spare_of_another_enforcer_is_replaced(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.warm_up()
    first = bench.waiting
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", "watcher")
    bench.warm_up()
    assert bench.waiting is not first
    assert bench.waiting is not None
    assert bench.waiting.group is None


def test_a_forked_process_leaves_its_parents_spare_alone(bench: Bench) -> None:
    bench.warm_up()
    parents = bench.waiting
    owner, bench._owner = bench._owner, os.getppid()  # as a fork sees it
    bench.clear()
    bench._owner = owner
    assert parents is not None
    assert parents.is_ready()
    parents.put_away()


def test_a_child_that_cannot_import_torch_says_why(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch is broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"import torch: [\s\S]*libtorch is broken"):
        bench.take()


def test_a_spare_that_fails_to_warm_up_is_replaced_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm, failed = Spare.wait_until_warm, list[Spare]()

    def fail_once(spare: Spare) -> None:
        if not failed:
            failed.append(spare)
            raise RuntimeError("a library did not load")
        warm(spare)

    monkeypatch.setattr(Spare, "wait_until_warm", fail_once)
    spare = bench.take()
    try:
        assert spare is not failed[0]
        assert not failed[0].folder.exists()
    finally:
        spare.put_away()


def test_a_child_that_never_gets_warm_is_given_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spare_module, "IMPORT_SECONDS", 0.0)
    with pytest.raises(RuntimeError, match="could not import torch: exit code None"):
        bench.take()


@pytest.mark.parametrize("name", ["_start_child", "_start_watcher"])
@pytest.mark.parametrize("error", [OSError(11, "no more processes"), KeyboardInterrupt()])
def test_half_a_spare_is_put_away(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException
) -> None:
    before = leftovers.traces()

    def fail(_: Spare) -> Any:
        raise error

    monkeypatch.setattr(Spare, name, fail)
    with pytest.raises(type(error)):
        bench.warm_up()
    assert bench.waiting is None
    assert leftovers.left_since(before) == []


def test_an_enforcer_that_nobody_has_leaves_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = leftovers.traces()
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", "nobody")
    with pytest.raises(ValueError, match="LARGER_THAN_RAM_ENFORCER is 'nobody'"):
        bench.warm_up()
    assert leftovers.left_since(before) == []


def test_of_what_was_written_the_last_lines_are_read(bench: Bench) -> None:
    bench.warm_up()
    spare = bench.waiting
    assert spare is not None
    assert spare.read("stdout") == ""
    assert spare.read("nothing of that name") == ""
    (spare.folder / "stdout").write_text("first\n" + "x" * LAST_BYTES + "\nlast \N{SNOWMAN}\n")
    assert spare.read("stdout", lines=1) == "last \N{SNOWMAN}"
    assert "first" not in spare.read("stdout")
    (spare.folder / "stdout").write_bytes(b"\xff broken\n")
    assert spare.read("stdout") == "\N{REPLACEMENT CHARACTER} broken"


def test_an_order_for_a_child_that_died_is_no_error(bench: Bench) -> None:
    bench.warm_up()
    spare = bench.waiting
    assert spare is not None
    spare.process.kill()
    spare.process.wait()
    spare.give(Order(pickle.dumps("x" * 2**20), [], "", {}, "spawn"))
    spare.tell_watcher("over")
    spare.watcher.wait(timeout=60)
    spare.tell_watcher("over")


@pytest.mark.parametrize("can_be_set", [True, False])
def test_a_child_in_a_scope_is_held_by_the_scopes_group(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, can_be_set: bool
) -> None:
    """As systemd-run does, `env` becomes the program that it starts."""
    group = Group(tmp_path, 2) if can_be_set else None
    monkeypatch.setattr(spare_module, "make_group", lambda: None)
    monkeypatch.setattr(spare_module, "scope_command", lambda: ["env", "--"])
    monkeypatch.setattr(spare_module, "group_of", lambda pid: group)
    spare = bench.take()
    assert spare.group == group
    assert spare.task().version == (2 if can_be_set else 0)
    spare.group = None  # it was made up
    spare.put_away()


def test_a_sweep_removes_folders_whose_kernel_is_gone_and_no_others() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    top = Path(tempfile.gettempdir())
    dead = top / f"{FOLDER_PREFIX}{gone.pid}-abc"
    kept = [top / f"{FOLDER_PREFIX}{os.getpid()}-abc", top / f"{FOLDER_PREFIX}x-abc"]
    for folder in (dead, *kept):
        folder.mkdir()
    sweep()
    assert not dead.exists()
    for folder in kept:
        folder.rmdir()


def test_the_first_spare_of_a_kernel_sweeps(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    swept = []
    monkeypatch.setattr(bench_module, "sweep", lambda: swept.append(True))
    bench.warm_up()
    bench.clear()
    bench.warm_up()
    assert swept == [True]


def test_the_modules_names_are_the_budgets() -> None:
    assert FOLDER_PREFIX.startswith(budget.PREFIX)
