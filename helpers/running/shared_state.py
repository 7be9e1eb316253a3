"""The shared state of one experiment: a few numbers that the child writes and the watcher reads."""

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


class SharedState:
    """A few numbers in a file mapped by the child, which writes, and the watcher, which reads.

    Every field is one aligned 8-byte word with one writer, so no lock is needed. A file and not
    `multiprocessing.shared_memory`: a killed process must leave nothing in /dev/shm.
    """

    SIZE = 4096

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), self.SIZE)
        self._ints = memoryview(self._map).cast("q")
        self._floats = memoryview(self._map).cast("d")

    @classmethod
    def create(cls, path: Path) -> "SharedState":
        """Make the file, all zeros, and map it."""
        path.write_bytes(bytes(cls.SIZE))
        return cls(path)

    @property
    def phase(self) -> Phase:
        """Return where the child stands."""
        return Phase(self._ints[0])

    @phase.setter
    def phase(self, phase: Phase) -> None:
        self._ints[0] = phase

    @property
    def started(self) -> float:
        """Return the monotonic time at which the function was called, or 0.0 before."""
        return self._floats[1]

    @started.setter
    def started(self, seconds: float) -> None:
        self._floats[1] = seconds

    @property
    def ended(self) -> float:
        """Return the monotonic time at which the function ended, or 0.0 before."""
        return self._floats[9]

    @ended.setter
    def ended(self, seconds: float) -> None:
        self._floats[9] = seconds

    def seconds(self, now: float) -> float:
        """Return how long the function has run, or ran, as of the monotonic time `now`."""
        return (self.ended or now) - self.started if self.started else 0.0

    @property
    def owner(self) -> int:
        """Return the pid of the one process whose `track` counts: workers inherit the variable."""
        return self._ints[2]

    @owner.setter
    def owner(self, pid: int) -> None:
        self._ints[2] = pid

    def read(self) -> Counters:
        """Return the counters as they stand, the wait that is going on included."""
        samples, batches, data_bytes, expected = self._ints[3:7]
        waiting, working, _, since = self._floats[7:11]
        waiting += max(time.monotonic() - since, 0.0) if since else 0.0
        return Counters(samples, batches, data_bytes, waiting, working, expected or None)

    def begin_to_wait(self) -> None:
        """Note that a batch has been asked for."""
        self._floats[10] = time.monotonic()

    def stop_waiting(self, waited: float) -> None:
        """Note that no batch is being waited for any more, and for how long one was."""
        self._floats[10] = 0.0
        self._floats[7] += waited

    def expect(self, batches: int) -> None:
        """Add to the number of batches that are to come."""
        self._ints[6] += batches

    def add_batch(self, *, samples: int, data_bytes: int, waiting: float) -> None:
        """Add a batch that has just arrived."""
        self.stop_waiting(waiting)
        self._ints[3] += samples
        self._ints[4] += 1
        self._ints[5] += data_bytes

    def add_work(self, seconds: float) -> None:
        """Add the time spent on a batch."""
        self._floats[8] += seconds

    def close(self) -> None:
        """Unmap the file."""
        self._ints.release()
        self._floats.release()
        self._map.close()
