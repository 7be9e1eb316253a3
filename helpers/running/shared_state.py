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


class _Fields(ctypes.Structure):
    """What stands in the file. Every field is one aligned 8-byte word with one writer: no lock."""

    phase: int
    owner: int
    samples: int
    batches: int
    data_bytes: int
    expected: int
    started: float
    ended: float
    waited: float
    worked: float
    waiting_since: float  # 0.0 while no batch is being waited for
    _fields_ = [
        (name, ctypes.c_double if kind is float else ctypes.c_int64)
        for name, kind in __annotations__.items()
    ]


class SharedState:
    """A few numbers in a file mapped by the child, which writes, and the watcher, which reads.

    A file and not `multiprocessing.shared_memory`: a killed process must leave nothing in /dev/shm.
    """

    SIZE = 4096

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), self.SIZE)
        self._fields = _Fields.from_buffer(self._map)

    @classmethod
    def create(cls, path: Path) -> "SharedState":
        """Make the file, all zeros, and map it."""
        path.write_bytes(bytes(cls.SIZE))
        return cls(path)

    @property
    def phase(self) -> Phase:
        """Return where the child stands."""
        return Phase(self._fields.phase)

    @phase.setter
    def phase(self, phase: Phase) -> None:
        self._fields.phase = phase

    @property
    def started(self) -> float:
        """Return the monotonic time at which the function was called, or 0.0 before."""
        return self._fields.started

    @started.setter
    def started(self, seconds: float) -> None:
        self._fields.started = seconds

    @property
    def ended(self) -> float:
        """Return the monotonic time at which the function ended, or 0.0 before."""
        return self._fields.ended

    @ended.setter
    def ended(self, seconds: float) -> None:
        self._fields.ended = seconds

    def seconds(self, now: float) -> float:
        """Return how long the function has run, or ran, as of the monotonic time `now`."""
        return (self.ended or now) - self.started if self.started else 0.0

    @property
    def owner(self) -> int:
        """Return the pid of the one process whose `track` counts: workers inherit the variable."""
        return self._fields.owner

    @owner.setter
    def owner(self, pid: int) -> None:
        self._fields.owner = pid

    def read(self) -> Counters:
        """Return the counters as they stand, the wait that is going on included."""
        now = self._fields
        since = now.waiting_since  # read once: the child may write it meanwhile
        waiting = now.waited + (max(time.monotonic() - since, 0.0) if since else 0.0)
        expected = now.expected or None
        return Counters(now.samples, now.batches, now.data_bytes, waiting, now.worked, expected)

    def begin_to_wait(self) -> None:
        """Note that a batch has been asked for."""
        self._fields.waiting_since = time.monotonic()

    def stop_waiting(self, waited: float) -> None:
        """Note that no batch is being waited for any more, and for how long one was."""
        self._fields.waiting_since = 0.0
        self._fields.waited += waited

    def expect(self, batches: int) -> None:
        """Add to the number of batches that are to come."""
        self._fields.expected += batches

    def add_batch(self, *, samples: int, data_bytes: int, waiting: float) -> None:
        """Add a batch that has just arrived."""
        self.stop_waiting(waiting)
        self._fields.samples += samples
        self._fields.batches += 1
        self._fields.data_bytes += data_bytes

    def add_work(self, seconds: float) -> None:
        """Add the time spent on a batch."""
        self._fields.worked += seconds

    def close(self) -> None:
        """Unmap the file. May be called again."""
        self._fields = _Fields()  # gives its hold on the map back
        self._map.close()
