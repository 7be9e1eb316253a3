"""Records of finished runs: frozen, and readable in one line."""

import dataclasses
from typing import Any

import pytest
from made_up import MIB, finished_run, snapshot

from helpers.records import Counters, Outcome, Run


def a_run(**changes: Any) -> Run:
    settled: dict[str, Any] = {"title": "one_epoch(OpensLazily)", "snapshots": ()}
    return finished_run(2.04, **(settled | {"enforced_by": "kernel (cgroup v2)"} | changes))


COUNTED = Counters(samples=600, batches=6, waiting_seconds=0.5, working_seconds=1.5)
SNAPSHOTS = (
    snapshot(0, 100),
    snapshot(1, 700, shared_bytes=50 * MIB),
    snapshot(2, 300, counters=COUNTED, read_bytes=9),
)


def test_a_run_is_read_in_one_line() -> None:
    run = a_run(snapshots=(snapshot(0, 100), snapshot(2, 144, counters=COUNTED)))
    assert repr(run) == (
        "one_epoch(OpensLazily): finished after 2.0 s; peak anonymous 144 MiB; "
        "600 samples; 300 samples/s"
    )


def test_a_budget_that_was_lowered_is_said() -> None:
    run = a_run(asked_bytes=2**32, limit="the 2 GiB limit of this container")
    lowered = "lowered to 1 GiB by the 2 GiB limit of this container"
    assert repr(run).endswith(f"budget of 4 GiB {lowered}")


def test_a_run_without_track_leaves_the_samples_out() -> None:
    assert repr(a_run(snapshots=(snapshot(0, 1),))).endswith("after 2.0 s; peak anonymous 1 MiB")


LIMIT = "the 1.2 GiB limit of this"


@pytest.mark.parametrize(
    ("outcome", "changes", "words"),
    [
        ("finished", {}, "finished"),
        ("killed", {}, "killed: over its 1 GiB budget, by the kernel (cgroup v2)"),
        (
            "killed",
            {"enforced_by": "watcher", "error": "Oh: dear\nmore"},
            "killed: over its 1 GiB budget, by the watcher, which raised Oh: dear",
        ),
        (
            "killed",
            {"asked_bytes": 2**32, "limit": LIMIT},
            f"killed: at {LIMIT}, below its 4 GiB budget",
        ),
        ("raised", {"error": "ValueError: no"}, "raised: ValueError: no"),
        ("crashed", {"error": "SIGSEGV"}, "crashed: SIGSEGV"),
        ("timed out", {"error": "not finished after 1 s"}, "timed out: not finished after 1 s"),
        ("stopped", {}, "stopped"),
    ],
)
def test_every_ending_has_its_words(outcome: str, changes: dict[str, Any], words: str) -> None:
    run = a_run(outcome=Outcome(outcome), **changes)
    assert run.ending == words
    assert run.finished is (outcome == "finished")


def test_figures_come_from_the_samples() -> None:
    run = a_run(snapshots=SNAPSHOTS)
    assert run.baseline_anonymous_bytes == 100 * MIB
    assert run.peak_anonymous_bytes == 700 * MIB
    assert run.added_anonymous_bytes == 600 * MIB
    assert SNAPSHOTS[1].budgeted_bytes == 750 * MIB
    assert run.read_bytes == 9
    assert run.counters == COUNTED
    assert run.samples_per_second == 300
    assert run.waiting_share == 0.25


def test_a_run_that_never_began_has_figures_as_well() -> None:
    run = a_run()
    assert (run.baseline_anonymous_bytes, run.peak_anonymous_bytes, run.read_bytes) == (0, 0, None)
    assert (run.samples_per_second, run.waiting_share) == (0.0, 0.0)
    assert run.counters == Counters()


def test_records_cannot_be_changed() -> None:
    run = a_run(snapshots=SNAPSHOTS)
    for record, name in ((run, "seconds"), (SNAPSHOTS[0], "seconds"), (COUNTED, "samples")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, name, 1)
