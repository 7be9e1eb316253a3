import doctest
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helpers.reading import block_order
from helpers.reading.block_order import BlockOrder, Place


@st.composite
def orders(draw: st.DrawFn) -> tuple[BlockOrder, int]:
    """Draw any order that its checks let pass, and a number of workers for it."""
    rows = draw(st.integers(1, 10_000))
    ranks, workers = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    block_rows = draw(st.integers(1, rows))
    batch_size = draw(st.integers(1, 700))
    fewest = workers * max(block_rows, batch_size)
    assume(ranks * workers * block_rows <= rows)
    order = BlockOrder(
        rows=rows,
        block_rows=block_rows,
        mix_rows=draw(st.integers(fewest, 4 * fewest)),
        batch_size=batch_size,
        batches_per_message=draw(st.integers(1, 20)),
        seed=draw(st.integers(0, 2**40)),
        drop_last=batch_size == 1 or draw(st.booleans()),
        ranks=ranks,
    )
    return order, workers


def ranks_of(order: BlockOrder) -> list[BlockOrder]:
    return [replace(order, rank=rank) for rank in range(order.ranks)]


@settings(max_examples=200, deadline=None)
@given(orders(), st.integers(0, 5))
def test_an_epoch_has_every_row_once_over_all_ranks_and_workers(
    drawn: tuple[BlockOrder, int], epoch: int
) -> None:
    order, workers = drawn
    ranks = [list(one.indices(epoch, 0, workers)) for one in ranks_of(order)]
    assert {len(batches) for batches in ranks} == {order.batches}
    sizes = [[len(batch) for batch in batches] for batches in ranks]
    assert all(1 <= size <= order.batch_size for each in sizes for size in each)
    assert all(size == order.batch_size for each in sizes for size in each[:-2])
    rows = np.concatenate([np.empty(0, int), *(batch for each in ranks for batch in each)])
    dropped = order.rows - len(rows)
    assert dropped < order.ranks * order.batch_size if order.drop_last else dropped == 0
    assert len(np.unique(rows)) == len(rows)
    assert not len(rows) or (rows.min() >= 0 and rows.max() < order.rows)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_ranks_have_as_many_batches_where_a_row_more_or_less_decides(ranks: int) -> None:
    for rows in range(ranks, 40):
        for batch_size in range(2, 6):
            order = BlockOrder(
                rows=rows, block_rows=1, mix_rows=8, batch_size=batch_size, ranks=ranks
            )
            sizes = [[len(batch) for batch in one.indices(0)] for one in ranks_of(order)]
            assert {len(each) for each in sizes} == {order.batches}
            assert all(0 < size <= batch_size for each in sizes for size in each)
            assert sum(sum(each) for each in sizes) == rows


@settings(max_examples=50, deadline=None)
@given(orders(), st.data())
def test_a_place_leaves_exactly_the_batches_that_were_left(
    drawn: tuple[BlockOrder, int], data: st.DataObject
) -> None:
    order, workers = drawn
    whole = list(order.indices(3, 0, workers))
    for done in data.draw(st.sets(st.integers(0, order.batches), max_size=8)):
        left = list(order.indices(3, done, workers))
        assert len(left) == order.batches - done
        assert all(map(np.array_equal, left, whole[done:]))


def test_an_epoch_can_be_left_at_every_batch() -> None:
    order = BlockOrder(rows=1003, block_rows=17, mix_rows=170, batch_size=8, ranks=2, rank=1)
    for workers in (1, 2, 3):
        whole = list(order.indices(0, 0, workers))
        for done in range(order.batches + 1):
            assert all(map(np.array_equal, order.indices(0, done, workers), whole[done:]))


@settings(max_examples=50, deadline=None)
@given(orders())
def test_a_mix_fits_its_share_of_the_memory(drawn: tuple[BlockOrder, int]) -> None:
    order, workers = drawn
    for worker in range(workers):
        for mix in order.mixes(Place(0, 0, worker, workers)):
            assert sum(stop - start for start, stop in mix.runs) <= order.mix_rows // workers
            assert mix.runs == sorted(mix.runs)
            assert all(stop - start <= order.block_rows for start, stop in mix.runs)


def test_seed_epoch_and_rank_each_change_the_order() -> None:
    order = BlockOrder(rows=4000, block_rows=50, mix_rows=1000, batch_size=32)

    def first_batch(order: BlockOrder, epoch: int = 0) -> list[int]:
        return list(next(order.indices(epoch)))

    assert first_batch(order) == first_batch(order)
    assert first_batch(order) != first_batch(order, epoch=1)
    assert first_batch(order) != first_batch(replace(order, seed=1))


def distinct_labels(batches: list[np.ndarray], classes: int, rows: int) -> float:
    return float(np.mean([len(np.unique(batch * classes // rows)) for batch in batches]))


@pytest.mark.parametrize(("classes", "share"), [(10, 0.95), (100, 0.85)])
def test_sorted_classes_are_mixed_as_well_as_a_full_shuffle_would(
    classes: int, share: float
) -> None:
    rows = 512_000
    order = BlockOrder(rows=rows, block_rows=512, mix_rows=128 * 512, batch_size=64)
    shuffled = np.random.default_rng(0).permutation(rows).reshape(-1, 64)
    full = distinct_labels(list(shuffled), classes, rows)
    assert distinct_labels(list(order.indices(0)), classes, rows) > share * full
    alone = replace(order, block_rows=order.mix_rows)  # one block in a mix
    assert distinct_labels(list(alone.indices(0)), classes, rows) < 0.5 * full


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": 0}, "rows=0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"block_rows": -1}, "block_rows=-1"),
        ({"block_rows": 1001, "mix_rows": 2000}, "block_rows=1001 is more than the 1000 rows"),
        ({"seed": -1}, "seed=-1"),
        ({"ranks": 0}, "ranks=0"),
        ({"rank": 2, "ranks": 2}, "rank=2"),
        ({"ranks": 101}, "101 ranks of 1 workers are more than the 100 blocks"),
        ({"batch_size": 501}, "a batch of 501"),
        ({"block_rows": 501}, "a block of 501"),
        ({"batch_size": 1, "ranks": 3}, "drop_last=True"),
    ],
)
def test_an_order_that_cannot_be_is_refused(change: dict[str, int], words: str) -> None:
    right = BlockOrder(rows=1000, block_rows=10, mix_rows=500, batch_size=32)
    with pytest.raises(ValueError, match=words):
        replace(right, **change)  # type: ignore[arg-type]


def test_workers_that_would_get_less_than_a_block_are_refused() -> None:
    order = BlockOrder(rows=1000, block_rows=100, mix_rows=300, batch_size=32)
    order.check_workers(3)
    with pytest.raises(ValueError, match="75 rows in each of 4 workers"):
        order.check_workers(4)
    with pytest.raises(ValueError, match="more than the 10 blocks"):
        order.check_workers(11)


def test_the_rows_of_a_batch_come_from_nearly_all_blocks_of_their_mix() -> None:
    order = BlockOrder(rows=64_000, block_rows=500, mix_rows=16_000, batch_size=256)
    for batch in islice(order.indices(0), 20):
        assert len(np.unique(batch // order.block_rows)) > 30  # of 32


def test_the_example_is_true() -> None:
    result = doctest.testmod(block_order)
    assert result.attempted == 3
    assert result.failed == 0
