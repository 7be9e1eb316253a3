"""The memory that a process filled itself, as a system without /proc tells it: best figure first.

USS alone will not do: it counts pages of a mapped file that only one process maps, and the system
takes those back when it needs them. The figures of macOS and Windows leave them out.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

Figure = Callable[[Any], int]  # of a psutil.Process
_RUSAGE_INFO_V0 = 0
_UUID_WORDS = 2
_FIELDS = (
    "user_time", "system_time", "pkg_idle_wkups", "interrupt_wkups", "pageins", "wired_size",
    "resident_size", "phys_footprint", "proc_start_abstime", "proc_exit_abstime",
)  # fmt: skip


def figures(platform: str) -> dict[str, Figure]:
    """Return what to ask for on `platform` (as in sys.platform), by name, the best first.

    "footprint" is anonymous memory, compressed or not; "private bytes" all that was promised to
    the process alone, touched or not; "USS" every page that no other process maps.
    """
    best: dict[str, Figure] = {}
    if platform == "darwin":
        with suppress(OSError, AttributeError):  # a system without the library, or the call
            best["footprint"] = _footprint()
    elif platform == "win32":
        best["private bytes"] = lambda process: int(process.memory_info().private)
    return {**best, "USS": lambda process: int(process.memory_full_info().uss)}


def first_told(process: Any, figures: Mapping[str, Figure]) -> tuple[str, int] | None:
    """Return the name and bytes of the first figure that is told; None where none is.

    Raises psutil.NoSuchProcess when the process has ended.
    """
    import psutil  # only where it is needed: it takes time and memory to import

    for name, figure in figures.items():
        try:
            return name, figure(process)
        except ProcessLookupError as ended:
            raise psutil.NoSuchProcess(process.pid) from ended
        except (psutil.AccessDenied, OSError, AttributeError):  # refused, or not known here
            continue
    return None


def _footprint() -> Figure:
    """Return macOS's physical footprint, which libproc tells of every process of the same user.

    Raises OSError or AttributeError where it cannot be asked; the figure raises OSError.
    """
    import ctypes

    libproc = ctypes.CDLL("/usr/lib/libproc.dylib", use_errno=True)
    ask = libproc.proc_pid_rusage
    rusage_info_v0 = ctypes.c_uint64 * (_UUID_WORDS + len(_FIELDS))
    ask.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.POINTER(rusage_info_v0))
    ask.restype = ctypes.c_int

    def footprint(process: Any) -> int:
        info = rusage_info_v0()
        if ask(process.pid, _RUSAGE_INFO_V0, ctypes.byref(info)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))  # ESRCH makes it a ProcessLookupError
        return int(info[_UUID_WORDS + _FIELDS.index("phys_footprint")])

    return footprint
