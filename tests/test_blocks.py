import gc
import json
import multiprocessing
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from itertools import accumulate, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from talking import Talking, said_by
from torch.utils.data import DataLoader

from data_gen import GeneratedData, ensure
from helpers.loaders import raw_files
from helpers.loaders.blocks import ShuffledBlocks
from helpers.loaders.order import BlockShuffleSampler

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")  # more than cores
ROWS = 6000
VALUES = np.arange(4000, dtype=np.float32).reshape(1000, 4)
SMALL: dict[str, Any] = {"batch_size": 64, "buffer_bytes": "128 KiB", "block_rows": 50}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blocks")


@pytest.fixture(scope="module")
def data(folder: Path) -> GeneratedData:
    return ensure("npy", folder, rows=ROWS, row_shape=(16,), progress=False, order="sorted")


def make(data: GeneratedData, **changes: Any) -> ShuffledBlocks:
    return ShuffledBlocks(data.rows_path, data.labels_path, **{**SMALL, **changes})


def loop(batches: ShuffledBlocks, workers: int, prefetch: int = 2) -> Iterator[Any]:
    """Loop over it, with forked workers or without: to start others takes seconds each."""
    more: dict[str, Any] = {"prefetch_factor": prefetch, "multiprocessing_context": "fork"}
    loader = DataLoader(batches, batch_size=None, num_workers=workers, **(more if workers else {}))
    return batches.unpack(loader)


forks = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="starts many workers"
)


def assert_right(data: GeneratedData, batches: Any, indices: Any) -> None:
    count = 0
    for (rows, labels), wanted in zip(batches, indices, strict=True):
        assert data.count_wrong(rows, wanted) == 0
        np.testing.assert_array_equal(labels, data.expected_labels(wanted))
        count += 1
    assert count


@pytest.fixture
def shared_memory() -> Callable[[], int]:
    """Return how to count the pieces of torch's shared memory that this process has mapped."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("needs /proc")
    return lambda: maps.read_text().count("/torch_")


def readers() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("reader of a fill")]


@pytest.fixture(autouse=True)
def no_reader_is_left() -> Iterator[None]:
    yield
    gc.collect()
    for thread in readers():
        thread.join(10)
    assert not readers()


@pytest.mark.parametrize(
    "layout",
    [
        {"file_format": "npy"},
        {"file_format": "hdf5"},
        {"file_format": "hdf5", "chunks": (32, 16), "compression": "gzip:4"},
        {"file_format": "hdf5", "chunks": (32, 16), "compression": "lzf"},
        {"file_format": "hdf5", "chunks": (500, 4)},
    ],
)
def test_every_row_and_label_is_right_and_comes_once(layout: dict[str, Any], folder: Path) -> None:
    made = ensure(**layout, folder=folder, rows=ROWS, row_shape=(16,), progress=False)
    batches = ShuffledBlocks(
        made.rows_path, made.labels_path, batch_size=64, buffer_bytes="256 KiB", seed=5
    )
    for epoch in range(2):
        batches.set_epoch(epoch)
        indices = list(batches.order)
        np.testing.assert_array_equal(np.sort(np.concatenate(indices)), np.arange(ROWS))
        assert_right(made, batches, indices)
    assert len(batches) == len(indices) == 94


def test_batches_are_writable_and_their_own(data: GeneratedData) -> None:
    for rows, labels in make(data):
        assert (rows.dtype, labels.dtype) == (torch.float32, torch.int64)
        rows += 1
        labels += 1
    assert_right(data, (batches := make(data)), batches.order)
    kept = list(batches)
    assert_right(data, kept, batches.order)


@pytest.mark.parametrize("sizes", [{}, {"buffer_bytes": 2**70, "block_rows": 2**70}])
def test_block_and_buffer_sizes_suit_the_file_where_they_are_not_given_or_above_all_memory(
    sizes: dict[str, Any], folder: Path
) -> None:
    for count in (1, 2, 100):
        made = ensure("npy", folder / f"{count}", rows=count, row_shape=(16,), progress=False)
        batches = ShuffledBlocks(made.rows_path, made.labels_path, **sizes)
        assert_right(made, batches, batches.order)


@forks
@pytest.mark.parametrize(("workers", "prefetch"), [(0, 1), (1, 1), (1, 3), (2, 2), (5, 3)])
def test_the_batches_are_those_of_a_sampler_of_the_same_settings(
    workers: int, prefetch: int, data: GeneratedData
) -> None:
    settings: dict[str, Any] = {"seed": 7, "drop_last": True, "rank": 1, "ranks": 2}
    batches = make(data, **settings)
    batches.set_epoch(3)
    kept = list(loop(batches, workers, prefetch))  # the batches are the loop's own
    buffers = max(workers * prefetch, 1) + 1
    mixed = (128 << 10) // buffers // (16 * 4 + 8 + 8) // 50  # 8 bytes are of the row's place
    sampler = BlockShuffleSampler(
        ROWS, batch_size=64, block_rows=50, buffer_blocks=mixed, epoch=3, **settings
    )
    assert sum(1 for _ in sampler.fills()) > buffers
    assert len(batches) == len(sampler) == 46
    assert_right(data, kept, sampler)


def test_large_blocks_read_past_the_cache_by_many_threads_are_right(folder: Path) -> None:
    made = ensure("npy", folder / "large", rows=8000, row_shape=(512,), progress=False)
    for epoch in range(3):
        batches = make(made, buffer_bytes="4 MiB", block_rows=100, threads=8, past_cache=True)
        batches.set_epoch(epoch)
        assert_right(made, batches, batches.order)


_LOOP = """
import pickle, sys
from torch.utils.data import DataLoader
from helpers.loaders.blocks import ShuffledBlocks

