"""Files that a process tree has in /dev/shm: they take RAM, also where nobody maps them."""

import contextlib
from collections.abc import Iterable
from pathlib import Path


class SharedFiles:
    """The files in shared memory that processes were seen to hold open, also after they close them.

    A removed one counts while somebody holds it open: so lie the batches that a DataLoader's
    workers have made ready, until the main process takes them. A process that opens, fills and
    closes a file between two looks is missed. Only Linux tells.
    """

    def __init__(self, folder: Path = Path("/dev/shm")) -> None:  # noqa: S108 - only looked at
        self._folder = str(folder)
        self._known: dict[str, tuple[int, int]] = {}  # path: device and inode

    def size_bytes(self, pids: Iterable[int]) -> int:
        """Return the RAM that their files take now."""
        removed: dict[tuple[int, int], int] = {}
        for pid in pids:
            with contextlib.suppress(OSError):  # it has ended, or is another user's
                for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                    path = str(descriptor.readlink())
                    if path.startswith(self._folder):
                        stat = descriptor.stat()  # of the file itself, through the descriptor
                        identity = (stat.st_dev, stat.st_ino)
                        if stat.st_nlink:
                            self._known[path] = identity
                        else:
                            removed[identity] = stat.st_blocks * 512
        return sum(removed.values()) + sum(
            self._size(path, identity) for path, identity in self._known.items()
        )

    def _size(self, path: str, identity: tuple[int, int]) -> int:
        try:
            stat = Path(path).stat()
        except OSError:  # removed: it is among those, or closed
            return 0
        return stat.st_blocks * 512 if (stat.st_dev, stat.st_ino) == identity else 0
