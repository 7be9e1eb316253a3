"""The memory of a DataLoader's queue: reckoned, and as `run` sees it."""

from pathlib import Path
from typing import Any

import lesson_loaders as loaders
import numpy as np
import pytest
import torch
from running import MIB, run

from helpers.queued_memory import queued_bytes
from helpers.records import Outcome

needs_shared_memory = pytest.mark.skipif(not Path("/dev/shm").exists(), reason="Linux tells")
ROW = 8 * MIB


@pytest.mark.parametrize(
    ("batch", "one"),
    [
        (torch.zeros(4, 3), 48),
        (np.zeros((4, 3), np.uint8), 12),
        ([torch.zeros(2), (torch.zeros(3), None)], 20),
        ({"x": {"deep": torch.zeros(2)}, "none": None}, 8),
        (None, 0),
    ],
)
def test_a_queue_is_workers_times_prefetch_and_the_batch_in_hand(batch: Any, one: int) -> None:
    assert queued_bytes(batch, num_workers=0) == one
    assert queued_bytes(batch, num_workers=3) == 7 * one
    assert queued_bytes(batch, num_workers=2, prefetch_factor=4) == 9 * one


@pytest.mark.parametrize(("workers", "factor"), [(-1, 2), (1, 0)])
def test_numbers_that_cannot_be_are_refused(workers: int, factor: int) -> None:
    with pytest.raises(ValueError, match=f"num_workers={workers}, prefetch_factor={factor}: pass"):
        queued_bytes(torch.zeros(1), num_workers=workers, prefetch_factor=factor)


@needs_shared_memory
@pytest.mark.parametrize("enforcer", ["auto", "watcher"])
def test_a_run_sees_the_batches_that_nobody_has_taken_yet(
    enforcer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_ENFORCER", enforcer)
    record = run(loaders.wait_at_each, loaders.LargeRows(16), 2, 4, 0.1, ram_budget="2 GiB")
    assert record.finished
    reckoned = queued_bytes(torch.zeros(2**21), num_workers=2, prefetch_factor=4)
    assert abs(record.peak_shared_bytes / reckoned - 1) < 0.15


@needs_shared_memory
def test_the_watcher_ends_a_queue_that_is_over_the_budget(watcher_enforced: str) -> None:
    record = run(loaders.wait_at_each, loaders.LargeRows(200), 2, 80, 3)
    assert record.outcome is Outcome.KILLED
