"""`track`: what it counts, where it counts, and that it changes nothing."""

import dataclasses
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from helpers.progress import track
from helpers.records import Counters
from helpers.running.counting import count
from helpers.running.shared_state import STATE_VARIABLE, SharedState


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedState]:
    """The state of a run that this process is the child of."""
    state = SharedState.create(tmp_path / "state")
    state.owner = os.getpid()
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    yield state
    state.close()


def batches(number: int, clock: Clock, waiting: float = 1.0) -> Iterator[torch.Tensor]:
    """Yield batches of four samples and 64 bytes, each after a while."""
    for _ in range(number):
        clock.now += waiting
        yield torch.zeros(4, 4)


def test_samples_bytes_and_both_kinds_of_seconds_are_counted(state: SharedState) -> None:
    clock = Clock()
    for _ in track(batches(3, clock), clock=clock):
        clock.now += 0.5
    assert state.read() == Counters(12, 3, 192, 3.0, 1.5, None)


def test_the_wait_for_the_workers_to_start_counts(state: SharedState) -> None:
    clock = Clock()

    class StartsSlowly:
        def __iter__(self) -> Iterator[torch.Tensor]:
            clock.now += 7.0
            return iter([torch.zeros(1)])

    assert len(list(track(StartsSlowly(), clock=clock))) == 1
    assert state.read().waiting_seconds == 7.0


def test_a_batch_is_on_the_board_before_it_is_handed_out(state: SharedState) -> None:
    clock = Clock()
    seen = [state.read().batches for _ in track(batches(3, clock), clock=clock)]
    assert seen == [1, 2, 3]


def test_a_loop_that_is_left_in_the_middle_keeps_what_it_counted(state: SharedState) -> None:
    clock = Clock()
    for number, _ in enumerate(track(batches(9, clock), clock=clock)):
        clock.now += 0.5
        if number == 1:
            break
    assert state.read() == Counters(8, 2, 128, 2.0, 1.0, None)


def test_an_exception_in_the_loop_passes_and_the_work_before_it_counts(state: SharedState) -> None:
    clock = Clock()

    def loop() -> None:
        for _ in track(batches(9, clock), clock=clock):
            clock.now += 0.5
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()
    assert state.read() == Counters(4, 1, 64, 1.0, 0.5, None)


def test_an_exception_in_the_loader_passes_and_the_wait_for_it_counts(state: SharedState) -> None:
    clock = Clock()

    def breaks() -> Iterator[torch.Tensor]:
        yield torch.zeros(2)
        clock.now += 12.0
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(track(breaks(), clock=clock))
    assert (state.read().batches, state.read().waiting_seconds) == (1, 12.0)


def test_a_wait_that_is_going_on_is_seen_from_outside(state: SharedState) -> None:
    seen = []

    def looks() -> Iterator[torch.Tensor]:
        for _ in range(3):
            seen.append(state.read().waiting_seconds)
        yield torch.zeros(2)

    for _ in track(looks()):
        after = [state.read().waiting_seconds for _ in range(2)]
    assert 0 < seen[0] < seen[1] < seen[2] < after[0] == after[1]
    assert state.read().waiting_seconds >= after[1]


def test_two_loops_add_up(state: SharedState) -> None:
    rows = [torch.zeros(4, 4)] * 3
    for _ in range(2):
        assert len(list(track(rows))) == 3
    counters = state.read()
    assert (counters.samples, counters.batches, counters.expected_batches) == (24, 6, 6)


def test_a_loop_inside_a_loop_adds_up(state: SharedState) -> None:
    for _ in track([torch.zeros(1)] * 2):
        for _ in track([torch.zeros(4)] * 3):
            pass
    counters = state.read()
    assert (counters.samples, counters.batches, counters.expected_batches) == (26, 8, 8)


def test_seconds_ends_the_loop(state: SharedState) -> None:
    clock = Clock()
    taken = list(track(batches(100, clock), seconds=2.5, clock=clock))
    assert len(taken) == 3  # the third arrives at 3.0, asked for at 2.0
    assert state.read().batches == 3


def test_an_epoch_shorter_than_its_seconds_ends_by_itself(state: SharedState) -> None:
    clock = Clock()
    assert len(list(track(batches(3, clock), seconds=50, clock=clock))) == 3


@pytest.mark.parametrize(
    "seconds", [np.float32(2.5), np.int64(3), torch.tensor(2.5), Decimal("2.5")]
)
def test_seconds_may_be_a_number_of_any_library(state: SharedState, seconds: Any) -> None:
    clock = Clock()
    assert len(list(track(batches(100, clock), seconds=seconds, clock=clock))) == 3


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), "9", [9]])
def test_seconds_that_cannot_be_are_refused(seconds: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(f"seconds is {seconds!r}: pass a number above")):
        track([], seconds=seconds)


@pytest.mark.parametrize("thing", [7, None, object(), torch.utils.data.Dataset])
def test_what_cannot_be_iterated_is_refused_before_the_loop(thing: Any) -> None:
    with pytest.raises(TypeError, match=r"track got \w+, which cannot be iterated: pass a Data"):
        track(thing)


