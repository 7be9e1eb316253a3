"""What reading a container copies, measured in forked processes."""

import gc
import re
from typing import Any

import numpy as np
import pytest
from running import needs_fork, run

from helpers import forked_reads
from helpers.forked_reads import ForkedRead, read_in_a_fork
from helpers.memory import measure_name

COUNT = 100_000
pytestmark = needs_fork


def names() -> list[str]:
    return [
        f"a name that takes about sixty letters, with number {index:09d}" for index in range(COUNT)
    ]


def letters() -> Any:
    return np.fromiter(names(), "S61", COUNT)


def frozen() -> list[str]:
    made = names()
    gc.freeze()
    return made


def read_all(*makers: Any) -> list[ForkedRead]:
    return [read_in_a_fork(maker) for maker in makers]


@pytest.mark.skipif(measure_name() != "PSS", reason="shared pages are not told here")
def test_reading_copies_objects_also_frozen_ones_and_no_letters() -> None:
    found = run(read_all, names, frozen, letters, start_method="fork")  # a process without threads
    assert found.finished, found
    listed, thawless, array = found.value
    assert listed.size_bytes == pytest.approx(COUNT * 120, rel=0.1)
    assert min(listed.copied_share, thawless.copied_share) > 0.7
    assert array.copied_share < 0.1


def test_a_record_reads_as_a_line() -> None:
    assert (
        repr(ForkedRead(2**20, 2**19, 5e-8)) == "1 MiB, 50% of it copied by reading, 50 ns an item"
    )
    assert repr(ForkedRead(-9, -4096, 0)) == "0 B, 0% of it copied by reading, 0 ns an item"


def test_a_container_in_the_place_of_a_function_is_refused() -> None:
    with pytest.raises(TypeError, match="got a list: pass a function that makes the container"):
        read_in_a_fork(["a"])  # type: ignore[arg-type]


def test_a_system_without_fork_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked_reads, "get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(RuntimeError, match="this system has no fork"):
        read_in_a_fork(list)


def reads_no_length() -> ForkedRead:
    return read_in_a_fork(lambda: iter("abc"))


def dies() -> ForkedRead:
    import os

    return read_in_a_fork(lambda: os._exit(3))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (reads_no_length, "has no len()"),
        (dies, "RuntimeError: the forked process ended early, with exit code 3"),
    ],
)
def test_what_goes_wrong_in_a_fork_is_told_where_it_was_asked_for(
    function: Any, words: str
) -> None:
    assert re.search(re.escape(words), run(function, start_method="fork").ending)
