import doctest
import multiprocessing
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from talking import said_by
from torch.utils.data import DataLoader

from helpers.loaders import order
from helpers.loaders.mixing import distinct_labels
from helpers.loaders.order import BlockShuffleSampler, ShuffleBuffer


def every_rank(rows: int, ranks: int, **options: Any) -> list[list[list[int]]]:
    return [
        list(BlockShuffleSampler(rows, rank=rank, ranks=ranks, **options)) for rank in range(ranks)
    ]


def flat(batches: Any) -> list[int]:
    return [index for batch in batches for index in batch]


@st.composite
def samplers(draw: st.DrawFn) -> BlockShuffleSampler:
    """Draw the first of any ranks that the checks let pass."""
    rows = draw(st.integers(1, 3_000))
    block_rows = draw(st.integers(1, min(rows, 700)))
    buffer_blocks = draw(st.integers(1, 40))
    batch_size = draw(st.integers(1, min(600, block_rows * buffer_blocks)))
    ranks = draw(st.integers(1, min(4, -(-rows // block_rows))))
    return BlockShuffleSampler(
        rows,
        batch_size=batch_size,
        block_rows=block_rows,
        buffer_blocks=buffer_blocks,
        seed=draw(st.integers(0, 2**40)),
        epoch=draw(st.integers(0, 3)),
        drop_last=draw(st.booleans()) or (batch_size == 1 and rows % ranks > 0),
        ranks=ranks,
    )


@settings(max_examples=200, deadline=None)
@given(samplers())
def test_ranks_share_an_epoch_of_every_row_once_in_equal_numbers_of_batches(
    sampler: BlockShuffleSampler,
) -> None:
    rows, batch_size = sampler.rows, sampler.batch_size
    shares = [list(replace(sampler, rank=rank)) for rank in range(sampler.ranks)]
    assert {len(share) for share in shares} == {len(sampler)}
    indices = [index for share in shares for index in flat(share)]
    sizes = [[len(batch) for batch in share] for share in shares]
    assert all(size == batch_size for share in sizes for size in share[:-2])
    if sampler.drop_last:
        assert len(set(indices)) == len(indices) > rows - sampler.ranks * batch_size
        assert set(indices) <= set(range(rows))
        assert all(size == batch_size for share in sizes for size in share)
    else:
        assert sorted(indices) == list(range(rows))
        assert all(0 < size <= batch_size for share in sizes for size in share)
        assert all(size >= batch_size - 1 for share in sizes for size in share[:-1])


@settings(deadline=None)
@given(samplers())
def test_a_fill_is_parts_of_blocks_in_the_order_of_the_file_and_no_more_than_was_asked_for(
    sampler: BlockShuffleSampler,
) -> None:
    for rank in range(sampler.ranks):
        for fill in replace(sampler, rank=rank).fills():
            ends = [end for row_range in fill.ranges for end in row_range]
            assert 0 <= ends[0] <= ends[-1] <= sampler.rows
            assert all(start < stop for start, stop in fill.ranges)
            assert all(stop <= start for (_, stop), (start, _) in pairwise(fill.ranges))
            block_rows = sampler.block_rows
            assert all(a // block_rows == (b - 1) // block_rows for a, b in fill.ranges)
            rows = sum(stop - start for start, stop in fill.ranges)
            assert rows == fill.edges[-1] <= sampler.buffer_blocks * block_rows


@settings(deadline=None)
@given(samplers())
def test_the_batches_are_those_of_equal_fills_which_hand_out_each_of_their_rows_once(
    sampler: BlockShuffleSampler,
) -> None:
    fills = list(sampler.fills())
    assert left_of(sampler, 0) == list(sampler)
    for fill in fills:
        places = fill.batches()
        assert [len(batch) for batch in places] == np.diff(fill.edges).tolist()
        assert sorted(flat(places)) == list(range(fill.edges[-1]))
        rows = np.concatenate([np.arange(*row_range) for row_range in fill.ranges])
        for batch, wanted in zip(fill.indices(), places, strict=True):
            np.testing.assert_array_equal(batch, rows[wanted])
    counts = [len(fill.batches()) for fill in fills]
    assert sum(counts) == len(sampler)
    assert max(counts, default=0) - min(counts, default=0) <= 1


def left_of(sampler: BlockShuffleSampler, start: int) -> list[list[int]]:
    return [batch.tolist() for fill in sampler.fills(start) for batch in fill.indices()]


@settings(max_examples=50, deadline=None)
@given(samplers(), st.data())
def test_a_start_leaves_exactly_the_batches_that_were_left(
    sampler: BlockShuffleSampler, data: st.DataObject
) -> None:
    sampler = replace(sampler, rank=sampler.ranks - 1)
    whole = list(sampler)
    for start in data.draw(st.sets(st.integers(0, len(sampler)), max_size=5)):
        assert left_of(sampler, start) == whole[start:]


def test_the_order_follows_from_seed_and_epoch_and_changes_with_the_next_iteration() -> None:
    for make in (
        lambda seed: BlockShuffleSampler(1000, batch_size=50, block_rows=10, seed=seed),
        lambda seed: ShuffleBuffer(range(1000), 100, seed=seed),
    ):
        wanted, other, sampler = list(make(0)), list(make(1)), make(0)
        running = iter(sampler)
        assert wanted == list(sampler) != other
        next_one = next(running)
        sampler.set_epoch(1)
        assert [next_one, *running] == wanted
        assert list(sampler) not in (wanted, other)
        sampler.set_epoch(0)
        assert list(sampler) == wanted


def test_ranks_have_different_orders_of_different_rows() -> None:
    first, second = (flat(share) for share in every_rank(1000, 2, block_rows=10))
    assert not set(first) & set(second)
    assert np.argsort(first).tolist() != np.argsort(second).tolist()


def test_a_block_is_needed_only_while_one_fill_or_two_in_turn_are_handed_out() -> None:
    indices = np.array(flat(BlockShuffleSampler(10_150, block_rows=50, buffer_blocks=8, seed=3)))
    for block in range(203):
        places = np.flatnonzero(indices // 50 == block)
        assert places[-1] - places[0] < 2 * 8 * 50


@pytest.mark.parametrize(("classes", "share"), [(10, 0.95), (100, 0.85)])
def test_sorted_classes_come_out_nearly_as_after_a_full_shuffle(classes: int, share: float) -> None:
    rows = 512_000
    sampler = BlockShuffleSampler(rows, batch_size=64, block_rows=512, buffer_blocks=128)
    order = np.array(flat(sampler))
    assert distinct_labels(order * classes // rows, 64).share > share


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="starts many")
@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # more workers than cores
@pytest.mark.parametrize("workers", [0, 5])
def test_a_plain_loader_with_workers_hands_out_every_index_once(workers: int) -> None:
    sampler = BlockShuffleSampler(1003, batch_size=17, block_rows=10)
    how: dict[str, Any] = {"multiprocessing_context": "fork"} if workers else {}
    indices: Any = range(1003)
    loader = DataLoader(indices, batch_sampler=sampler, num_workers=workers, **how)
    assert len(loader) == len(sampler) == 59
    assert [batch.tolist() for batch in loader] == list(sampler)
    assert {type(index) for batch in sampler for index in batch} == {int}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 0}, "rows=0: pass 1 or more"),
        ({"buffer_blocks": -1}, "buffer_blocks=-1: pass 1 or more"),
        ({"seed": -1}, "seed=-1: pass 0 or more"),
        ({"rank": 2, "ranks": 2}, "rank=2 of 2: pass 0 to 1"),
        ({"ranks": 1001}, "1001 ranks cannot share 1000 rows: pass fewer"),
        ({"batch_size": 256.0}, "batch_size=256.0 is of type float: pass a whole number, as 1"),
        ({"buffer_blocks": True}, "buffer_blocks=True is of type bool"),
        ({"ranks": torch.tensor(True)}, r"ranks=tensor\(True\) is of type Tensor"),
        ({"rank": "0"}, "rank='0' is of type str: pass a whole number, as 0"),
        ({"epoch": None}, "epoch=None is of type NoneType"),
        ({"drop_last": "no"}, "drop_last='no': pass True or False"),
        ({"batch_size": 41, "block_rows": 10, "buffer_blocks": 4}, "is more than 4 mixed blocks"),
        ({"batch_size": 1, "ranks": 3, "block_rows": 1}, "1000 batches of one row .* 3 ranks"),
    ],
)
def test_what_does_not_fit_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        BlockShuffleSampler(**{"rows": 1000, **options})


@pytest.mark.parametrize("epoch", [-1, 1.0, "1"])
def test_an_epoch_that_is_none_is_refused(epoch: Any) -> None:
    for shuffled in (BlockShuffleSampler(1000), ShuffleBuffer(range(3), 2)):
        with pytest.raises((ValueError, TypeError), match=f"epoch={epoch!r}.*: pass"):
            shuffled.set_epoch(epoch)
    assert BlockShuffleSampler(1000).epoch == 0


@pytest.mark.parametrize("number", [np.int64, np.uint8, torch.tensor])
def test_numbers_of_numpy_and_torch_are_numbers(number: Any) -> None:
    stream = ShuffleBuffer(range(100), number(10), seed=number(1))
    stream.set_epoch(number(2))
    plain = ShuffleBuffer(range(100), 10, seed=1)
    plain.set_epoch(2)
    assert list(stream) == list(plain)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_defaults_suit_files_of_any_size(ranks: int) -> None:
    for rows in (*range(ranks, 40), 255, 256, 257, 511, 513, 1000):
        epochs = [every_rank(rows, ranks, epoch=epoch) for epoch in range(9)]
        assert sorted(index for share in epochs[0] for index in flat(share)) == list(range(rows))
        assert len({tuple(sorted(flat(shares[0]))) for shares in epochs}) > 1 or ranks == 1


def test_the_example_is_true() -> None:
    result = doctest.testmod(order)
    assert result.attempted == 1
    assert result.failed == 0


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
    moved = np.abs(np.array([*ShuffleBuffer(range(50_000), 2000)]) - np.arange(50_000)).mean()
    assert 0.71 < moved / 2000 < 0.76


PERSISTS = """
import sys
from torch.utils.data import DataLoader
from helpers.loaders.order import ShuffleBuffer

stream = ShuffleBuffer(range(1000), 100)
how = {"persistent_workers": True, "multiprocessing_context": sys.argv[1]}
loader = DataLoader(stream, batch_size=50, num_workers=1, **how)
orders = []
for epoch in (0, 1, 0):
    stream.set_epoch(epoch)
    orders.append([int(item) for batch in loader for item in batch])
    assert sorted(orders[-1]) == list(range(1000))
assert orders[0] == orders[2] != orders[1]
del loader  # ends the workers while torch can still clear up after them
"""


@pytest.mark.parametrize("start_method", multiprocessing.get_all_start_methods())
def test_persistent_workers_notice_the_epoch(start_method: str) -> None:
    said_by(PERSISTS, start_method)


def test_a_buffer_without_room_or_of_a_stream_that_cannot_start_again_is_named() -> None:
    with pytest.raises(ValueError, match="buffer_size=0: pass 1 or more"):
        ShuffleBuffer(range(3), 0)
    with pytest.raises(TypeError, match="ends with its first epoch: pass what `iter` can start"):
        ShuffleBuffer((item for item in range(3)), 2)
