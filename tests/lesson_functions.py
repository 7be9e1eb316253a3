"""What the tests give to `run`: each function does one thing, and is named by it."""

import ctypes
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

MIB = 2**20


def add(first: int, second: int) -> int:
    return first + second


def say_where_we_are() -> dict[str, Any]:
    return {
        "folder": str(Path.cwd()),
        "path": list(sys.path),
        "environment": dict(os.environ),
    }


# Ways to end


def complain() -> NoReturn:
    print("about to fail", file=sys.stderr)
    raise ValueError("row 7 is not a row")


def write_into_nothing() -> None:
    ctypes.memset(0, 1, 1)


def hang() -> None:
    threading.Event().wait()


def kill_itself_with(number: int) -> None:
    os.kill(os.getpid(), number)
    hang()


def have_no_room_for_the_result() -> int:
    """Make every write to a file fail, as on a full disk."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    return 1


# Things to leave behind


def hang_with_two_workers(path: Path, start_method: str) -> None:
    """Hang, and let two workers wait for a semaphore that has a name in /dev/shm under spawn."""
    context = multiprocessing.get_context(start_method)
    semaphore = context.Semaphore(0)
    workers = [context.Process(target=_wait_for, args=(semaphore, path)) for _ in range(2)]  # type: ignore[attr-defined]
    for worker in workers:
        worker.start()
    hang()


def _wait_for(semaphore: Any, path: Path) -> None:
    with path.open("a") as file:
        file.write(f"{os.getpid()}\n")  # whole or not at all
    semaphore.acquire()


def leave_a_process_behind() -> int:
    """Start a process that would wait for ever, and return its pid."""
    code = "import threading; threading.Event().wait()"
    return subprocess.Popen([sys.executable, "-c", code]).pid


def run_inside() -> None:
    from helpers import run

    run(add, 1, 2)


def fill_shared_memory() -> None:
    kept = []
    while True:
        kept.append(torch.ones(32 * MIB, dtype=torch.uint8).share_memory_())  # type: ignore[no-untyped-call]


def write_to_shared_memory(path: Path) -> None:
    """Write a file piece by piece, and map nothing."""
    with path.open("wb") as file:
        for _ in range(64):
            file.write(bytes(16 * MIB))
            time.sleep(0.02)


def ask_for_too_much(path: Path) -> float:
    """Load a file where the system would not give its size at once."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (path.stat().st_size, resource.RLIM_INFINITY))
    return load_everything(path)


def pickle_a_map(path: Path) -> int:
    """Fill memory with a file's copy, while the file's own pages are taken back and read again."""
    return len(pickle.dumps(np.load(path, mmap_mode="r")))


def share_by_name_and_be_killed() -> None:
    torch.multiprocessing.set_sharing_strategy("file_system")  # type: ignore[no-untyped-call]
    kept = [torch.ones(MIB, dtype=torch.uint8).share_memory_() for _ in range(20)]  # type: ignore[no-untyped-call]
    kill_itself_with(9)
    assert kept


def leave_a_daemon_behind() -> int:
    """Start a process that is nobody's child and leads its own session, and return its pid."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if (pid := os.fork()) == 0:
            hang()
        os.write(write, pid.to_bytes(4, "little"))
        os._exit(0)
    return int.from_bytes(os.read(read, 4), "little")


# Memory


def fill(size: int) -> None:
    """Fill anonymous memory piece by piece, and hold it for a moment."""
    held = [bytearray(b"x") * MIB for _ in range(size // MIB)]
    time.sleep(0.1)
    assert held


def hold(size: int = 2**30) -> None:
    """Fill anonymous memory, and hold it for ever."""
    held = bytearray(b"x") * size
    hang()
    assert held


def load_everything(path: Path) -> float:
    return float(np.load(path).sum())


def map_everything(path: Path) -> float:
    rows = np.load(path, mmap_mode="r")
    return float(sum(float(part.sum()) for part in np.array_split(rows, 64)))


def fork(function: Callable[..., Any], argument: Any, then: str) -> int | None:
    """Let a plain child of ours do something: "join" it and survive its death, or "hang"."""
    process = multiprocessing.get_context("fork").Process(target=function, args=(argument,))
    process.start()
    process.join() if then == "join" else hang()
    return process.exitcode


# Values


class Stubborn:
    """Cannot be pickled."""

    def __reduce__(self) -> NoReturn:
        raise RuntimeError("I stay here")


class OnlyThere:
    """Can be pickled, and not loaded in another process."""

    def __init__(self) -> None:
        self.pid = os.getpid()

    def __setstate__(self, state: dict[str, int]) -> None:
        if state["pid"] != os.getpid():
            raise RuntimeError("I live elsewhere")


def make(kind: str) -> Any:
    """Return an object of a class of this module, which the caller need not be able to make."""
    return globals()[kind]()


def raise_stubborn() -> NoReturn:
    raise ValueError(Stubborn())


class LeavesWhenPickled:
    def __reduce__(self) -> NoReturn:
        sys.exit("gone")


class LeavesWhenLoaded:
    def __reduce__(self) -> Any:
        return sys.exit, ("gone",)


def raise_a_long_line() -> NoReturn:
    raise ValueError("first" + 10_000_000 * "x" + "last")


def raise_a_name_that_is_no_text() -> NoReturn:
    raise FileNotFoundError(os.fsdecode(b"rows-\xff.npy"))


def use_colors() -> None:
    import colorsys

    colorsys.rgb_to_hls(1, 1, 1)


# Streams and the like


def print_a_lot() -> None:
    for number in range(50_000):
        print(f"line {number}", flush=number == 49_999)
    os.write(1, b"\xff is no text\n")
    print("the last words", file=sys.stderr)


def flood_a_stream(size: int) -> None:
    """Crash after a flood, if the run's own folder has not grown by it."""
    line = b"x" * 65_535 + b"\n"
    for _ in range(size // len(line)):
        os.write(2, line)
    folder = Path(tempfile.gettempdir()).resolve().parent
    assert sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) < MIB
    write_into_nothing()


def close_the_streams() -> int:
    sys.stdout.close()
    sys.stderr.close()
    return 1


def change_folder_and_leave_a_file(folder: Path) -> str:
    os.chdir(folder)
    Path("kept").write_text("kept")
    return str(Path.cwd())
