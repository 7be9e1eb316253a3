"""The folder of one run. It names everything that the run has in the system, and goes with it.

Whoever made it holds a lock on a file in it until he ends, however he ends. So a folder whose lock
can be had is an orphan: the next start ends what the folder names, and removes it.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from helpers.system.cgroups import Group
from helpers.system.locks import try_lock
from helpers.system.processes import end_all, is_alive, members

FOLDER_PREFIX = "larger-than-ram-run-"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the segments of other programs are looked at
_SHORT_PREFIX = "/tmp/ltr-"  # noqa: S108 - what follows is the random name of a folder of ours
# macOS takes 103 bytes; Linux has 4 more, and multiprocessing's name is shorter than torch's.
_LONGEST = 103 - len("/torch-shm-dir-123456/manager.sock")


class RunFolder:
    """A folder, as its maker, the watcher or a sweep sees it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._link = Path(_SHORT_PREFIX + path.name.removeprefix(FOLDER_PREFIX))

    @classmethod
    def make(cls) -> tuple["RunFolder", contextlib.ExitStack]:
        """Return a new folder, and its lock: close it to let go."""
        while True:
            folder = cls(Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-")))
            lock = contextlib.ExitStack()
            with contextlib.suppress(FileNotFoundError):  # a sweep was quicker
                if lock.enter_context(try_lock(folder.path / "lock")):
                    folder._make_room_for_temporary_files()
                    return folder, lock
            lock.close()

    def _make_room_for_temporary_files(self) -> None:
        inside = self.path / "tmp"
        inside.mkdir()
        if sys.platform != "win32" and len(os.fsencode(inside)) > _LONGEST:
            with contextlib.suppress(OSError):  # no /tmp: then there is no short name
                self._link.symlink_to(inside)

    @property
    def temporary(self) -> Path:
        """Return where the run keeps temporary files. Sockets lie there: their names are short."""
        return self._link if self._link.is_symlink() else self.path / "tmp"

    def note_group(self, group: Group) -> None:
        """Note the cgroup that the run's processes stand in."""
        (self.path / "group").write_text(f"{group.version} {group.path}", encoding="utf-8")

    def group(self) -> Group | None:
        """Return the cgroup that was noted."""
        try:
            version, path = (self.path / "group").read_text(encoding="utf-8").split(" ", 1)
            return Group(Path(path), int(version))
        except (OSError, ValueError):
            return None

    def note_pid(self, pid: int) -> None:
        """Note a process of the run; the first one is its main process."""
        with (self.path / "pids").open("a", encoding="utf-8") as file:
            file.write(f"{pid}\n")

    def pids(self) -> list[int]:
        """Return the processes that were noted, the main one first."""
        try:
            return [int(pid) for pid in (self.path / "pids").read_text(encoding="utf-8").split()]
        except (OSError, ValueError):
            return []

    def end(self, *, session: int = 0, adopter: int = 0) -> bool:
        """End the run's processes; remove its cgroup and shared memory. Say whether all are gone.

        `session` is the pid of the main process, as long as it cannot belong to another one since.
        """
        group, noted = self.group(), set(self.pids())

        def find() -> set[int]:
            known = noted if session else ()  # in a sweep, numbers may be others' by now
            mark = f"TMPDIR={self.temporary}\0"
            found = members(session, mark=mark, adopter=adopter, known=known)
            return found | set(group.pids() if group else ())

        seen: set[int] = set()
        gone = end_all(find, seen)
        if group is not None:
            gone = group.remove() and gone
        with contextlib.suppress(OSError):  # the folder has gone, and all else before it
            remove_segments(seen | noted, since=(self.path / "lock").stat().st_mtime)
        return gone

    def remove(self, *, session: int = 0, adopter: int = 0) -> None:
        """End everything, and remove the folder. May be called again."""
        self.end(session=session, adopter=adopter)
        self._link.unlink(missing_ok=True)
        shutil.rmtree(self.path, ignore_errors=True)


def sweep() -> None:
    """Clean up after runs whose caller and watcher were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*-*"):
        with contextlib.suppress(OSError), try_lock(path / "lock") as orphaned:  # another user's
            if orphaned:
                RunFolder(path).remove()


def remove_segments(pids: Iterable[int], *, since: float, folder: Path = SHARED_MEMORY) -> None:
    """Remove the segments of shared tensors that ended processes made after the time `since`.

    torch names them `torch_<pid>_...`, gives them their size and only then takes the name away:
    a process that is killed in between leaves them. `since` is in seconds, as `time.time` has it.
    """
    for path in folder.glob("torch_*_*"):
        maker = path.name.split("_")[1]
        if not maker.isdigit() or int(maker) not in pids or is_alive(int(maker)):
            continue
        with contextlib.suppress(OSError):  # it has gone, or it is another user's
            made = path.stat()
            if made.st_ctime >= since and made.st_uid == os.getuid():
                path.unlink()