def test_after_a_refusal_nothing_is_waited_for(state: SharedState) -> None:
    with pytest.raises(TypeError):
        track(7)  # type: ignore[arg-type]
    first = state.read().waiting_seconds
    assert state.read().waiting_seconds == first


def test_a_type_error_inside_the_loader_is_not_mistaken_for_it(state: SharedState) -> None:
    def breaks() -> Iterator[int]:
        yield 1
        raise TypeError("'int' object is not iterable")

    with pytest.raises(TypeError, match="'int' object"):
        list(track(breaks()))


class Odd:
    """Tells what it was made with about itself, and fails when asked for anything else."""

    def __init__(self, **told: Any) -> None:
        self.told = told

    def __getattr__(self, name: str) -> Any:
        return self.told[name]

    def __len__(self) -> int:
        raise ZeroDivisionError("too late")

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter([torch.zeros(4, 4)])


class BreaksWhenLookedAt(list[int]):
    def __iter__(self) -> Iterator[int]:
        raise MemoryError


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (torch.zeros(8, 4), (8, 128)),
        (np.zeros((8, 4), np.uint8), (8, 32)),
        ([torch.zeros(8, 4), torch.zeros(8)], (8, 160)),
        ((np.zeros(3, np.int8), [torch.zeros(3)]), (3, 15)),
        ({"rows": torch.zeros(8, 4), "labels": torch.zeros(8)}, (8, 160)),
        ({"name": "a", "rows": torch.zeros(8, 4)}, (8, 129)),
        ((torch.tensor(1.0), torch.zeros(5)), (5, 24)),
        (["one", "four"], (2, 7)),
        ("text", (1, 4)),
        (b"bytes", (1, 5)),
        (torch.tensor(1.0), (1, 4)),
        ([], (1, 0)),
        (7, (1, 0)),
        (None, (1, 0)),
        (torch.zeros(0, 4), (0, 0)),
        (("name", torch.zeros(8, 4)), (8, 132)),
        ([Odd(shape=7, nbytes=-1), torch.zeros(8)], (8, 32)),
        ([Odd(shape=(2**70,), nbytes="many"), torch.zeros(8)], (8, 32)),
        ([Odd(shape=(np.int64(3),), nbytes=np.int64(9)), b"b"], (3, 10)),
        ([Odd(), torch.zeros(8)], (8, 32)),
        (BreaksWhenLookedAt([1, 2]), (1, 0)),
    ],
)
def test_a_batch_of_any_kind_is_counted(batch: object, expected: tuple[int, int]) -> None:
    assert count(batch) == expected


@pytest.mark.filterwarnings("ignore:Sparse", "ignore:The PyTorch API of nested")
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda eye: eye.to_sparse(), (4, 80)),
        (lambda eye: torch.cat([eye.to_sparse()] * 2), (8, 160)),  # not coalesced
        (lambda eye: eye.to_sparse_csr(), (4, 88)),
        (lambda eye: eye.to_sparse_csc(), (4, 88)),
        (lambda eye: torch.nested.nested_tensor([eye, eye[:1]]), (2, 80)),
    ],
)
def test_of_a_sparse_or_nested_batch_the_stored_values_are_counted(
    make: Callable[[torch.Tensor], torch.Tensor], expected: tuple[int, int]
) -> None:
    assert count(make(torch.eye(4))) == expected


class Stream(IterableDataset[torch.Tensor]):
    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(torch.zeros(10, 2))


def test_a_loader_without_a_length_is_counted_and_expects_nothing(state: SharedState) -> None:
    loader: Iterable[torch.Tensor] = DataLoader(Stream(), batch_size=4)
    assert len(list(track(loader))) == 3
    assert state.read().expected_batches is None
    assert state.read().samples == 10


def test_a_loader_whose_length_cannot_be_asked_is_counted(state: SharedState) -> None:
    assert len(list(track(Odd()))) == 1
    assert state.read() == dataclasses.replace(state.read(), samples=4, expected_batches=None)


def test_a_loader_with_a_length_says_what_is_to_come(state: SharedState) -> None:
    next(iter(track(DataLoader(torch.arange(10), batch_size=4))))  # type: ignore[arg-type]
    assert state.read().expected_batches == 3


def test_in_another_process_of_the_run_it_counts_and_shows_nothing(
    state: SharedState, capsys: pytest.CaptureFixture[str]
) -> None:
    state.owner = os.getppid()
    assert list(track([1, 2, 3])) == [1, 2, 3]
    assert state.read() == Counters()
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("variable", [None, "", "/nowhere/state", "cut off"])
def test_outside_a_run_or_when_its_state_is_gone_it_is_a_progress_bar(
    variable: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cut off").touch()
    if variable is not None:
        monkeypatch.setenv(STATE_VARIABLE, variable)
    assert list(track([1, 2, 3])) == [1, 2, 3]
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(r"100%.*3/3", err)


def test_a_progress_bar_knows_no_end_without_a_length(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track(iter([1, 2]), seconds=1000)) == [1, 2]
    assert "2batch" in capsys.readouterr().err


class FullDisk(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("stderr", [None, FullDisk()])
def test_a_bar_that_cannot_be_written_does_not_end_the_loop(
    stderr: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr)
    assert list(track([1, 2])) == [1, 2]
