"""What the tests give to `run`: each function does one thing, and is named by it."""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from helpers.progress import track

MIB = 2**20


def add(first: int, second: int) -> int:
    return first + second


def say_where_we_are() -> dict[str, Any]:
    return {
        "folder": str(Path.cwd()),
        "path": list(sys.path),
        "start_method": multiprocessing.get_start_method(),
        "variable": os.environ.get("LESSON_VARIABLE"),
        "pid": os.getpid(),
    }


# Ways to end


def complain() -> NoReturn:
    print("about to fail", file=sys.stderr)
    raise ValueError("row 7 is not a row")


def leave_without_a_word() -> NoReturn:
    os._exit(3)


def exit_politely() -> NoReturn:
    sys.exit(3)


def write_into_nothing() -> None:
    ctypes.memset(0, 1, 1)


def hang() -> None:
    threading.Event().wait()


def kill_itself_with(number: int) -> None:
    os.kill(os.getpid(), number)
    hang()


def say_its_pid_and_hang(path: Path) -> None:
    _say(path, os.getpid())
    hang()


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
    _say(path, os.getpid())
    semaphore.acquire()


def leave_a_process_behind() -> int:
    """Start a process that would wait for ever, and return its pid."""
    code = "import threading; threading.Event().wait()"
    return subprocess.Popen([sys.executable, "-c", code]).pid


def leave_a_daemon_behind(*, look: bool) -> int:
    """Start a process that is nobody's child and leads its own session, and return its pid.

    With `look`, it stays our child for a while, so that whoever watches the tree can see it.
    """
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if look:
            time.sleep(0.5)
        if (pid := os.fork()) == 0:
            hang()
        os.write(write, pid.to_bytes(4, "little"))
        os._exit(0)
    return int.from_bytes(os.read(read, 4), "little")


def leave_a_file(path: Path) -> None:
    path.write_text("kept")


def _say(path: Path, number: int) -> None:
    """Add a line to a file, whole or not at all."""
    with path.open("a") as file:
        file.write(f"{number}\n")


# Memory


def hold(size: int) -> None:
    """Fill anonymous memory in pieces, and hold it."""
    held = [bytearray(b"x") * min(MIB, size) for _ in range(max(size // MIB, 1))]
    assert held


def load_everything(path: Path) -> float:
    return float(np.load(path).sum())


def map_everything(path: Path) -> float:
    rows = np.load(path, mmap_mode="r")
    return float(sum(float(part.sum()) for part in np.array_split(rows, 64)))


def fork_a_holder(size: int) -> str:
    """Let a plain child of ours fill memory, and survive its death."""
    worker = multiprocessing.get_context("fork").Process(target=hold, args=(size,))
    worker.start()
    worker.join()
    return f"the worker ended with {worker.exitcode}"


def return_zeros(size: int) -> Any:
    return np.zeros(size, dtype=np.uint8)


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


def return_stubborn() -> Stubborn:
    return Stubborn()


def return_only_there() -> OnlyThere:
    return OnlyThere()


def raise_stubborn() -> NoReturn:
    raise ValueError(Stubborn())


# Streams and the like


def print_a_lot() -> None:
    for number in range(200_000):
        print(f"line {number}")
    print("the last words", file=sys.stderr)


def close_stdout() -> int:
    sys.stdout.close()
    sys.stderr.close()
    return 1


def change_folder(path: Path) -> str:
    os.chdir(path)
    return str(Path.cwd())


# Loaders


class Rows(Dataset[torch.Tensor]):
    """Zeros made on demand; some worker may misbehave."""

    def __init__(self, count: int, width: int = 64) -> None:
        self.count, self.width = count, width

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(self.width)


class FillsMemoryInAWorker(Rows):
    """Holds memory in worker 0 and nowhere else."""

    def __getitem__(self, index: int) -> torch.Tensor:
        info = torch.utils.data.get_worker_info()
        if info is not None and info.id == 0:
            hold(2**30)
        return super().__getitem__(index)


class ComplainsWhenUnpickled(Rows):
    """Cannot be made again in a spawned worker."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        raise AttributeError("no such row")


def one_epoch(dataset: Dataset[torch.Tensor], workers: int, start_method: str | None = None) -> int:
    loader = DataLoader(
        dataset, batch_size=16, num_workers=workers, multiprocessing_context=start_method
    )
    return sum(len(rows) for rows in track(loader))


def slow_epoch(batches: int, path: Path | None = None) -> None:
    """Track one batch after another, and say when the third has come."""
    for number, _ in enumerate(track(_slowly(batches))):
        if number == 2 and path is not None:
            _say(path, number)


def _slowly(batches: int) -> Any:
    for _ in range(batches):
        time.sleep(0.01)
        yield torch.zeros(4, 8)


class CallsTrack(Rows):
    """Calls `track` where it should not count: in a worker."""

    def __getitem__(self, index: int) -> torch.Tensor:
        return sum(track([torch.ones(self.width)] * 3), torch.zeros(self.width))
