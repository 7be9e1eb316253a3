"""Files that a process tree writes to /dev/shm: they take RAM, and are mapped by nobody."""

import contextlib
from collections.abc import Iterable
from pathlib import Path


class SharedFiles:
    """The files in shared memory that processes were seen to hold open, also after they close them.

    A process that opens, fills and closes one between two looks is missed. Only Linux tells.
    """

    def __init__(self, folder: Path = Path("/dev/shm")) -> None:  # noqa: S108 - only looked at
        self._folder = str(folder)
        self._known: dict[str, tuple[int, int]] = {}  # path: device and inode

    def size_bytes(self, pids: Iterable[int]) -> int:
        """Return the RAM that their files take now."""
        for pid in pids:
            with contextlib.suppress(OSError):  # it has ended, or is another user's
                for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                    path = str(descriptor.readlink())
                    if path.startswith(self._folder):
                        stat = descriptor.stat()  # of the file itself, through the descriptor
                        self._known[path] = (stat.st_dev, stat.st_ino)
        return sum(self._size(path, identity) for path, identity in self._known.items())

    def _size(self, path: str, identity: tuple[int, int]) -> int:
        try:
            stat = Path(path).stat()
        except OSError:  # removed: what is still mapped counts as shared memory
            return 0
        return stat.st_blocks * 512 if (stat.st_dev, stat.st_ino) == identity else 0
