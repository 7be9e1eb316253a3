"""A machine made up by hand: what its kernel tells stands in files below a folder."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from helpers.budget import Group, make_group
from helpers.system.cgroups import LIMIT


class Machine:
    """A made-up machine: its /proc, and a cgroup tree in which folders get the kernel's files."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proc, self.top = folder / "proc", folder / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        self.top.mkdir()
        self.files: list[str] = []
        make = Path.mkdir

        def mkdir(path: Path, *args: Any, **kwargs: Any) -> None:
            make(path, *args, **kwargs)
            self.fill(path)

        monkeypatch.setattr(Path, "mkdir", mkdir)
        monkeypatch.setattr(Path, "rmdir", shutil.rmtree)  # the kernel's files are no hindrance

    def fill(self, folder: Path) -> None:
        if folder != self.top and folder.is_relative_to(self.top):
            for name in self.files:
                (folder / name).write_text("")

    def stand_in(
        self, inside: str, version: int, root: str = "/", controller: str = "memory"
    ) -> Path:
        """Put this process into a group, and return the group's folder."""
        self.files = ["cgroup.procs", LIMIT[version]]
        line = f"5:{controller}:{inside}" if version == 1 else f"0::{inside}"
        kind, options = {1: ("cgroup", f"rw,{controller}"), 2: ("cgroup2", "rw")}[version]
        (self.proc / "self" / "cgroup").write_text(f"9:devices:{inside}\n{line}\n")
        (self.proc / "self" / "mountinfo").write_text(
            "20 1 0:1 / / rw - ext4 /dev/vda rw\n"
            f"32 31 0:32 {root} {self.top} rw,nosuid shared:9 - {kind} cgroup {options}\n"
        )
        folder = Path(self.top, inside.removeprefix(root.rstrip("/")).lstrip("/"))
        folder.mkdir(parents=True, exist_ok=True)
        for path in (folder, *folder.parents):
            self.fill(path)
        return folder

    def make_group(self) -> Group | None:
        return make_group(str(self.proc))
