import mmap
import multiprocessing
import os
import pickle
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import h5py
import numpy as np
import psutil
import pytest
import torch
from talking import said_by
from torch.utils.data import DataLoader

from data_gen import GeneratedData, ensure
from helpers.dataset_properties import ALL_PROPERTIES, DatasetProperty
from helpers.loaders import datasets, sources
from helpers.loaders.columns import open_hdf5
from helpers.loaders.datasets import FileDataset, Hdf5Dataset, Labelled, NpyDataset
from helpers.loaders.hdf5_files import reading_advice
from helpers.loaders.row_access import MappedRows

ROWS = 3000
LAYOUTS: dict[str, dict[str, Any]] = {
    "npy, rows below a page": {"file_format": "npy", "row_shape": (16,)},
    "npy, rows above a page": {"file_format": "npy", "row_shape": (40, 32)},
    "contiguous": {"file_format": "hdf5", "row_shape": (16,)},
    "chunks": {"file_format": "hdf5", "row_shape": (16,), "chunks": (64, 16)},
    "chunks that cut rows": {"file_format": "hdf5", "row_shape": (16,), "chunks": (500, 3)},
}
LAYOUTS |= {name: LAYOUTS["chunks"] | {"compression": name} for name in ("gzip", "lzf")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("datasets")


@pytest.fixture(params=LAYOUTS)
def data(request: pytest.FixtureRequest, folder: Path) -> GeneratedData:
    return make(folder, request.param)


def make(folder: Path, layout: str) -> GeneratedData:
    return ensure(folder=folder, rows=ROWS, progress=False, **LAYOUTS[layout])


def open_any(path: Path, name: str = "rows") -> FileDataset:
    return NpyDataset(path) if path.suffix == ".npy" else Hdf5Dataset(path, name)


def labelled(data: GeneratedData) -> Labelled:
    return Labelled(open_any(data.rows_path), open_any(data.labels_path, "labels"))


def is_open(path: Path) -> bool:
    """Return whether this process has a file open or mapped."""
    process = psutil.Process()
    opened = [file.path for file in process.open_files()]
    return str(path) in opened + [piece.path for piece in process.memory_maps()]


@pytest.mark.parametrize("holds", ALL_PROPERTIES, ids=lambda holds: str(holds.__name__))
def test_what_the_exercises_ask_of_a_dataset_holds(
    holds: DatasetProperty, data: GeneratedData
) -> None:
    assert holds(open_any, data) is None


def test_a_shuffled_epoch_is_right_collated_by_the_loader_or_in_ready_batches(
    data: GeneratedData,
) -> None:
    order = np.random.default_rng(0).permutation(ROWS).tolist()
    batches = [order[start : start + 64] for start in range(0, ROWS, 64)]
    for how in ({"batch_sampler": batches}, {"sampler": batches, "batch_size": None}):
        loader: DataLoader[Any] = DataLoader(labelled(data), **how)
        for (rows, labels), indices in zip(loader, batches, strict=True):
            assert data.count_wrong(rows, indices) == 0
            np.testing.assert_array_equal(labels, data.expected_labels(indices))


READS_WITH_WORKERS = """
import pickle, sys
import numpy as np
from torch.utils.data import DataLoader, StackDataset

made, datasets = zip(*pickle.loads(bytes.fromhex(sys.argv[1])))
for data, dataset in zip(made, datasets):
    assert data.count_wrong(dataset[7][0], [7]) == 0  # so that a fork inherits it open
batches = np.random.default_rng(0).permutation(3000).reshape(-1, 60).tolist()
both, method = StackDataset(*datasets), sys.argv[2]  # to start workers takes seconds
loader = DataLoader(both, batch_sampler=batches, num_workers=2, multiprocessing_context=method)
for indices, found in zip(batches, loader, strict=True):
    for data, (rows, labels) in zip(made, found, strict=True):
        assert data.count_wrong(rows, indices) == 0
        assert (labels.numpy() == data.expected_labels(indices)).all()
for data, dataset in zip(made, datasets):
    assert data.count_wrong(dataset[8][0], [8]) == 0
"""


@pytest.mark.parametrize("start_method", multiprocessing.get_all_start_methods())
def test_rows_are_right_in_workers_though_the_parent_has_read_before(
    start_method: str, folder: Path
) -> None:
    made = [make(folder, layout) for layout in ("npy, rows above a page", "gzip")]
    pairs = pickle.dumps([(data, labelled(data)) for data in made]).hex()
    said_by(READS_WITH_WORKERS, pairs, start_method)


def test_a_batch_comes_in_the_order_asked_with_repeats_and_may_be_empty(
    data: GeneratedData,
) -> None:
    wanted = [5, 2999, 0, 5, 64, 63, 65, 5, 1500, -1, -ROWS]
    from_start = [index % ROWS for index in wanted]
    rows = open_any(data.rows_path)
    assert data.count_wrong(rows[wanted], from_start) == 0
    assert data.count_wrong(torch.stack(rows.__getitems__(wanted)), from_start) == 0
    assert rows[[]].shape == (0, *data.row_shape)
    assert labelled(data).__getitems__([]) == []


@pytest.fixture
def pairs(folder: Path) -> Labelled:
    return labelled(make(folder, "npy, rows below a page"))


@pytest.mark.parametrize(
    "kind",
    [
        *(list, tuple, np.array, torch.tensor),
        *(partial(np.array, dtype=kind) for kind in ("i1", "u2", "u8")),
        lambda numbers: [np.uint8(numbers[0]), *map(np.int64, numbers[1:])],
    ],
)
def test_indices_are_integers_of_every_type_in_a_list_an_array_a_tensor_or_a_slice(
    kind: Callable[[list[int]], Any], pairs: Labelled
) -> None:
    wanted = [3, 100, 7]
    expected, labels = torch.stack([pairs[index][0] for index in wanted]), pairs[wanted][1]
    index = kind(wanted)
    one_by_one = zip(*pairs.__getitems__(index), strict=True)
    for found in (pairs[index], [torch.stack(part) for part in one_by_one]):
        assert torch.equal(found[0], expected)
        assert torch.equal(found[1], labels)
    one = pairs[index[0]]
    assert torch.equal(one[0], expected[0])
    assert one[1].shape == ()
    assert torch.equal(pairs[index[0] : index[1] : index[2]][1], pairs[range(3, 100, 7)][1])
    assert torch.equal(pairs[-2:][0], pairs[[ROWS - 2, ROWS - 1]][0])
    assert len(pairs[5:5][0]) == 0


@pytest.mark.parametrize("index", [ROWS, -ROWS - 1, 2**70])
def test_an_index_out_of_range_is_named_with_the_length(index: int, pairs: Labelled) -> None:
    for ask in (lambda: pairs[index], lambda: pairs.__getitems__([0, index, 1])):
        with pytest.raises(IndexError, match=f"index {index} is out of range: .* 3,000 rows"):
            ask()
    with pytest.raises(IndexError, match=r"index .* is out of range"):
        pairs[np.array([1, 2**64 - 1], np.uint64)]


@pytest.mark.parametrize("index", [1.0, [0.5], True, [np.True_], None, "1", [[1, 2]]])
def test_what_is_no_index_is_named(index: Any, pairs: Labelled) -> None:
    with pytest.raises(TypeError, match=r"pass (an integer, or a list of integers|a whole number)"):
        pairs[index]


@pytest.mark.parametrize("how", ["never written", "external", "virtual"])
def test_other_layouts_of_hdf5_are_read_too(how: str, tmp_path: Path) -> None:
    rows = np.arange(60, dtype=np.float32).reshape(20, 3)
    with h5py.File(tmp_path / "data.h5", "w", userblock_size=512) as file:
        if how == "never written":
            rows = np.full_like(rows, 7)
            file.create_dataset("rows", (20, 3), "float32", fillvalue=7)
        elif how == "external":
            place = [(str(tmp_path / "raw"), 0, rows.nbytes)]
            file.create_dataset("rows", data=rows, external=place)
        else:
            file["source"] = rows
            layout = h5py.VirtualLayout((20, 3), "float32")
            layout[:] = h5py.VirtualSource(file["source"])
            file.create_virtual_dataset("rows", layout)
    wanted = [19, 0, 7, 7]
    found = Hdf5Dataset(tmp_path / "data.h5", "rows")[wanted]
    np.testing.assert_array_equal(found, rows[wanted])


@pytest.mark.skipif(sys.platform != "linux", reason="needs the maps of a process")
def test_a_dataset_that_is_forgotten_closes_its_file(data: GeneratedData) -> None:
    rows = open_any(data.rows_path)
    assert not is_open(data.rows_path)
    rows[0]
    assert is_open(data.rows_path)
    del rows
    assert not is_open(data.rows_path)


def test_a_process_that_inherits_an_open_file_closes_it_and_opens_its_own(
    data: GeneratedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = open_any(data.rows_path)
    rows[0]
    inherited: Any = rows._rows
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert data.count_wrong(rows[5], [5]) == 0
    assert rows._rows is not inherited
    mapped = isinstance(inherited, MappedRows)
    assert inherited._map.closed if mapped else not inherited._closing.alive


READS_AN_EPOCH = """
import sys
from pathlib import Path
from helpers.loaders.datasets import Hdf5Dataset

def anonymous():
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) * 1024

rows = Hdf5Dataset(sys.argv[1], "rows", cache_bytes="8 MiB")
rows[[0]]
before = most = anonymous()
for first in range(0, len(rows), 64):
    rows[range(first, first + 64)]
    most = max(most, anonymous())
print(most - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("layout", "limit"),
    [
        ({}, 16),  # mapped, at an odd place
        ({"chunks": (64, 4096), "compression": "gzip", "compression_opts": 1}, 48),
    ],
)
def test_an_epoch_takes_a_few_batches_of_memory(
    layout: dict[str, Any], limit: int, tmp_path: Path
) -> None:
    with h5py.File(path := tmp_path / "rows.h5", "w") as hdf5:
        hdf5["odd"] = np.zeros(3, np.uint8)  # what follows lies at an odd place
        rows = hdf5.create_dataset("rows", (8192, 4096), "float32", **layout)  # 128 MiB
        for first in range(0, 8192, 64):
            rows[first : first + 64] = np.random.default_rng(first).random((64, 4096), np.float32)
    assert layout or (open_hdf5(path, "rows").offset or 0) % 4 > 0
    assert int(said_by(READS_AN_EPOCH, path)) < limit << 20


def test_a_worker_makes_large_batches_where_the_loop_can_have_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its heap grows: a batch that was freed leaves holes that the next does not fit into."""
    rows = open_any(make(folder, "npy, rows above a page").rows_path)
    few, many = list(range(10)), list(range(300)) * (1 + (1 << 20) // (300 * rows[0].nbytes))
    assert not rows[many].untyped_storage().is_shared()
    monkeypatch.setattr(datasets, "get_worker_info", lambda: "a worker")
    assert rows[many].untyped_storage().is_shared()
    assert not rows[few].untyped_storage().is_shared()
    torch.testing.assert_close(rows[many][:10], rows[few], rtol=0, atol=0)


@pytest.mark.parametrize(("size", "announced"), [("above", [3, 1000, 2999]), ("below", [])])
def test_rows_above_a_page_are_announced_in_the_files_order(
    size: str, announced: list[int], folder: Path
) -> None:
    data = make(folder, f"npy, rows {size} a page")
    rows = open_any(data.rows_path)
    rows[0]
    mapped: Any = rows._rows
    mapped._map = Mock()
    assert data.count_wrong(rows[[1000, 3, 2999]], [1000, 3, 2999]) == 0
    asked = [call.args for call in mapped._map.madvise.call_args_list]
    row_bytes = mapped._row_bytes
    ends = [mapped._offset + (index + 1) * row_bytes for index in announced]
    assert [start + length for _, start, length in asked] == ends
    for advice, start, length in asked:
        assert (advice, start % mmap.PAGESIZE) == (mmap.MADV_WILLNEED, 0)
        assert row_bytes <= length < row_bytes + mmap.PAGESIZE


def test_rows_are_right_where_the_system_takes_no_advice(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(mmap, "MADV_WILLNEED")
    data = make(folder, "npy, rows above a page")
    assert data.count_wrong(open_any(data.rows_path)[[9, 3]], [9, 3]) == 0


def test_a_chunk_is_read_in_one_call_in_the_files_order(folder: Path) -> None:
    data = make(folder, "gzip")
    rows = open_any(data.rows_path)
    rows[0]
    opened: Any = rows._rows
    opened._read = Mock(side_effect=opened._read)
    wanted = [2999, 70, 64, 127, 64, 3]
    assert data.count_wrong(rows[wanted], wanted) == 0
    slices = [(first, first + len(out)) for (first, out), _ in opened._read.call_args_list]
    assert slices == [(3, 4), (64, 128), (2999, 3000)]


@pytest.mark.parametrize("layout", ["npy, rows above a page", "gzip"])
def test_a_file_that_changes_between_epochs_is_named(layout: str, tmp_path: Path) -> None:
    dataset = labelled(make(tmp_path, layout))
    loader = DataLoader(dataset, batch_size=1000)
    assert len(list(loader)) == 3
    os.utime(dataset.rows.path, ns=(1, 1))
    with pytest.raises(RuntimeError, match="was written to while in use"):
        list(loader)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zlib.compress(bytes(119)), "a chunk of 120 bytes has 119"),
        (zlib.compress(bytes(121)), "a chunk of 120 bytes has 121"),
        (b"not zlib", "Error -3"),
    ],
)
def test_a_chunk_that_is_damaged_or_of_another_size_is_named_with_its_rows(
    content: bytes, message: str, tmp_path: Path
) -> None:
    """HDF5 itself hands out what was in memory before, where the size is another."""
    values = np.ones((20, 3), np.float32)
    with h5py.File(tmp_path / "data.h5", "w") as file:
        made = file.create_dataset("rows", data=values, chunks=(10, 3), compression="gzip")
        made.id.write_direct_chunk((10, 0), content)
    rows = Hdf5Dataset(tmp_path / "data.h5", "rows")
    assert rows[9].tolist() == [1, 1, 1]
    with pytest.raises(OSError, match=f"rows 10 to 12 of .*data.h5 .*{message}.*write the file"):
        rows[[9, 12, 10]]


def test_chunks_are_kept_unpacked_as_far_as_the_cache_reaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file.create_dataset("rows", data=np.arange(400), chunks=(100,), compression="gzip")
    unpack = Mock(side_effect=sources._unpack)
    monkeypatch.setattr(sources, "_unpack", unpack)
    wanted = [0, 99, 100, 1, 200, 2, 101]
    for cache_bytes, count in ((1, 6), (1600, 4), (1 << 70, 3)):
        unpack.reset_mock()
        rows = Hdf5Dataset(tmp_path / "data.h5", "rows", cache_bytes=cache_bytes)
        assert [int(rows[row]) for row in wanted] == wanted
        assert unpack.call_count == count


def test_a_filter_that_only_another_process_has_loaded_is_named(tmp_path: Path) -> None:
    error = OSError("can't open directory (/usr/local/lib/plugin)")
    assert "`import hdf5plugin` in the module that defines the dataset" in reading_advice(error)
    assert reading_advice(OSError("read failed")) == "check the disk, or write the file again"
