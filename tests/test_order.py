import multiprocessing
import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset

from helpers import order
from helpers.mixing import displacement, distinct_labels
from helpers.order import BlockShuffleSampler, ShuffleBuffer


class GivesItsIndex(Dataset[int]):
    def __getitem__(self, index: int) -> int:
        return index


def every_rank(rows: int, ranks: int, **options: Any) -> list[list[list[int]]]:
    return [
        list(BlockShuffleSampler(rows, rank=rank, ranks=ranks, **options)) for rank in range(ranks)
    ]


def flat(batches: Any) -> list[int]:
    return [index for batch in batches for index in batch]


# The block shuffle


@settings(deadline=None)
@given(
    rows=st.integers(1, 10_000),
    block_rows=st.integers(1, 700),
    mixed_blocks=st.integers(1, 40),
    batch_size=st.integers(1, 600),
    ranks=st.integers(1, 4),
    drop_last=st.booleans(),
    epoch=st.integers(0, 3),
)
def test_ranks_share_an_epoch_of_every_row_once_in_equal_numbers_of_batches(
    rows: int,
    block_rows: int,
    mixed_blocks: int,
    batch_size: int,
    ranks: int,
    drop_last: bool,
    epoch: int,
) -> None:
    assume(block_rows <= rows and ranks <= -(-rows // block_rows))
    assume(batch_size <= block_rows * mixed_blocks)
    assume(drop_last or batch_size > 1 or rows % ranks == 0)
    samplers = [
        BlockShuffleSampler(
            rows,
            batch_size=batch_size,
            block_rows=block_rows,
            mixed_blocks=mixed_blocks,
            drop_last=drop_last,
            rank=rank,
            ranks=ranks,
        )
        for rank in range(ranks)
    ]
    for sampler in samplers:
        sampler.set_epoch(epoch)
    shares = [list(sampler) for sampler in samplers]
    assert {len(share) for share in shares} == {len(samplers[0])}
    indices = [index for share in shares for index in flat(share)]
    sizes = [len(batch) for share in shares for batch in share]
    if drop_last:
        assert len(set(indices)) == len(indices) > rows - ranks * batch_size
        assert set(indices) <= set(range(rows))
        assert all(size == batch_size for size in sizes)
    else:
        assert sorted(indices) == list(range(rows))
        assert all(0 < size <= batch_size for size in sizes)


def test_all_batches_are_full_but_the_last() -> None:
    sizes = [len(batch) for batch in BlockShuffleSampler(1000, batch_size=64, block_rows=10)]
    assert sizes == [64] * 15 + [40]


def test_a_rank_that_is_a_row_short_still_has_as_many_batches() -> None:
    shares = every_rank(9, 2, batch_size=4, block_rows=1)
    assert [[len(batch) for batch in share] for share in shares] == [[3, 1], [4, 1]]


def test_the_same_seed_and_epoch_give_the_same_order_and_others_another() -> None:
    def epoch(seed: int, number: int) -> list[list[int]]:
        sampler = BlockShuffleSampler(1000, block_rows=10, seed=seed)
        sampler.set_epoch(number)
        return list(sampler)

    assert epoch(1, 2) == epoch(1, 2)
    assert epoch(1, 2) != epoch(1, 3)
    assert epoch(1, 2) != epoch(2, 2)


def test_an_epoch_does_not_change_until_it_is_set() -> None:
    sampler = BlockShuffleSampler(1000, block_rows=10)
    assert list(sampler) == list(sampler)


def test_ranks_have_different_orders_of_different_rows() -> None:
    first, second = (flat(share) for share in every_rank(1000, 2, block_rows=10))
    assert not set(first) & set(second)
    assert np.argsort(first).tolist() != np.argsort(second).tolist()


def test_a_block_is_needed_only_while_its_mix_is_handed_out() -> None:
    indices = np.array(flat(BlockShuffleSampler(10_150, block_rows=50, mixed_blocks=8, seed=3)))
    for block in range(203):
        places = np.flatnonzero(indices // 50 == block)
        assert places[-1] - places[0] < 8 * 50


def test_the_rows_of_a_mix_are_mixed() -> None:
    batches = list(BlockShuffleSampler(10_000, batch_size=200, block_rows=50, mixed_blocks=40))
    blocks = [len({index // 50 for index in batch}) for batch in batches]
    assert min(blocks) > 30  # of 40; 200 rows out of 40 blocks miss few


def test_no_mix_is_much_smaller_than_the_others() -> None:
    """Else the last batches of 33 blocks, mixed 32 at a time, would be of one block."""
    batches = list(BlockShuffleSampler(33 * 50, batch_size=50, block_rows=50, mixed_blocks=32))
    assert min(len({index // 50 for index in batch}) for batch in batches) > 8


def test_sorted_classes_come_out_nearly_as_after_a_full_shuffle() -> None:
    order = np.array(flat(BlockShuffleSampler(100_000, block_rows=128, mixed_blocks=32)))
    assert distinct_labels(order // 10_000, 256).share > 0.9


def test_one_block_at_a_time_does_not_mix() -> None:
    order = np.array(flat(BlockShuffleSampler(100_000, block_rows=256, mixed_blocks=1)))
    assert distinct_labels(order // 10_000, 256).share < 0.2


def test_batches_are_lists_of_pythons_own_integers() -> None:
    batch = next(iter(BlockShuffleSampler(1000)))
    assert isinstance(batch, list)
    assert {type(index) for index in batch} == {int}


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="starts many")
@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # more workers than cores
@pytest.mark.parametrize("workers", [0, 1, 2, 5])
def test_a_plain_loader_with_workers_hands_out_every_index_once(workers: int) -> None:
    sampler = BlockShuffleSampler(1003, batch_size=17, block_rows=10)
    context = "fork" if workers else None
    loader = DataLoader(
        GivesItsIndex(), batch_sampler=sampler, num_workers=workers, multiprocessing_context=context
    )
    assert len(loader) == len(sampler) == 59
    assert [batch.tolist() for batch in loader] == list(sampler)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 0}, "rows=0: pass 1 or more"),
        ({"batch_size": 0}, "batch_size=0: pass 1 or more"),
        ({"block_rows": 0}, "block_rows=0: pass 1 or more"),
        ({"mixed_blocks": -1}, "mixed_blocks=-1: pass 1 or more"),
        ({"ranks": 0}, "ranks=0: pass 1 or more"),
        ({"seed": -1}, "seed=-1: pass 0 or more"),
        ({"rank": 2, "ranks": 2}, "rank=2 of 2: pass 0 to 1"),
        ({"rank": -1}, "rank=-1 of 1: pass 0 to 0"),
        ({"block_rows": 1001}, "block_rows=1001 is more than the 1000 rows: pass less"),
        ({"block_rows": 400, "ranks": 4}, "4 ranks cannot share 3 blocks: pass fewer"),
        ({"batch_size": 41, "block_rows": 10, "mixed_blocks": 4}, "41 is more than 4 mixed blocks"),
        ({"batch_size": 1, "ranks": 3, "block_rows": 1}, "1000 batches of one row .* 3 ranks"),
    ],
)
def test_what_does_not_fit_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BlockShuffleSampler(**{"rows": 1000, **options})


# The shuffle buffer


@given(
    count=st.integers(0, 10_000),
    buffer_size=st.integers(1, 12_000),
    workers=st.integers(1, 5),
    epoch=st.integers(0, 3),
)
@settings(deadline=None)
def test_workers_share_the_items_of_a_stream_each_once(
    count: int, buffer_size: int, workers: int, epoch: int
) -> None:
    stream = ShuffleBuffer(range(count), buffer_size)
    stream.set_epoch(epoch)
    found: list[int] = []
    for number in range(workers):
        info = SimpleNamespace(id=number, num_workers=workers)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(order, "get_worker_info", lambda info=info: info)
            found += stream
    assert sorted(found) == list(range(count))


def test_a_buffer_of_one_item_keeps_the_order() -> None:
    assert list(ShuffleBuffer(range(100), 1)) == list(range(100))


def test_a_buffer_holds_no_more_than_its_size() -> None:
    taken = []

    class Stream:
        def __iter__(self) -> Any:
            for item in range(1000):
                taken.append(item)
                yield item

    for handed_out, item in enumerate(ShuffleBuffer(Stream(), 50)):
        assert len(taken) - handed_out <= 51
        assert item in taken


def test_a_buffer_moves_an_item_by_three_quarters_of_its_size() -> None:
    moved = displacement(list(ShuffleBuffer(range(50_000), 2000))).measured
    assert 0.71 < moved / 2000 < 0.76


def test_a_run_much_longer_than_the_buffer_survives() -> None:
    labels = np.array(list(ShuffleBuffer(range(50_000), 500))) // 5000
    assert distinct_labels(labels, 100).share < 0.3


def test_the_order_of_a_stream_follows_from_seed_and_epoch() -> None:
    def epoch(seed: int, number: int) -> list[int]:
        stream = ShuffleBuffer(range(1000), 100, seed=seed)
        stream.set_epoch(number)
        return list(stream)

    orders = [epoch(0, 0), epoch(0, 1), epoch(1, 0)]
    assert epoch(0, 0) == orders[0]
    assert all(one != other for one, other in pairwise([*orders, orders[0]]))


PERSISTS = """
import sys
from torch.utils.data import DataLoader
from helpers.order import ShuffleBuffer

stream = ShuffleBuffer(range(1000), 100)
loader = DataLoader(
    stream, num_workers=2, persistent_workers=True, multiprocessing_context=sys.argv[1]
)
orders = []
for epoch in (0, 1, 0):
    stream.set_epoch(epoch)
    orders.append([int(item) for item in loader])
    assert sorted(orders[-1]) == list(range(1000))
assert orders[0] == orders[2] != orders[1]
del loader  # ends the workers while torch can still clear up after them
"""


@pytest.mark.parametrize("start_method", multiprocessing.get_all_start_methods())
def test_persistent_workers_notice_the_epoch(start_method: str) -> None:
    subprocess.run([sys.executable, "-c", PERSISTS, start_method], check=True, timeout=200)


def test_a_buffer_without_room_is_named() -> None:
    with pytest.raises(ValueError, match="buffer_size=0: pass 1 or more"):
        ShuffleBuffer(range(3), 0)


def test_a_stream_that_cannot_start_again_is_named() -> None:
    with pytest.raises(TypeError, match="ends with its first epoch: pass what `iter` can start"):
        ShuffleBuffer((item for item in range(3)), 2)
