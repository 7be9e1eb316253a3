"""A warm sandbox: started early, used once, and put away without a trace."""

import operator
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.budget import Group
from helpers.running import sandbox as spare_module
from helpers.running import warm_pool as pool_module
from helpers.running.run_folder import RunFolder, remove_segments
from helpers.running.sandbox import Sandbox
from helpers.running.warm_pool import WarmPool
from helpers.system.processes import kill


@pytest.fixture
def pool() -> Iterator[WarmPool]:
    pool = WarmPool()
    yield pool
    pool.clear()


def waiting(pool: WarmPool) -> Sandbox:
    pool.warm_up()
    assert pool.waiting is not None
    return pool.waiting


def test_one_spare_waits_with_torch_imported(pool: WarmPool) -> None:
    sandbox = waiting(pool)
    assert waiting(pool) is sandbox
    taken = pool.take()
    try:
        assert taken is sandbox
        assert (sandbox.folder / "warm").exists()
        assert sandbox.is_ready()
        assert pool.waiting is None
    finally:
        sandbox.put_away()
    assert not sandbox.is_ready()
    sandbox.put_away()  # a second time is no error


@pytest.mark.parametrize("name", ["pid", "watcher.pid"])
def test_a_spare_that_has_died_is_replaced(pool: WarmPool, name: str) -> None:
    first = waiting(pool)
    first.wait_until_warm()
    kill(operator.attrgetter(name)(first))
    first.watcher.wait()  # it goes with its child
    assert waiting(pool) is not first
    assert not first.folder.exists()


def test_a_spare_of_another_enforcer_is_replaced(
    pool: WarmPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = waiting(pool)
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", "watcher")
    second = waiting(pool)
    assert (second is first, second.group) == (False, None)


def test_a_forked_process_leaves_its_parents_spare_alone(pool: WarmPool) -> None:
    parents = waiting(pool)
    owner, pool._owner = pool._owner, os.getppid()  # as a fork sees it
    pool.clear()
    pool._owner = owner
    assert parents.is_ready()
    parents.put_away()


def test_a_child_that_cannot_import_torch_says_why(
    pool: WarmPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch is broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"import torch: [\s\S]*libtorch is broken"):
        pool.take()


def test_a_spare_that_fails_to_warm_up_is_replaced_once(
    pool: WarmPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm, failed = Sandbox.wait_until_warm, list[Sandbox]()

    def fail_once(sandbox: Sandbox, *_: Any) -> None:
        if not failed:
            failed.append(sandbox)
            raise RuntimeError("a library did not load")
        warm(sandbox)

    monkeypatch.setattr(Sandbox, "wait_until_warm", fail_once)
    sandbox = pool.take()
    try:
        assert sandbox is not failed[0]
        assert not failed[0].folder.exists()
    finally:
        sandbox.put_away()


def test_a_child_that_never_gets_warm_is_given_up(
    pool: WarmPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spare_module, "IMPORT_SECONDS", 0.0)
    with pytest.raises(RuntimeError, match="could not import torch: it said nothing"):
        pool.take()


@pytest.mark.parametrize("can_be_set", [True, False])
def test_a_child_in_a_scope_is_held_by_the_scopes_group(
    pool: WarmPool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, can_be_set: bool
) -> None:
    """As systemd-run does, `env` becomes the program that it starts."""
    group = Group(tmp_path, 2) if can_be_set else None
    monkeypatch.setattr(spare_module, "make_group", lambda: None)
    monkeypatch.setattr(spare_module, "scope_command", lambda: ["env", "--"])
    monkeypatch.setattr(spare_module, "group_of", lambda pid: group)
    sandbox = pool.take()
    assert sandbox.group == group
    assert RunFolder(sandbox.folder).group() == group
    sandbox.put_away()


def test_segments_of_others_are_left_alone(tmp_path: Path) -> None:
    names = [f"torch_{os.getpid()}_1_0", "torch_x_1_0", f"torch_{2**22 + 1}_1_0", "psm_1"]
    gone = tmp_path / f"torch_{2**22 + 2}_1_0"
    for path in [*(tmp_path / name for name in names), gone]:
        path.touch()
    ours = {os.getpid(), 2**22 + 2}
    remove_segments(ours, since=gone.stat().st_ctime + 1, folder=tmp_path)
    assert gone.exists()  # it was there before
    remove_segments(ours, since=gone.stat().st_ctime, folder=tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(tmp_path / name for name in names)


def test_sockets_have_short_names_wherever_temporary_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("deep" * 25)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    folder, lock = RunFolder.make()
    short = folder.temporary
    assert len(str(short)) < 40
    assert short.resolve() == folder.path / "tmp"
    folder.remove()
    lock.close()
    assert not short.is_symlink()
    assert not any(deep.iterdir())


def test_the_first_spare_of_a_caller_sweeps(
    pool: WarmPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = []
    monkeypatch.setattr(pool_module, "sweep", lambda: swept.append(True))
    pool.warm_up()
    pool.clear()
    pool.warm_up()
    assert swept == [True]