data = pickle.loads(bytes.fromhex(sys.argv[1]))
batches = ShuffledBlocks(
    data.rows_path, data.labels_path, batch_size=64, buffer_bytes="256 KiB"
)
loader = DataLoader(batches, batch_size=None, num_workers=2, multiprocessing_context=sys.argv[2])
found = zip(batches.unpack(loader), batches.order, strict=True)
print(sum(data.count_wrong(rows, i) + (len(i) << 20) for (rows, labels), i in found) == ROWS << 20)
"""


@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_workers_hand_over_right_rows_under_the_other_start_methods(
    start_method: str, data: GeneratedData
) -> None:
    # In a process of its own, because a fork server and its folder last as long as their process.
    program = _LOOP.replace("ROWS", str(ROWS))
    assert said_by(program, pickle.dumps(data).hex(), start_method) == "True"


@forks
def test_workers_without_a_fill_of_their_own_do_no_harm(data: GeneratedData) -> None:
    batches = make(data, buffer_bytes="6 MiB")
    for epoch in range(2):
        batches.set_epoch(epoch)
        assert_right(data, list(loop(batches, workers=5)), batches.order)
        assert sum(1 for _ in batches.order.fills()) == 1


@forks
@pytest.mark.parametrize(
    ("workers", "prefetch"), [(0, 1), (1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (5, 1)]
)
def test_no_fill_is_overwritten_while_a_slow_loop_hands_it_out(
    workers: int, prefetch: int, data: GeneratedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop goes on only when all that was asked for is read, and no more than that is."""
    read, done = raw_files._read_bytes, multiprocessing.get_context("fork").Semaphore(0)

    def count(*arguments: Any) -> None:
        read(*arguments)
        done.release()

    monkeypatch.setattr(raw_files, "_read_bytes", count)
    batches = ShuffledBlocks(data.rows_path, **SMALL)
    running = loop(batches, workers, prefetch)
    fills = list(batches.order.fills())
    ahead = max(workers * prefetch, 1)
    assert len(fills) > ahead + 1
    seen = 0
    for number, fill in enumerate(fills):
        first, *left = fill.indices()
        assert left
        assert data.count_wrong(next(running), first) == 0
        while seen < sum(len(asked.ranges) for asked in fills[: number + 1 + ahead]):
            assert done.acquire(timeout=60)
            seen += 1
        assert not done.acquire(block=False)
        assert sum(data.count_wrong(next(running), batch) for batch in left) == 0
    assert list(running) == []


@forks
def test_a_killed_worker_is_an_error_in_the_loop_and_leaves_no_memory(
    data: GeneratedData, shared_memory: Callable[[], int]
) -> None:
    before = shared_memory()
    running = loop(make(data), workers=2)
    next(running)
    assert shared_memory() > before
    with pytest.raises(RuntimeError, match="DataLoader worker"):  # noqa: PT012
        multiprocessing.active_children()[0].kill()  # the error comes at any time from here on
        list(running)
    del running
    gc.collect()
    assert shared_memory() == before


