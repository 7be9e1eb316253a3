"""A process tree through psutil, where there is no /proc: macOS, Windows.

What a process filled itself is told there by figures of different worth, and USS alone will not do:
it counts pages of a mapped file that only one process maps, and the system takes those back when it
needs them. The figures of macOS and Windows leave them out.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from helpers.system.procfs import ProcessMemory

_Figure = Callable[[Any], int]  # of a psutil.Process
_RUSAGE_INFO_V0, _WORDS, _PHYS_FOOTPRINT = 0, 12, 9  # macOS's record: 64-bit words, one of them


class PsutilTree:
    """A tree where there is no /proc: what `psutil_measure` names, or RSS where none is told."""

    def __init__(self, pid: int, pids: Callable[[], Iterable[int]] | None) -> None:
        import psutil  # only where it is needed: it takes time and memory to import

        self._psutil = psutil
        self._root = pid
        self._pids = pids
        self._known: dict[int, Any] = {}
        self._figures = _figures(sys.platform)

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
                told = _first_told(self._known[reading.pid], self._figures)
            except (self._psutil.NoSuchProcess, ProcessLookupError):  # it has ended
                continue
            if told is None:  # its RSS must do
                all_exact = False
                readings.append(reading)
            else:
                rest = max(reading.rss_bytes - told[1], 0)
                readings.append(replace(reading, anonymous_bytes=told[1], file_bytes=rest))
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
            for pid in listed - self._known.keys():
                with suppress(self._psutil.Error):  # it ended while we looked
                    self._known[pid] = self._psutil.Process(pid)
            return
        with suppress(self._psutil.Error):  # the root has ended: whoever was seen may still live
            root = self._known.get(self._root) or self._psutil.Process(self._root)
            for process in (root, *root.children(recursive=True)):
                self._known.setdefault(process.pid, process)


def psutil_measure() -> str:
    """Return the figure that our own process is told: the name of it, or "RSS" for none.

    "footprint" (macOS) is anonymous memory, compressed or not; "private bytes" (Windows) all that
    was promised to the process alone, touched or not; "USS" every page that no other process maps.
    """
    import psutil

    told = _first_told(psutil.Process(), _figures(sys.platform))
    return told[0] if told else "RSS"


def _figures(platform: str) -> dict[str, _Figure]:
    """Return what to ask for on `platform` (as in sys.platform), by name, the best first."""
    best: dict[str, _Figure] = {}
    if platform == "darwin":
        with suppress(OSError, AttributeError):  # a system without the library, or the call
            best["footprint"] = _footprint()
    elif platform == "win32":
        best["private bytes"] = lambda process: int(process.memory_info().private)
    return {**best, "USS": lambda process: int(process.memory_full_info().uss)}


def _first_told(process: Any, figures: Mapping[str, _Figure]) -> tuple[str, int] | None:
    """Return name and bytes of the first figure told. Raises an error where the process ended."""
    import psutil

    for name, figure in figures.items():
        try:
            return name, figure(process)
        except ProcessLookupError:
            raise
        except (psutil.AccessDenied, OSError, AttributeError):  # refused, or not known here
            continue
    return None


def _footprint() -> _Figure:
    """Return macOS's physical footprint, which libproc tells of every process of the same user."""
    import ctypes

    libproc = ctypes.CDLL("/usr/lib/libproc.dylib", use_errno=True)
    ask, record = libproc.proc_pid_rusage, ctypes.c_uint64 * _WORDS
    ask.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.POINTER(record))
    ask.restype = ctypes.c_int

    def footprint(process: Any) -> int:
        info = record()
        if ask(process.pid, _RUSAGE_INFO_V0, ctypes.byref(info)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))  # ESRCH makes it a ProcessLookupError
        return int(info[_PHYS_FOOTPRINT])

    return footprint
