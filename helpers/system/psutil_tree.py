"""A process tree through psutil, where there is no /proc: macOS, Windows."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from helpers.system.private_memory import figures, first_told
from helpers.system.procfs import ProcessMemory


class PsutilTree:
    """A tree where there is no /proc: what `psutil_measure` names, or RSS where none is told."""

    def __init__(self, pid: int, pids: Callable[[], Iterable[int]] | None) -> None:
        import psutil  # only where it is needed: it takes time and memory to import

        self._psutil = psutil
        self._root = pid
        self._pids = pids
        self._known: dict[int, Any] = {}
        self._figures = figures(sys.platform)

    def cheap(self) -> tuple[ProcessMemory, ...]:
        """Return every living process with its RSS as anonymous: nothing more is told cheaply."""
        self._discover()
        readings = []
        for pid, process in list(self._known.items()):
            try:
                rss, ppid = process.memory_info().rss, process.ppid()
            except self._psutil.Error:  # it has ended
                del self._known[pid]
                continue
            if rss:  # a zombie has none
                readings.append(ProcessMemory(pid, ppid, rss, 0, 0, rss))
        return tuple(readings)

    def exact(self, cheap: tuple[ProcessMemory, ...]) -> tuple[tuple[ProcessMemory, ...], bool]:
        """Return the processes with private memory as anonymous, and whether all told theirs.

        The rest of the RSS counts as file-backed: psutil tells shared memory on no system. Private
        memory may exceed the RSS: what is compressed, or promised and untouched, is not resident.
        """
        readings, all_exact = [], True
        for reading in cheap:
            try:
                told = first_told(self._known[reading.pid], self._figures)
            except self._psutil.Error:  # it has ended
                continue
            if told is None:  # its RSS must do
                readings.append(reading)
                all_exact = False
                continue
            _, private = told
            file_bytes = max(reading.rss_bytes - private, 0)
            readings.append(replace(reading, anonymous_bytes=private, file_bytes=file_bytes))
        return tuple(readings), all_exact

    def read_bytes(self) -> int | None:
        """Return None: elsewhere the count includes reads that the page cache answered."""
        return None

    def close(self) -> None:
        """Forget the processes."""
        self._known.clear()

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
    """Return the figure that our own process is told.

    "footprint" on macOS, "private bytes" on Windows, else "USS", or "RSS" where none is told.
    """
    import psutil

    try:
        told = first_told(psutil.Process(), figures(sys.platform))
    except psutil.Error:
        return "RSS"
    return told[0] if told else "RSS"