@forks
@pytest.mark.parametrize("taken", [0, 1, 50, 94])
def test_no_shared_memory_is_left_of_a_loop_however_far_it_went(
    taken: int, data: GeneratedData, shared_memory: Callable[[], int]
) -> None:
    before = shared_memory()
    running = loop(make(data), workers=2)
    assert len(list(islice(running, taken))) == taken
    assert shared_memory() > before
    del running
    assert shared_memory() == before


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="asks it how much it has")
def test_shared_memory_that_cannot_be_had_is_an_error_before_any_is_made(
    data: GeneratedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = make(data)
    loader = DataLoader(batches, batch_size=None, num_workers=1)
    running = batches.unpack(loader)
    next(running)
    state, wanted = batches.state_dict(), list(batches.order)
    del running
    batches.load_state_dict(state)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 16))
        with pytest.raises(
            OSError, match=r"need 1\d\d KiB .* has 64 KiB free: pass a smaller buffer"
        ):
            batches.unpack(loader)
    assert_right(data, batches.unpack(loader), wanted[1:])  # the place is still known


@forks
@pytest.mark.parametrize(
    ("workers", "batch_size", "words"),
    [
        (1, None, r"loop over dataset.unpack\(loader\)"),
        (0, 2, r"pass DataLoader\(batches, batch_size=None"),
        (1, 2, r"pass DataLoader\(batches, batch_size=None"),  # the loader would add an axis
    ],
)
def test_a_loop_over_the_loader_itself_says_what_to_do(
    workers: int, batch_size: int | None, words: str, data: GeneratedData
) -> None:
    context = "fork" if workers else None
    loader = DataLoader(
        make(data), batch_size, num_workers=workers, multiprocessing_context=context
    )
    with pytest.raises(RuntimeError, match=words):
        next(iter(loader))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 2}, r"pass DataLoader\(batches, batch_size=None"),
        ({"num_workers": 1, "persistent_workers": True}, "persistent_workers=True"),
        ({"num_workers": 2}, "more than the 1 blocks"),
    ],
)
def test_a_loader_that_will_not_do_is_refused(
    options: dict[str, Any], words: str, data: GeneratedData
) -> None:
    batches = make(data, block_rows=ROWS, buffer_bytes="8 MiB")
    with pytest.raises(ValueError, match=words):
        batches.unpack(DataLoader(batches, **{"batch_size": None, **options}))
    with pytest.raises(ValueError, match="over these batches"):
        batches.unpack(DataLoader(make(data), batch_size=None))


def test_it_pickles_small_and_holds_nothing_before_its_first_batch(data: GeneratedData) -> None:
    before = threading.active_count()
    batches = make(data)
    assert threading.active_count() == before
    assert len(pickle.dumps(batches)) < 10_000
    next(iter(batches))
    assert len(pickle.dumps(batches)) < 10_000
    assert_right(data, pickle.loads(pickle.dumps(batches)), batches.order)


@forks
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_saved_state_leaves_exactly_the_batches_that_were_left(
    workers: int, data: GeneratedData
) -> None:
    loop(batches := make(data), workers)
    edges = list(accumulate(len(fill.batches()) for fill in batches.order.fills()))
    near = {edge + step for edge in (*edges[:2], *edges[-2:]) for step in (-1, 0, 1)}
    for done in sorted(near & set(range(95)) | {0, 33}):
        batches = make(data)
        batches.set_epoch(2)
        running = loop(batches, workers)
        indices = list(batches.order)
        assert len(list(islice(running, done))) == done
        state = json.loads(json.dumps(batches.state_dict()))
        del running
        resumed = make(data, threads=1)
        resumed.load_state_dict(state)
        resumed.set_epoch(2)
        found = list(loop(resumed, workers))
        assert len(found) == len(indices) - done
        if found:
            assert_right(data, found, indices[done:])
        assert resumed.state_dict()["batches"] == 94
        again = loop(resumed, workers)  # the next iteration is a whole one
        assert_right(data, [next(again)], indices[:1])


