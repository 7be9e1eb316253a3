"""What holds for every test: it leaves nothing behind."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import leftovers
import pytest
from ballast import FORK, MIB, Child, need_a_disk
from made_up_machine import Machine

from helpers.budget import enforcement


def pytest_configure() -> None:
    """Hear interrupts also where a shell started us in the background, which ignores them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def a_temporary_folder_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the tests a temporary folder that nobody else writes to, and the project's defaults."""
    tmp_path_factory.getbasetemp()  # before: what tests make in tmp_path may stay
    folder = Path(tempfile.mkdtemp(prefix="ltr-"))  # short: sockets lie in it
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("LARGER_THAN_RAM_")]:
            patch.delenv(name)
        patch.delenv("VIRTUAL_ENV", raising=False)  # of the shell: IPython warns of another's
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        leftovers.set_mark()
        yield
        left = list(folder.iterdir())
    shutil.rmtree(folder)
    assert not left, f"the session left {left}"


@pytest.fixture(scope="module", autouse=True)
def no_spare_outlives_its_module(a_temporary_folder_of_our_own: None) -> Iterator[None]:
    """Hold that nothing at all is left of a module's tests, when its warm sandbox is put away."""
    gc.collect()
    gc.freeze()  # what the imports made stays: else each collection would go over all of it
    before = leftovers.traces()
    yield
    if pool := sys.modules.get("helpers.running.warm_pool"):
        pool.pool.clear()
    left = leftovers.left_since(before)
    assert not left, f"the module left {left}"


@pytest.fixture(autouse=True)
def nothing_is_left(no_spare_outlives_its_module: None) -> Iterator[None]:
    """Hold that no process, shared memory, temporary file or cgroup is left of a test."""
    before = leftovers.traces()
    yield
    left = leftovers.left_since(before, allowed=leftovers.warm_spare)
    assert not left, f"the test left {left}"


@pytest.fixture
def gone_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder that has been removed."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    return tmp_path / "gone"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def kernel_enforced() -> str:
    """Say how the kernel enforces a budget here; skip the test where it cannot."""
    if not enforcement().startswith("kernel"):
        pytest.skip("no memory cgroup can be made here")
    return enforcement()


@pytest.fixture
def watcher_enforced(monkeypatch: pytest.MonkeyPatch) -> str:
    """Leave the budget to the watcher, as where no cgroup can be had."""
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", "watcher")
    return "watcher"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of 8 MiB on a disk, just written; its last page is not full."""
    need_a_disk(tmp_path)
    path = tmp_path / "rows.npy"
    path.write_bytes(os.urandom(8 * MIB + 123))
    return path


@pytest.fixture
def child() -> Iterator[Child]:
    """A process that takes on ballast and forks workers when it is told to."""
    with Child() as child:
        child.do(FORK)
        yield child
