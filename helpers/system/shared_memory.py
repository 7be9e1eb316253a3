"""What a killed process leaves in /dev/shm, as far as its name tells whose it was."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from helpers.system.processes import is_alive

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the segments of other programs are looked at


def remove_segments(pids: Iterable[int], *, since: float, folder: Path = SHARED_MEMORY) -> None:
    """Remove the segments of shared tensors that ended processes made after the time `since`.

    torch names them `torch_<pid>_...`, gives them their size and only then takes the name away:
    a process that is killed in between leaves them. `since` is in seconds, as `time.time` has it.
    """
    for path in folder.glob("torch_*_*"):
        maker = path.name.split("_")[1]
        if not maker.isdigit() or int(maker) not in pids or is_alive(int(maker)):
            continue
        with contextlib.suppress(OSError):  # it has gone, or it is another user's
            made = path.stat()
            if made.st_ctime >= since and made.st_uid == os.getuid():
                path.unlink()
