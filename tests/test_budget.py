"""RAM budgets: a real memory cgroup where one can be had, and made-up kernel files elsewhere."""

import errno
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from made_up_machine import Machine
from refusals import refusal
from talking import Talking

from helpers import budget
from helpers.budget import PREFIX, Group, enforcement, group_of, make_group, scope_command

MIB = 2**20
TAKES = """
import sys
input()
held = bytearray(b"x") * (256 << 20)
print("alive", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def group() -> Iterator[Group]:
    made = make_group()
    if made is None:
        pytest.skip("no memory cgroup can be made here")
    yield made
    made.remove()


@pytest.mark.parametrize(("limit_mib", "lives"), [(64, False), (1024, True)])
def test_the_kernel_kills_what_is_over_the_limit_and_counts_it(
    group: Group, limit_mib: int, lives: bool
) -> None:
    group.set_limit(limit_mib * MIB)
    with Talking(TAKES) as process:
        group.admit(process.pid)
        assert group.pids() == [process.pid]
        assert not group.remove()  # it is in use
        process.tell("go on")
        assert process.hear() == ("alive" if lives else "")
        assert not lives or 256 * MIB <= group.charged_bytes() <= 320 * MIB
        process.kill()
    assert group.kills() == (0 if lives else 1)
    assert group.remove()
    assert group.remove()  # a second time is no error
    assert (group.pids(), group.path.exists()) == ([], False)


@pytest.mark.parametrize(
    ("version", "inside", "root", "parent"),
    [
        (1, "/docker/ab12", "/", "docker/ab12"),
        (2, "/user.slice/app.scope", "/", "user.slice"),
        (1, "/docker/ab12", "/docker/ab12", ""),  # a container sees its own group as the top
    ],
)
def test_a_group_is_made_below_our_own_or_in_version_2_beside_it(
    machine: Machine, version: int, inside: str, root: str, parent: str
) -> None:
    machine.stand_in(inside, version, root=root)
    (machine.top / "memory.limit_in_bytes").write_text("")
    first, second = machine.make_group(), machine.make_group()
    assert first is not None
    assert second is not None
    assert (first.version, first.path.parent) == (version, machine.top / parent)
    assert first.path.name.startswith(f"{PREFIX}-{os.getpid()}-")
    assert first.path != second.path


def test_there_is_no_group_beside_the_root(machine: Machine) -> None:
    machine.stand_in("/", 2)
    assert machine.make_group() is None
    (machine.top / "memory.max").write_text("")  # a namespace's root has one, seen inside as "/"
    assert machine.make_group() is None
    assert not list(machine.top.parent.glob(f"{PREFIX}-*"))


@pytest.mark.parametrize(
    "hinder",
    [
        lambda machine, patch: setattr(machine, "files", ["cgroup.procs"]),  # no memory control
        lambda machine, patch: patch.setattr(os, "access", lambda path, mode: False),
        lambda machine, patch: patch.setattr(Path, "mkdir", refusal(errno.EROFS)),
        lambda machine, patch: (machine.proc / "self/cgroup").unlink(),  # no /proc
        lambda machine, patch: (machine.proc / "self/cgroup").write_text("4:cpu:/a\n1:name=x:/\n"),
    ],
)
def test_there_is_no_group_where_the_system_does_not_let_us(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, hinder: Callable[..., object]
) -> None:
    own = machine.stand_in("/user.slice/app.scope", 2)
    hinder(machine, monkeypatch)
    assert machine.make_group() is None
    assert not list(own.parent.glob(f"{PREFIX}-*"))


def test_a_hybrid_machine_is_version_1(machine: Machine) -> None:
    """Where memory belongs to version 1, version 2 is mounted as well and has no memory files."""
    own = machine.stand_in("/docker/ab12", 1)
    machine.files = []
    unified = machine.top / "unified"
    unified.mkdir()
    machine.files = ["cgroup.procs", "memory.limit_in_bytes"]
    with (machine.proc / "self" / "cgroup").open("a") as file:
        file.write("0::/\n")
    with (machine.proc / "self" / "mountinfo").open("a") as file:
        file.write(f"41 31 0:38 / {unified} rw - cgroup2 cgroup2 rw\n")
    made = machine.make_group()
    assert made is not None
    assert (made.version, made.path.parent) == (1, own)


@pytest.mark.parametrize(
    ("version", "swap", "expected"),
    [(1, "memory.memsw.limit_in_bytes", "4096"), (2, "memory.swap.max", "0")],
)
def test_the_limit_leaves_no_swap(tmp_path: Path, version: int, swap: str, expected: str) -> None:
    group = Group(tmp_path, version)
    group.set_limit(4096)
    assert (group.limit_bytes(), (tmp_path / swap).exists()) == (4096, False)  # not accounted
    (tmp_path / swap).write_text("")
    group.set_limit(4096)
    assert (tmp_path / swap).read_text() == expected


@pytest.mark.parametrize(
    ("version", "texts", "kills", "full"),
    [
        (1, ["oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 63 * MIB], 3, True),
        (1, ["under_oom 0\n", 32 * MIB], 0, False),  # an old kernel does not count them
        (2, ["low 0\nmax 9\noom 1\noom_kill 3\noom_group_kill 1\n"], 3, True),
        (2, ["max 9\noom 0\noom_kill 1\n"], 1, False),  # killed at a limit above
    ],
)
def test_kills_are_counted_and_whether_the_group_has_met_its_own_limit(
    tmp_path: Path, version: int, texts: list[object], kills: int, full: bool
) -> None:
    group = Group(tmp_path, version)
    group.set_limit(64 * MIB)
    names = {1: ["memory.oom_control", "memory.max_usage_in_bytes"], 2: ["memory.events"]}
    for name, text in zip(names[version], texts, strict=True):
        (tmp_path / name).write_text(str(text))
    assert (group.kills(), group.was_full()) == (kills, full)


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A systemd-run of our own, first on the path. It works: it runs what it is given."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return write_script(tmp_path / "systemd-run", 'while [ "$1" != echo ]; do shift; done; "$@"')


def write_script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


needs_sh = pytest.mark.skipif(not Path("/bin/sh").exists(), reason="there is no /bin/sh")


@needs_sh
def test_a_scope_is_asked_for_where_it_can_be_had(systemd: Path) -> None:
    words = scope_command()
    assert words[:3] == ["systemd-run", "--user", "--scope"]
    assert words[-1] == "--"
    assert any(word.startswith(f"--unit={PREFIX}-{os.getpid()}-") for word in words)
    assert scope_command() != words  # every run has a name of its own


@needs_sh
@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: write_script(path, "echo Failed to connect to bus >&2; exit 1"),
        lambda path: write_script(path, "exec tail -f /dev/null"),  # it hangs
        lambda path: path.write_bytes(b"\x7fELF not really"),
    ],
)
def test_a_scope_that_fails_is_not_asked_for(
    systemd: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], object]
) -> None:
    monkeypatch.setattr(budget, "PROBE_SECONDS", 0.2)
    spoil(systemd)
    assert scope_command() == []
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # then every status reads 0
    try:
        assert scope_command() == []
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_there_is_no_scope_without_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert scope_command() == []


def test_the_group_of_a_process_is_the_scope_of_ours_that_it_is_in(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert group_of(os.getpid()) is None
    scope = machine.stand_in(f"/user.slice/{PREFIX}-7-1.scope", 2)
    own = budget.own_group
    monkeypatch.setattr(budget, "own_group", lambda process: own(str(machine.proc / "self")))
    assert group_of(7) == Group(scope, 2)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert group_of(7) is None


def test_the_watcher_can_be_asked_for(
    systemd: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.stand_in("/docker/ab12", 1)
    for best in ("", "auto"):
        monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", best)
        assert machine.make_group() is not None
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", "watcher")
    assert machine.make_group() is None
    assert scope_command() == []
    assert enforcement() == "watcher"
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", "kernel")
    with pytest.raises(ValueError, match="LARGER_THAN_RAM_ENFORCER is 'kernel': set it to 'auto'"):
        enforcement()


@pytest.mark.parametrize(
    ("groups", "scope", "words"),
    [
        (Group(Path("nowhere"), 1), [], "kernel (cgroup v1)"),
        (None, ["systemd-run"], "kernel (cgroup v2)"),
        (None, [], "watcher"),
    ],
)
def test_it_says_who_will_enforce(
    monkeypatch: pytest.MonkeyPatch, groups: Group | None, scope: list[str], words: str
) -> None:
    monkeypatch.setattr(budget, "make_group", lambda: groups)
    monkeypatch.setattr(budget, "scope_command", lambda: scope)
    assert enforcement() == words
