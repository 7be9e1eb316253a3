"""The progress bar over the bytes of a dataset."""

from tqdm import tqdm


class Bar(tqdm):  # type: ignore[misc]  # tqdm brings no types
    """A bar of bytes that counts them also where it is not shown."""

    monitor_interval = 0  # no thread of its own, which a fork would have to mind
    done = 0

    def __init__(self, name: str, total: int, *, shown: bool) -> None:
        super().__init__(
            total=total,
            desc=name,
            unit="B",
            unit_scale=True,
            unit_divisor=1024,
            mininterval=0.5,
            disable=not shown,
        )

    def update(self, size: int) -> None:
        """Count some bytes more."""
        self.done += size
        super().update(size)
