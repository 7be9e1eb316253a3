"""A process and its descendants: who lives, what each holds, and what they read from the disk."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from helpers.procfs import Process, ProcessLook, children_by_scan, lists_children

Pids = Callable[[], Iterable[int]]


class ProcTree:
    """A tree on Linux, through /proc.

    A process stays in the tree when its parent dies: it was seen before, and its descriptors
    tell whether it still lives.
    """

    def __init__(self, pid: int, pids: Pids | None, proc: str) -> None:
        self._proc = proc
        self._pids = pids
        self._scans = not lists_children(proc)
        self._known: dict[int, Process] = {}
        self._reads = DiskReads()
        self._open(pid)

    def cheap(self) -> tuple[ProcessLook, ...]:
        """Return every living process as its own counters tell."""
        if self._pids is not None:
            return self._listed(self._pids)
        children = children_by_scan(self._proc) if self._scans else None
        looks = []
        queue = list(self._known)
        for pid in queue:  # grows as children are found
            look = self._cheap(pid)
            if look is None:
                continue
            looks.append(look)
            own = self._known[pid].children() if children is None else children.get(pid, ())
            queue += [child for child in own if child not in self._known and self._open(child)]
        return tuple(looks)

    def exact(self, cheap: tuple[ProcessLook, ...]) -> tuple[tuple[ProcessLook, ...], bool]:
        """Return the processes with shared pages shared out, and whether all of them were."""
        pairs = [(look, self._known[look.pid].exact(look)) for look in cheap]
        return tuple(exact or look for look, exact in pairs), all(exact for _, exact in pairs)

    def read_bytes(self) -> int | None:
        """Return the bytes that the tree has read from the disk, also by processes now gone."""
        return self._reads.total(self._known)

    def close(self) -> None:
        """Give back the open descriptors."""
        for process in self._known.values():
            process.close()
        self._known.clear()

    def _listed(self, pids: Pids) -> tuple[ProcessLook, ...]:
        try:
            listed = set(pids())
        except OSError:  # the cgroup went with its last process
            listed = set()
        for pid in self._known.keys() - listed:
            self._forget(pid)
        known = [pid for pid in sorted(listed) if pid in self._known or self._open(pid)]
        return tuple(look for pid in known if (look := self._cheap(pid)) is not None)

    def _cheap(self, pid: int) -> ProcessLook | None:
        try:
            return self._known[pid].cheap()
        except OSError:  # it has ended
            self._forget(pid)
            return None

    def _open(self, pid: int) -> bool:
        try:
            self._known[pid] = Process(pid, self._proc)
        except OSError:  # it ended while we looked
            return False
        return True

    def _forget(self, pid: int) -> None:
        self._known.pop(pid).close()


class DiskReads:
    """What a tree has read from the disk, each byte counted once, also after a process ended.

    The kernel adds a child's count to its parent's when the parent waits for it. So what is lost
    with a process is compared with what its nearest living ancestor gained, and the rest is kept.
    """

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._parents: dict[int, int] = {}
        self._kept = 0
        self._told = False

    def total(self, known: dict[int, Process]) -> int | None:
        """Return the bytes so far; drops processes from `known` that have just ended."""
        values = self._read_all(known)
        lost: defaultdict[int | None, int] = defaultdict(int)
        for pid in self._last.keys() - values.keys():
            lost[self._heir(pid, values)] += self._last[pid]
        for heir, size in lost.items():
            gained = 0 if heir is None else values[heir] - self._last.get(heir, 0)
            self._kept += max(size - gained, 0)
        self._last = values
        self._told = self._told or bool(values)
        return self._kept + sum(values.values()) if self._told else None

    def _read_all(self, known: dict[int, Process]) -> dict[int, int]:
        """Read parents before children, again from the start when one has just ended.

        So no value holds a child's count that is also counted as the child's own.
        """
        while True:
            values = {}
            for pid, process in known.items():
                self._parents[pid] = process.ppid
                try:
                    value = process.read_bytes()
                except OSError:
                    break
                if value is not None:
                    values[pid] = value
            else:
                return values
            known.pop(pid).close()

    def _heir(self, pid: int, living: dict[int, int]) -> int | None:
        for _ in range(len(self._parents)):
            pid = self._parents.get(pid, 0)
            if pid in living:
                return pid
        return None


class PsutilTree:
    """A tree where there is no /proc: private memory (USS), or RSS where not even that is told."""

    def __init__(self, pid: int, pids: Pids | None) -> None:
        import psutil  # only where it is needed: it takes time and memory to import

        self._psutil = psutil
        self._root = pid
        self._pids = pids
        self._known: dict[int, Any] = {}

    def cheap(self) -> tuple[ProcessLook, ...]:
        """Return every living process with its RSS as anonymous: nothing more is told cheaply."""
        self._discover()
        looks = []
        for pid, process in list(self._known.items()):
            try:
                rss, ppid = process.memory_info().rss, process.ppid()
            except self._psutil.Error:  # it has ended
                del self._known[pid]
                continue
            looks.append(ProcessLook(pid, ppid, rss, 0, 0, rss))
        return tuple(looks)

    def exact(self, cheap: tuple[ProcessLook, ...]) -> tuple[tuple[ProcessLook, ...], bool]:
        """Return the processes with private memory as anonymous, and whether all told theirs.

        The rest of the RSS counts as file-backed: psutil tells shared memory on no system.
        """
        pairs = [(look, self._exact(look)) for look in cheap]
        return tuple(exact or look for look, exact in pairs), all(exact for _, exact in pairs)

    def read_bytes(self) -> int | None:
        """Return None: elsewhere the count includes reads that the page cache answered."""
        return None

    def close(self) -> None:
        """Forget the processes."""
        self._known.clear()

    def _exact(self, look: ProcessLook) -> ProcessLook | None:
        try:
            full = self._known[look.pid].memory_full_info()
            uss = min(int(full.uss), look.rss_bytes)
        except (self._psutil.Error, AttributeError):
            return None
        return replace(look, anonymous_bytes=uss, file_bytes=look.rss_bytes - uss)

    def _discover(self) -> None:
        if self._pids is not None:
            listed = set(self._pids())
            self._known = {pid: known for pid, known in self._known.items() if pid in listed}
            self._know(listed)
            return
        try:
            root = self._known.get(self._root) or self._psutil.Process(self._root)
            children = root.children(recursive=True)
        except self._psutil.Error:  # the root has ended: whoever was seen before may still live
            return
        for process in (root, *children):
            self._known.setdefault(process.pid, process)

    def _know(self, pids: set[int]) -> None:
        for pid in pids - self._known.keys():
            try:
                self._known[pid] = self._psutil.Process(pid)
            except self._psutil.Error:  # it ended while we looked
                continue


def psutil_measure() -> str:
    """Return "USS" where psutil tells it for our own process, else "RSS"."""
    import psutil

    try:
        return "USS" if hasattr(psutil.Process().memory_full_info(), "uss") else "RSS"
    except psutil.Error:
        return "RSS"
