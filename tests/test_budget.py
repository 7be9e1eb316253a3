"""RAM budgets: a real memory cgroup where one can be had, and made-up kernel files elsewhere."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers import budget
from helpers.budget import PREFIX, Group, enforcement, group_of, make_group, scope_command

MIB = 2**20
TAKES = "import sys; sys.stdin.read(1); held = bytearray(b'x') * (256 << 20); print('alive')"


@pytest.fixture
def group() -> Iterator[Group]:
    """A real cgroup."""
    made = make_group()
    if made is None:
        pytest.skip("no memory cgroup can be made here")
    yield made
    made.remove()


class Machine:
    """A made-up machine: its /proc, and a cgroup tree in which folders get the kernel's files."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proc, self.top = folder / "proc", folder / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        self.top.mkdir()
        self.files: list[str] = []
        make, remove = Path.mkdir, Path.rmdir

        def mkdir(path: Path, *args: Any, **kwargs: Any) -> None:
            make(path, *args, **kwargs)
            if path.is_relative_to(self.top):
                for name in self.files:
                    (path / name).write_text("")

        def rmdir(path: Path) -> None:
            if path.is_relative_to(self.top):  # the kernel's files are no hindrance
                for file in path.iterdir():
                    file.unlink()
            remove(path)

        monkeypatch.setattr(Path, "mkdir", mkdir)
        monkeypatch.setattr(Path, "rmdir", rmdir)

    def stand_in(self, inside: str, version: int, root: str = "/") -> Path:
        """Put this process into a group, and return the group's folder."""
        names = {1: "memory.limit_in_bytes", 2: "memory.max"}
        self.files = ["cgroup.procs", names[version]]
        line = f"5:memory:{inside}" if version == 1 else f"0::{inside}"
        kind, options = {1: ("cgroup", "rw,memory"), 2: ("cgroup2", "rw")}[version]
        (self.proc / "self" / "cgroup").write_text(f"9:cpu:{inside}\n{line}\n")
        (self.proc / "self" / "mountinfo").write_text(
            "20 1 0:1 / / rw - ext4 /dev/vda rw\n"
            f"32 31 0:32 {root} {self.top} rw,nosuid shared:9 - {kind} cgroup {options}\n"
        )
        folder = Path(self.top, inside.removeprefix(root.rstrip("/")).lstrip("/"))
        folder.mkdir(parents=True, exist_ok=True)
        for path in (folder, *folder.parents):
            if path != self.top and path.is_relative_to(self.top):
                for name in self.files:
                    (path / name).write_text("")
        return folder

    def make_group(self) -> Group | None:
        return make_group(str(self.proc))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_the_kernel_kills_what_is_over_the_limit_and_counts_it(group: Group) -> None:
    group.set_limit(64 * MIB)
    with subprocess.Popen(
        [sys.executable, "-c", TAKES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        group.admit(process.pid)
        assert group.pids() == [process.pid]
        out, _ = process.communicate("x")
    assert (process.returncode, out) == (-9, "")
    assert group.kills() == 1
    assert group.pids() == []
    assert group.remove()
    assert not group.path.exists()


def test_what_stays_under_the_limit_lives_and_is_charged(group: Group) -> None:
    group.set_limit(1024 * MIB)
    code = TAKES + "; sys.stdout.flush(); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        group.admit(process.pid)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("x")
        process.stdin.flush()
        assert process.stdout.readline() == "alive\n"
        assert 256 * MIB <= group.charged_bytes() <= 320 * MIB
        assert group.kills() == 0
        process.kill()


def test_a_group_that_is_in_use_is_not_removed(group: Group) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        group.admit(process.pid)
        assert not group.remove()
        process.kill()
    assert group.remove()
    assert group.remove()  # a second time is no error
    assert group.pids() == []


def test_version_1_makes_a_group_below_our_own(machine: Machine) -> None:
    own = machine.stand_in("/docker/ab12", 1)
    made = machine.make_group()
    assert made is not None
    assert (made.version, made.path.parent) == (1, own)
    assert made.path.name.startswith(f"{PREFIX}-{os.getpid()}-")


def test_version_2_makes_a_group_beside_our_own(machine: Machine) -> None:
    own = machine.stand_in("/user.slice/app.scope", 2)
    made = machine.make_group()
    assert made is not None
    assert (made.version, made.path.parent) == (2, own.parent)


def test_a_container_sees_its_own_group_as_the_top(machine: Machine) -> None:
    own = machine.stand_in("/docker/ab12", 1, root="/docker/ab12")
    assert own == machine.top
    (own / "memory.limit_in_bytes").write_text("")
    made = machine.make_group()
    assert made is not None
    assert made.path.parent == machine.top


def test_two_groups_have_two_names(machine: Machine) -> None:
    machine.stand_in("/docker/ab12", 1)
    first, second = machine.make_group(), machine.make_group()
    assert first is not None
    assert second is not None
    assert first.path != second.path


def test_there_is_no_group_beside_the_root(machine: Machine) -> None:
    machine.stand_in("/", 2)
    assert machine.make_group() is None
    assert not list(machine.top.parent.glob(f"{PREFIX}-*"))


def test_there_is_no_group_when_our_own_seems_to_be_the_root_of_a_namespace(
    machine: Machine,
) -> None:
    own = machine.stand_in("/", 2)
    (own / "memory.max").write_text("")  # a namespace's root has a limit, seen from inside as "/"
    assert machine.make_group() is None
    assert not list(machine.top.parent.glob(f"{PREFIX}-*"))


def test_there_is_no_group_when_the_new_one_gets_no_memory_control(machine: Machine) -> None:
    own = machine.stand_in("/user.slice/app.scope", 2)
    machine.files = ["cgroup.procs"]
    assert machine.make_group() is None
    assert not list(own.parent.glob(f"{PREFIX}-*"))


def test_there_is_no_group_where_we_may_not_write(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = machine.stand_in("/user.slice/app.scope", 2)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the tests may run as root
    assert machine.make_group() is None
    assert not list(own.parent.glob(f"{PREFIX}-*"))


def test_there_is_no_group_on_a_read_only_file_system(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.stand_in("/docker/ab12", 1)

    def refuse(path: Path) -> None:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert machine.make_group() is None


def test_there_is_no_group_without_proc(tmp_path: Path) -> None:
    assert make_group(str(tmp_path)) is None


@pytest.mark.parametrize("lines", ["", "4:cpu,cpuacct:/docker/ab12\n", "1:name=systemd:/\n"])
def test_there_is_no_group_without_a_memory_controller(machine: Machine, lines: str) -> None:
    machine.stand_in("/docker/ab12", 1)
    (machine.proc / "self" / "cgroup").write_text(lines)
    assert machine.make_group() is None


def test_a_hybrid_machine_is_version_1(machine: Machine) -> None:
    """Where memory belongs to version 1, version 2 is mounted as well and has no memory files."""
    own = machine.stand_in("/docker/ab12", 1)
    unified = machine.top / "unified"
    unified.mkdir()
    for file in unified.iterdir():
        file.unlink()
    with (machine.proc / "self" / "cgroup").open("a") as file_:
        file_.write("0::/\n")
    with (machine.proc / "self" / "mountinfo").open("a") as file_:
        file_.write(f"41 31 0:38 / {unified} rw - cgroup2 cgroup2 rw\n")
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
    limit = {1: "memory.limit_in_bytes", 2: "memory.max"}[version]
    assert (tmp_path / limit).read_text() == "4096"
    assert not (tmp_path / swap).exists()  # where swap is not accounted
    (tmp_path / swap).write_text("")
    group.set_limit(4096)
    assert (tmp_path / swap).read_text() == expected


@pytest.mark.parametrize(
    ("version", "texts"),
    [
        (1, {"memory.limit_in_bytes": f"{64 * MIB}", "memory.max_usage_in_bytes": f"{63 * MIB}"}),
        (2, {"memory.events": "max 9\noom 1\noom_kill 1\n"}),
    ],
)
def test_a_group_that_has_met_its_own_limit_is_told_from_one_killed_from_above(
    tmp_path: Path, version: int, texts: dict[str, str]
) -> None:
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert Group(tmp_path, version).was_full()
    (tmp_path / "memory.max_usage_in_bytes").write_text(f"{32 * MIB}")
    (tmp_path / "memory.events").write_text("max 9\noom 0\noom_kill 1\n")
    assert not Group(tmp_path, version).was_full()


@pytest.mark.parametrize(
    ("version", "name", "text"),
    [
        (1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
        (2, "memory.events", "low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 1\n"),
    ],
)
def test_kills_are_counted_in_both_versions(
    tmp_path: Path, version: int, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    assert Group(tmp_path, version).kills() == 3
    (tmp_path / name).write_text("under_oom 0\n")  # an old kernel does not count them
    assert Group(tmp_path, version).kills() == 0


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A systemd-run of our own, first on the path. It works: it runs what it is given."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return write_script(tmp_path / "systemd-run", 'while [ "$1" != true ]; do shift; done; true')


def write_script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
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
def test_a_scope_that_fails_is_not_asked_for(systemd: Path) -> None:
    write_script(systemd, "echo Failed to connect to bus >&2; exit 1")
    assert scope_command() == []


@needs_sh
def test_a_scope_that_hangs_is_not_waited_for(
    systemd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_script(systemd, "exec tail -f /dev/null")
    monkeypatch.setattr(budget, "PROBE_SECONDS", 0.2)
    assert scope_command() == []


def test_there_is_no_scope_without_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert scope_command() == []


def test_a_scope_that_cannot_be_started_is_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "systemd-run").write_bytes(b"\x7fELF not really")
    (tmp_path / "systemd-run").chmod(0o755)
    assert scope_command() == []


def test_the_group_of_a_process_in_no_scope_of_ours_is_none() -> None:
    assert group_of(os.getpid()) is None
    assert group_of(2**22 + 1) is None


def test_the_group_of_a_process_in_a_scope_of_ours_is_its_own(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert machine.make_group() is not None
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", "watcher")
    assert machine.make_group() is None
    assert scope_command() == []
    assert enforcement() == "watcher"


@pytest.mark.parametrize("value", ["", "auto"])
def test_the_best_enforcer_is_the_default(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    machine.stand_in("/docker/ab12", 1)
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", value)
    assert machine.make_group() is not None


def test_an_enforcer_that_nobody_has_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", "kernel")
    with pytest.raises(ValueError, match="LARGER_THAN_RAM_ENFORCER is 'kernel': set it to 'auto'"):
        enforcement()


@pytest.mark.parametrize(
    ("groups", "scope", "words"),
    [
        (Group(Path("nowhere"), 1), [], "kernel (cgroup v1)"),
        (Group(Path("nowhere"), 2), [], "kernel (cgroup v2)"),
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


def test_asking_who_will_enforce_leaves_no_group(group: Group) -> None:
    assert enforcement() == f"kernel (cgroup v{group.version})"
