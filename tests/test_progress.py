"""`track`: what it counts, where it counts, and that it changes nothing."""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_up import Clock
from refusals import FullDisk
from torch.utils.data import DataLoader, IterableDataset

from helpers.progress import track
from helpers.records import Counters
from helpers.running.counting import count
from helpers.running.shared_state import STATE_VARIABLE, SharedState


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SharedState:
    """The state of a run that this process is the child of."""
    state = SharedState.create(tmp_path / "state")
    state.owner = os.getpid()
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    return state


def batches(number: int, clock: Clock) -> Iterator[torch.Tensor]:
    """Yield batches of four samples and 64 bytes, each after a second."""
    for _ in range(number):
        clock.now += 1.0
        yield torch.zeros(4, 4)


def test_samples_bytes_and_both_kinds_of_seconds_are_counted_before_a_batch_is_handed_out(
    state: SharedState, clock: Clock
) -> None:
    seen = []
    for _ in track(batches(3, clock), clock=clock):
        seen.append(state.read().batches)
        clock.now += 0.5
    assert seen == [1, 2, 3]
    assert state.read() == Counters(12, 3, 192, 3.0, 1.5, None)


def test_the_wait_for_the_workers_to_start_counts(state: SharedState, clock: Clock) -> None:
    class StartsSlowly:
        def __iter__(self) -> Iterator[torch.Tensor]:
            clock.now += 7.0
            return iter([torch.zeros(1)])

    assert len(list(track(StartsSlowly(), clock=clock))) == 1
    assert state.read().waiting_seconds == 7.0


@pytest.mark.parametrize("error", [None, ZeroDivisionError])
def test_a_loop_that_is_left_in_the_middle_keeps_what_it_counted(
    state: SharedState, clock: Clock, error: type[Exception] | None
) -> None:
    def loop() -> None:
        for number, _ in enumerate(track(batches(9, clock), clock=clock)):
            clock.now += 0.5
            if number == 1:
                if error:
                    raise error
                break

    with pytest.raises(error) if error else contextlib.nullcontext():
        loop()
    assert state.read() == Counters(8, 2, 128, 2.0, 1.0, None)


@pytest.mark.parametrize(
    "error", [OSError("the disk is gone"), TypeError("'int' object is not iterable")]
)
def test_an_exception_in_the_loader_passes_and_the_wait_for_it_counts(
    state: SharedState, clock: Clock, error: Exception
) -> None:
    def breaks() -> Iterator[torch.Tensor]:
        yield torch.zeros(2)
        clock.now += 12.0
        raise error

    with pytest.raises(type(error), match=str(error)):
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


def test_two_loops_add_up_also_one_inside_the_other(state: SharedState) -> None:
    assert len(list(track([torch.zeros(4, 4)] * 3))) == 3
    for _ in track([torch.zeros(1)] * 2):
        for _ in track([torch.zeros(4)] * 3):
            pass
    counters = state.read()
    assert (counters.samples, counters.batches, counters.expected_batches) == (38, 11, 11)


@pytest.mark.parametrize(
    ("seconds", "taken"),
    [
        (2.5, 3),  # the third arrives at 3.0, asked for at 2.0
        (50, 9),  # the epoch is shorter, and ends by itself
        (np.float32(2.5), 3),
        (np.int64(3), 3),
        (torch.tensor(2.5), 3),
        (Decimal("2.5"), 3),
    ],
)
def test_seconds_of_any_library_end_the_loop(
    state: SharedState, clock: Clock, seconds: Any, taken: int
) -> None:
    assert len(list(track(batches(9, clock), seconds=seconds, clock=clock))) == taken
    assert state.read().batches == taken


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), "9", [9]])
def test_seconds_that_cannot_be_are_refused(seconds: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(f"seconds is {seconds!r}: pass a number above")):
        track([], seconds=seconds)


class CannotBeSent:
    def __iter__(self) -> Any:
        raise TypeError("h5py objects cannot be pickled")


def test_what_a_loader_says_of_its_start_is_passed_on() -> None:
    with pytest.raises(TypeError, match="h5py objects cannot be pickled"):
        track(CannotBeSent())


@pytest.mark.parametrize("thing", [7, None, torch.utils.data.Dataset])
def test_what_cannot_be_iterated_is_refused_before_the_loop_and_not_waited_for(
    state: SharedState, thing: Any
) -> None:
    with pytest.raises(TypeError, match=r"track got \w+, which cannot be iterated: pass a Data"):
        track(thing)
    assert state.waiting_since == 0


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
        ((np.zeros(3, np.int8), [torch.zeros(3)]), (3, 15)),
        ({"rows": torch.zeros(8, 4), "labels": torch.zeros(8)}, (8, 160)),
        ((torch.tensor(1.0), torch.zeros(5)), (5, 24)),
        (["one", "four"], (2, 7)),
        ("text", (1, 4)),
        ([], (1, 0)),
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


@pytest.mark.parametrize(
    ("loader", "samples", "expected"),
    [
        (DataLoader(Stream(), batch_size=4), 10, None),
        (DataLoader(torch.arange(10), batch_size=4), 10, 3),  # type: ignore[arg-type]
        (Odd(), 4, None),
    ],
    ids=["no length", "a length", "a length that fails"],
)
def test_what_is_to_come_is_said_where_a_loader_has_a_length(
    state: SharedState, loader: Any, samples: int, expected: int | None
) -> None:
    assert sum(len(batch) for batch in track(loader)) == samples
    assert (state.read().samples, state.read().expected_batches) == (samples, expected)


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


@pytest.mark.parametrize("stderr", [None, FullDisk()])
def test_a_bar_that_cannot_be_written_does_not_end_the_loop(
    stderr: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr)
    assert list(track([1, 2])) == [1, 2]