@forks
@pytest.mark.parametrize("workers", [0, 1])
def test_an_iteration_that_is_given_up_keeps_the_place_until_another_epoch(
    workers: int, data: GeneratedData
) -> None:
    loop(batches := make(data), workers)
    indices = list(batches.order)
    batches.load_state_dict({**batches.state_dict(), "batches": 50})
    for taken in (0, 1, 30):
        assert len(list(islice(loop(batches, workers), taken))) == taken
    assert_right(data, loop(batches, workers), indices[50:])
    batches.load_state_dict({**batches.state_dict(), "batches": 50})
    batches.set_epoch(1)
    assert len(list(loop(batches, workers))) == 94


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 1}, "its seed is 1, here it is 0"),
        ({"ranks": 2}, "its ranks is 2, here it is 1"),
        ({"version": "0"}, "its version is '0', here it is '2, numpy"),
        ({"batches": -1}, r"of no place \(batches=-1: pass 0 or more\): pass"),
        ({"batches": 95}, r"of no place \(batches=95: pass 94 or less\): pass"),
        ({"batches": "5"}, r"of no place \(batches='5' is of type str.*\): pass"),
        ({"epoch": -1}, r"of no place \(epoch=-1.*\): pass"),
    ],
)
def test_a_state_of_another_reader_or_of_no_place_is_refused_and_changes_nothing(
    change: dict[str, Any], words: str, data: GeneratedData
) -> None:
    batches = make(data)
    with pytest.raises(ValueError, match=words):
        batches.load_state_dict({**batches.state_dict(), **change})
    assert_right(data, batches, make(data).order)


