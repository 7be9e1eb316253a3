"""Thinning and smoothing: what a curve may leave out, and what it may not."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from made_up import counted, snapshot

from helpers.drawing.series import Thinned, memory_curves, thin, throughput_curves
from helpers.records import Counters


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=400), st.integers(2, 20))
def test_thinning_keeps_the_peak_the_last_sample_and_the_order(peaks: list[int], most: int) -> None:
    snapshots = [snapshot(0.1 * step, mib) for step, mib in enumerate(peaks)]
    kept = thin(snapshots, most)
    assert max(s.budgeted_bytes for s in kept) == max(s.budgeted_bytes for s in snapshots)
    assert kept[-1] is snapshots[-1]
    assert [s.seconds for s in kept] == sorted(s.seconds for s in kept)
    assert len(kept) <= 2 * most + 1
    assert len(kept) == len(snapshots) or len(snapshots) > 2 * most  # few are all kept


def test_thinning_bit_by_bit_is_thinning_at_once() -> None:
    snapshots = [snapshot(0.01 * step, step % 97) for step in range(5000)]
    bit_by_bit = Thinned(100)
    for start in range(0, 5000, 7):
        bit_by_bit.add(snapshots[start : start + 7])
    assert bit_by_bit.snapshots == thin(snapshots, 100)


def test_samples_of_one_moment_do_not_stop_thinning() -> None:
    assert len(thin([snapshot(0, mib) for mib in range(100)], 10)) <= 21


def test_a_lone_sample_is_held_until_the_end_and_has_no_rate() -> None:
    assert memory_curves([snapshot(0.0)], until=3).seconds.tolist() == [0, 3]
    assert throughput_curves([snapshot(0.0)]).rate.tolist() == [0]


def test_charged_bytes_are_absent_where_no_cgroup_told_and_may_be_missing_now_and_then() -> None:
    assert memory_curves([snapshot(0), snapshot(1)]).charged is None
    charged = memory_curves([snapshot(0), snapshot(1, charged_bytes=7)]).charged
    assert charged is not None
    assert np.array_equal(charged, [np.nan, 7], equal_nan=True)


def test_the_first_batch_is_no_spike() -> None:
    snapshots = [snapshot(0.01 * n, counters=counted(0.01 * n + 0.1)) for n in range(500)]
    assert throughput_curves([snapshot(0), *snapshots[1:]]).top < 1300


def test_a_short_run_has_a_rate_all_the_same() -> None:
    snapshots = [
        snapshot(0.001 * n, counters=Counters(n, 10 * n, 0, 0.0005 * n)) for n in range(100)
    ]
    assert np.allclose(throughput_curves(snapshots).rate[25:], 1000)


def test_a_steady_loop_has_a_steady_rate_and_a_stall_shows_as_no_samples() -> None:
    snapshots = [snapshot(0.1 * n, counters=counted(min(0.1 * n, 5))) for n in range(100)]
    curves = throughput_curves(snapshots)
    assert np.allclose(curves.rate[10:50], 1000)
    assert np.allclose(curves.waiting[10:50], 0.25)
    assert curves.rate[-1] == 0
    assert np.isnan(curves.waiting[-1])


def test_between_two_slow_batches_the_rate_is_not_zero() -> None:
    def counters(seconds: float) -> Counters:
        batches = int(seconds // 2)  # one batch of 64 in two seconds
        return Counters(64 * batches, batches, 0, 1.9 * batches, 0.1 * batches)

    snapshots = [snapshot(0.1 * n, counters=counters(0.1 * n)) for n in range(600)]
    assert np.allclose(throughput_curves(snapshots).rate[100:], 32, rtol=0.1)
