"""The shared state of one experiment: a few numbers that the child writes and the watcher reads."""

import ctypes
import mmap
import time
from enum import IntEnum
from pathlib import Path

from helpers.records import Counters

STATE_VARIABLE = "LARGER_THAN_RAM_STATE"  # names the state's file; set by a run for its child


class Phase(IntEnum):
    """Where the child stands, as it says itself."""

    STARTING = 0
    READY = 1  # imports are done: the watcher may take the baseline
    GO = 2  # the watcher has it: the function may start
    DONE = 3  # the function has ended: the watcher may take a last look
    LEAVE = 4  # the watcher has it: the child may end


class SharedState(ctypes.Structure):
    """A few numbers in a file that child and watcher map. Each is one aligned word: no lock.

    A file and not `multiprocessing.shared_memory`: a killed process must leave nothing in /dev/shm.
    """

    phase: int
    owner: int  # the pid of the one process whose `track` counts: workers inherit the variable
    samples: int
    batches: int
    data_bytes: int
    expected: int  # batches that are to come in all
    started: float  # the monotonic time at which the function was called, or 0.0 before
    ended: float  # the one at which it ended, or 0.0 before
    waited: float
    worked: float
    waiting_since: float  # 0.0 while no batch is being waited for
    _fields_ = [
        (name, ctypes.c_double if kind is float else ctypes.c_int64)
        for name, kind in __annotations__.items()
    ]

    @classmethod
    def open(cls, path: Path) -> "SharedState":
        """Map the file for as long as the state is referred to. Raises OSError or ValueError."""
        with path.open("r+b") as file:
            return cls.from_buffer(mmap.mmap(file.fileno(), ctypes.sizeof(cls)))

    @classmethod
    def create(cls, path: Path) -> "SharedState":
        """Make the file, all zeros, and map it."""
        path.write_bytes(bytes(ctypes.sizeof(cls)))
        return cls.open(path)

    def seconds(self, now: float) -> float:
        """Return how long the function has run, or ran, as of the monotonic time `now`."""
        return (self.ended or now) - self.started if self.started else 0.0

    def read(self) -> Counters:
        """Return the counters as they stand, the wait that is going on included."""
        since = self.waiting_since  # read once: the child may write it meanwhile
        waiting = self.waited + (max(time.monotonic() - since, 0.0) if since else 0.0)
        counted = self.samples, self.batches, self.data_bytes
        return Counters(*counted, waiting, self.worked, self.expected or None)

    def stop_waiting(self, waited: float) -> None:
        """Note that no batch is being waited for any more, and for how long one was."""
        self.waiting_since = 0.0
        self.waited += waited