def test_a_state_of_another_file_or_dataset_or_none_is_refused(
    data: GeneratedData, folder: Path, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"] = file["b"] = VALUES
    one, other = (ShuffledBlocks(tmp_path / "x.h5", rows_name=name) for name in "ab")
    copy = ensure("npy", folder / "other", rows=ROWS, row_shape=(16,), seed=1, progress=False)
    for taken, resumed in ((one, other), (make(data), make(copy))):
        with pytest.raises(ValueError, match="its files is"):
            resumed.load_state_dict(taken.state_dict())
    with pytest.raises(TypeError, match="the state is None: pass one that state_dict returned"):
        one.load_state_dict(None)  # type: ignore[arg-type]


@forks
@pytest.mark.parametrize(
    ("taken", "resumed", "memory"),
    [
        ({"workers": 0}, {"workers": 2}, "128 KiB"),
        ({"workers": 2}, {"workers": 0}, "128 KiB"),
        ({"workers": 2, "prefetch": 1}, {"workers": 2, "prefetch": 2}, "128 KiB"),
        ({"workers": 0}, {"workers": 0}, "64 KiB"),
    ],
)
def test_a_state_with_other_workers_or_memory_is_refused(
    taken: dict[str, int], resumed: dict[str, int], memory: str, data: GeneratedData
) -> None:
    next(running := loop(batches := make(data), **taken))
    del running
    other = make(data, buffer_bytes=memory)
    for reader in (batches, other):
        reader.load_state_dict(batches.state_dict())
    with pytest.raises(ValueError, match=r"with \d+ blocks in a buffer, now .* num_workers"):
        loop(other, **resumed)
    assert len(list(loop(batches, **taken))) == 93


@forks
def test_the_start_of_an_epoch_can_be_resumed_with_other_workers(data: GeneratedData) -> None:
    batches = make(data)
    batches.load_state_dict(make(data, buffer_bytes="64 KiB").state_dict())
    assert_right(data, list(loop(batches, workers=1)), batches.order)


def test_a_state_is_of_the_iteration_that_began_last(data: GeneratedData) -> None:
    batches = make(data)
    older = iter(batches)
    next(older)
    batches.set_epoch(1)
    next(older)  # an iteration that goes on moves no other place
    assert (batches.state_dict()["epoch"], batches.state_dict()["batches"]) == (1, 0)
    newer = iter(batches)
    for running in (newer, older, newer):
        next(running)
    assert (batches.state_dict()["epoch"], batches.state_dict()["batches"]) == (1, 2)


def test_the_state_of_one_rank_will_do_for_all(data: GeneratedData) -> None:
    first, second = (make(data, rank=rank, ranks=2) for rank in range(2))
    wanted = list(second.order)
    list(islice(first, 9))
    second.load_state_dict(first.state_dict())
    assert_right(data, second, wanted[9:])


@pytest.mark.parametrize("taken", [0, 1])
@pytest.mark.parametrize("end", [Generator.close, lambda iterator: None])
def test_no_thread_is_left_of_a_closed_or_dropped_iterator(
    end: Callable[[Any], None], taken: int, data: GeneratedData
) -> None:
    running = iter(make(data))
    list(islice(running, taken))
    assert bool(readers()) == bool(taken)
    end(running)
    del running
    assert not readers()


def test_threads_wait_for_the_next_fill_while_the_iterator_is_kept_and_end_with_its_last(
    data: GeneratedData,
) -> None:
    running = iter(make(data, threads=3))
    next(running)
    threads = readers()
    assert 1 <= len(threads) <= 3
    assert len(list(islice(running, 50))) == 50
    assert set(threads) <= set(readers())
    assert len(list(running)) == 43
    assert not readers()


@forks
@pytest.mark.parametrize("taken", [0, 1])
def test_an_iterator_carried_over_a_fork_is_an_error_there(taken: int, data: GeneratedData) -> None:
    def go_on() -> None:
        with pytest.raises(RuntimeError, match=r"forked from: begin an iteration here"):
            list(running)
        assert_right(data, batches, batches.order)

    running = iter(batches := make(data))
    list(islice(running, taken))
    child = multiprocessing.get_context("fork").Process(target=go_on)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert len(list(running)) == 94 - taken


def test_an_iterator_may_be_collected_as_garbage_in_a_thread_of_its_own(
    data: GeneratedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, dropped, collected = raw_files._read_bytes, threading.Event(), threading.Event()
    errors, batches = list[Any](), ShuffledBlocks(data.rows_path, **SMALL, threads=1)
    first = iter(range(len(next(batches.order.fills()).ranges)))

    def collect(*arguments: Any) -> None:
        read(*arguments)
        if next(first, None) is None and dropped.wait(60) and not collected.is_set():
            gc.collect()
            collected.set()

    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    monkeypatch.setattr(raw_files, "_read_bytes", collect)
    cycle: list[Any] = [iter(batches)]
    cycle.append(cycle)
    next(cycle[0])
    gc.disable()
    del cycle
    dropped.set()
    assert collected.wait(60)
    gc.enable()
    assert not errors


_ENDS = """
import os, sys
from torch.utils.data import DataLoader
from helpers.loaders.blocks import ShuffledBlocks
path, workers, *endings = sys.argv[1:]
for ending in endings:  # each in a process of its own, all with the same imports
    if (pid := os.fork()) == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
else:
    os._exit(0)
batches = ShuffledBlocks(path, batch_size=64, buffer_bytes="128 KiB")
running = batches.unpack(DataLoader(batches, batch_size=None, num_workers=int(workers)))
for _ in range(20):  # so far that each worker is there: torch's never end if they start as orphans
    next(running)
exec(ending)
"""


@forks
@pytest.mark.parametrize("workers", [0, 2])
def test_a_process_that_ends_in_mid_epoch_does_not_hang(workers: int, data: GeneratedData) -> None:
    endings = ["", "raise SystemExit(3)", "1 / 0", "os._exit(3)"]
    with Talking(_ENDS, data.rows_path, workers, *endings, stderr=subprocess.PIPE) as process:
        said, errors = process.communicate(timeout=120)
    assert said.split() == ["0", "3", "1", "3"], errors
    assert "Fatal" not in errors
    assert errors.count("ZeroDivisionError") == 1


def write(path: Path, values: NDArray[Any]) -> Path:
    with path.open("wb") as file:  # the same file, other bytes
        np.save(file, values)
    return path


@pytest.mark.parametrize("moment", ["reading", "read"])
def test_no_row_comes_of_a_fill_that_was_read_while_the_file_was_written(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.npy", VALUES)
    batches = ShuffledBlocks(path, batch_size=10, block_rows=10, buffer_bytes="8 KiB", threads=1)
    read, reads = raw_files._read_bytes, iter(range(100))

    def rewrite(*arguments: Any) -> None:
        if moment == "read":
            read(*arguments)
        if next(reads) == 99:  # of the last fill: nobody opens the file after this
            write(path, VALUES + 1)
        if moment == "reading":
            read(*arguments)

    monkeypatch.setattr(raw_files, "_read_bytes", rewrite)
    seen = list[Any]()
    with pytest.raises(RuntimeError, match=r"x\.npy was written to while in use"):
        seen.extend(batches)
    assert 0 < len(seen) < 100
    with pytest.raises(RuntimeError, match=r"x\.npy was written to"):
        next(iter(batches))


def test_a_read_error_comes_once_with_its_rows_and_after_all_rows_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.npy", VALUES)
    batches = ShuffledBlocks(path, batch_size=10, block_rows=10, buffer_bytes="8 KiB", threads=3)
    read = raw_files._read_bytes

    def fail(file: Any, offset: int, into: Any) -> None:
        if offset == 128 + 480 * 16:
            raise OSError(5, "Input/output error")
        read(file, offset, into)

    monkeypatch.setattr(raw_files, "_read_bytes", fail)
    running = iter(batches)
    seen: list[Any] = []
    with pytest.raises(OSError, match=r"rows 480 to 489 of .*x\.npy cannot be read \(.*Input"):
        seen.extend(running)
    assert 0 < len(seen) < 100
    assert list(running) == []


def test_a_damaged_chunk_is_an_error_with_its_rows_also_from_a_worker(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        made = file.create_dataset("rows", data=VALUES, chunks=(100, 4), compression="gzip")
        made.id.write_direct_chunk((300, 0), b"damaged")
    batches = ShuffledBlocks(tmp_path / "x.h5", batch_size=10)
    with pytest.raises(OSError, match="rows 300 to 399"):
        list(batches)
    loader = DataLoader(batches, batch_size=None, num_workers=1)
    with pytest.raises(OSError, match="rows 300 to 399"):
        list(batches.unpack(loader))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"buffer_bytes": "lots"}, "'lots' is not a size"),
        ({"buffer_bytes": "1 KiB"}, "larger buffer_bytes"),
        ({"batch_size": 5000}, "2 buffers of 819 rows, less than a block of 50 or a batch of 5000"),
        ({"block_rows": 0}, "block_rows=0: pass 1 or more"),
        ({"threads": 65}, "threads=65: pass 1 to 64"),
        ({"past_cache": "no"}, "past_cache='no': pass True or False"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    change: dict[str, Any], words: str, data: GeneratedData
) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        make(data, **change)


@pytest.mark.parametrize("number", [np.int64, np.uint16, torch.tensor])
def test_settings_and_places_of_numpy_and_torch_are_numbers(
    number: Any, data: GeneratedData
) -> None:
    more = {"rank": 1, "ranks": 2, "threads": 2, "seed": 5}
    numbers = {"batch_size": 64, "block_rows": 50, **more}
    changes = {name: number(value) for name, value in numbers.items()}
    batches = make(data, **changes, drop_last=np.bool_(True))
    batches.set_epoch(number(3))
    list(islice(batches, 5))
    state = batches.state_dict()
    assert {type(value) for value in state.values()} <= {bool, int, str, list}
    resumed = make(data, **more, drop_last=True)
    resumed.load_state_dict({**state, "batches": number(5), "epoch": number(3)})
    assert_right(data, resumed, list(batches.order)[5:])
    assert resumed.state_dict()["epoch"] == 3


def test_a_block_is_rounded_up_to_whole_chunks(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("rows", data=VALUES, chunks=(150, 4))
    for block_rows, whole in ((None, 150), (150, 150), (151, 300), (950, 1000)):
        batches = ShuffledBlocks(tmp_path / "x.h5", block_rows=block_rows, batch_size=10)
        assert batches.order.block_rows == whole


_MEASURE = """
import os, sys
from multiprocessing import active_children
from pathlib import Path
from torch.utils.data import DataLoader
from helpers.loaders.blocks import ShuffledBlocks

def resident(pid, *kinds):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(kinds))

def now():
    workers = sum(resident(worker.pid, "RssAnon") for worker in active_children())
    return resident("self", "RssAnon", "RssShmem") + workers

def peak(path, buffer_bytes):
    batches = ShuffledBlocks(path, batch_size=64, buffer_bytes=buffer_bytes)
    loader = DataLoader(batches, None, num_workers=int(sys.argv[1]))
    return max(now() for _ in batches.unpack(loader))

for path in sys.argv[2:]:
    if os.fork() == 0:  # each file in a process of its own, all with the same imports
        start = peak(path, "1 MiB")  # with imports and what allocators keep
        print(*(peak(path, size) - start for size in ("12 MiB", "24 MiB")))
        break
    os.wait()
"""


@forks
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "layout",
    [{"file_format": "npy"}, {"file_format": "hdf5", "chunks": (64, 512), "compression": "gzip:1"}],
)
def test_memory_is_what_was_asked_for_whatever_the_size_of_the_file(
    layout: dict[str, Any], workers: int, folder: Path
) -> None:
    made = [
        ensure(**layout, folder=folder / size, size=size, row_shape=(512,), progress=False)
        for size in ("40 MiB", "100 MiB")
    ]
    said = said_by(_MEASURE, workers, *(data.rows_path for data in made)).splitlines()
    assert len(said) == 2
    for line in said:
        small, large = (int(added) / (1 << 20) for added in line.split())
        assert 8 < small < 12 + 5
        assert 18 < large < 24 + 5
