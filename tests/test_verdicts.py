"""`judge`: three runs of a loop, with a clock of our own."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from helpers.verdicts import Verdict, judge


class MadeUp:
    """A loader and a step that move a clock; the first batch of each pass takes 50 s more."""

    def __init__(self, loading: float, working: float, batches: int | None = None) -> None:
        self.loading, self.working, self.batches = loading, working, batches
        self.now, self.given = 0.0, 0

    def __iter__(self) -> Iterator[int]:
        self.now += 50
        for number in count() if self.batches is None else range(self.batches):
            self.now += self.loading
            self.given += 1
            yield number

    def step(self, batch: Any) -> None:
        self.now += self.working

    def judged(self, batches: int = 10) -> Verdict:
        return judge(self, self.step, batches=batches, clock=lambda: self.now)


def test_a_loader_and_a_step_in_turn_take_the_sum() -> None:
    verdict = MadeUp(3, 1).judged()
    assert (verdict.loader_seconds, verdict.step_seconds, verdict.both_seconds) == (3, 1, 4)
    assert (verdict.waiting_share, verdict.most_gain, verdict.batches) == (0.75, 4, 10)
    assert repr(verdict) == (
        "the accelerator waits 75% of the time: at most 4.0 times as fast, if loading took no "
        "time; loader alone 3e+03 ms, step alone 1e+03 ms, both 4e+03 ms"
    )


def test_loading_that_is_free_is_called_so() -> None:
    verdict = MadeUp(0.0004, 0.02).judged()
    assert verdict.loading_is_free
    assert repr(verdict).startswith("loading is already free (the accelerator waits 2% of the time")
    assert not MadeUp(0.002, 0.02).judged().loading_is_free


def test_an_endless_loader_is_left_after_its_batches() -> None:
    loader = MadeUp(1, 1)
    loader.judged(batches=7)
    assert loader.given == 2 * 8  # the first of each pass is not timed


def test_a_short_loader_is_judged_by_what_it_has() -> None:
    assert MadeUp(3, 1, batches=3).judged().batches == 2


def test_batches_that_workers_have_made_ready_are_not_timed() -> None:
    loader = MadeUp(1, 1)
    loader.num_workers, loader.prefetch_factor = 2, 4  # type: ignore[attr-defined]
    loader.judged(batches=7)
    assert loader.given == 2 * (1 + 8 + 7)


@pytest.mark.parametrize("batches", [0, 1])
def test_a_loader_with_nothing_to_time_is_refused(batches: int) -> None:
    with pytest.raises(ValueError, match=rf"gave {batches} batch\(es\): pass one that gives 2"):
        MadeUp(1, 1, batches=batches).judged()


@pytest.mark.parametrize("batches", [0, -1, 2.5, "many"])
def test_a_number_of_batches_that_cannot_be_is_refused(batches: Any) -> None:
    with pytest.raises(ValueError, match=f"batches={batches!r}: pass a whole number above zero"):
        MadeUp(1, 1).judged(batches)


def test_what_is_no_loader_or_no_step_is_refused() -> None:
    with pytest.raises(TypeError, match="int cannot be iterated: pass a DataLoader"):
        judge(3, print)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="step is None: pass a function"):
        judge([1, 2], None)  # type: ignore[arg-type]


def test_an_error_of_the_loader_comes_through() -> None:
    def fails() -> Iterator[int]:
        yield 1
        raise OSError("shard 7 is damaged")

    with pytest.raises(OSError, match="shard 7 is damaged"):
        judge(fails(), print)


def test_batches_may_be_anything() -> None:
    batches = [{"x": (torch.zeros(2), None), "name": ["a", "b"]}] * 4
    assert judge(batches, lambda _: None).batches == 3
    assert judge(DataLoader(range(8), batch_size=2), lambda _: None).batches == 3  # type: ignore[arg-type]
