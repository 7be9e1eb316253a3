"""The fast path: shuffled batches of rows out of a file larger than RAM, ready to train on.

    batches = ShuffledBlocks("rows.npy", "labels.npy", batch_size=256, buffer_bytes="1 GiB")
    for epoch in range(10):
        batches.set_epoch(epoch)
        for rows, labels in batches:
            ...

Two arrays of one HDF5 file: ShuffledBlocks("data.h5", rows_name="x", labels_name="y").

Threads read whole blocks of rows ahead into a shuffle buffer, and batches are copied out of it. No
DataLoader is needed. If your loop keeps Python busy, let the workers of one read and decompress:

    loader = DataLoader(batches, batch_size=None, num_workers=2, prefetch_factor=1)
    for rows, labels in batches.unpack(loader):           # in each epoch, behind set_epoch
        ...

After a crash, with the state that was saved with the model:

    batches.load_state_dict(state)
    for epoch in range(state["epoch"], 10):
        batches.set_epoch(epoch)                          # the same epoch keeps its place
        ...

Read on in `order` (which rows when), `fills` (threads), `ring` (workers), `sources` (formats).
"""

import os
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from helpers.loaders.columns import Rows, open_columns
from helpers.loaders.fills import make_buffer, read_fills
from helpers.loaders.order import BlockShuffleSampler, Fill
from helpers.loaders.ring import Ring, as_arrays, make_ring
from helpers.loaders.settings import whole_number, yes_or_no
from helpers.loaders.sources import Source, find_source
from helpers.units import parse_size

Batch = Any  # a tensor of rows, or a tuple of rows and labels

# Of the order, without which no state can be resumed. numpy may shuffle otherwise in a new version.
_VERSION = "2, numpy " + ".".join(np.__version__.split(".")[:2])
_INDEX_BYTES = 8  # of each row, in the shuffled order of a fill
# 1 MiB less a page: a read of this size had the disk that we tried at its best, and wherever in a
# page it begins, it fits one bounce buffer.
_BLOCK_BYTES = (1 << 20) - 4096
_FEWEST_BLOCKS = 64  # in a fill, where their size is chosen here: so many mix sorted labels well
_MOST_THREADS = 64
_PLACE = ("batches", "epoch", "buffer_blocks")  # what differs from state to state of one reader


@dataclass
class _Place:
    order: BlockShuffleSampler
    batches: int  # that were handed out


class ShuffledBlocks(IterableDataset[Batch]):
    """Batches of a file's rows, or of `(rows, labels)`, in the order of a `BlockShuffleSampler`.

    Tensors of `(batch_size, *row shape)` in the file's dtype, the loop's own to change; the last of
    an epoch is smaller, or left out with `drop_last`. Every row comes once in an epoch. Of `ranks`
    processes with one seed, each with its own `rank`, all get equally many batches.

    Files are .npy or HDF5, with datasets named "rows" and "labels" unless you say otherwise. Of
    HDF5 these are fast: no chunks, or chunks of whole rows without compression or with gzip, those
    of the labels no larger than a block. Other layouts and filters go through h5py, one thread at
    a time. Blocks are whole chunks, unless there are too few of them for the ranks.

    Memory is `buffer_bytes` for each rank, a megabyte and three chunks for each thread, and a few
    batches, whatever the file's size. Half of it holds the rows that are handed out, half the next
    ones; with workers there are `num_workers * prefetch_factor + 1` buffers, in shared memory. The
    more blocks in a buffer (`order.buffer_blocks`; 64 do well), the better the shuffle: pass all
    the memory you can spare, or smaller `block_rows`.

    A file that free RAM cannot hold is read past the page cache, where system and format can.
    `past_cache=True` does so with any file, which suits one that is read once; `False` never does.

    Raises ValueError, TypeError or OSError before any work; RuntimeError when a file has changed
    (`identity` says what can be seen); OSError, with the rows, where they cannot be read.
    """

    def __init__(
        self,
        rows_path: str | Path,
        labels_path: str | Path | None = None,
        *,
        rows_name: str = "rows",
        labels_name: str | None = None,
        batch_size: int = 256,
        buffer_bytes: str | int = "128 MiB",
        block_rows: int | None = None,
        seed: int = 0,
        drop_last: bool = False,
        rank: int = 0,
        ranks: int = 1,
        threads: int = 4,
        past_cache: bool | None = None,
    ) -> None:
        self._threads = whole_number("threads", threads, 1)
        if self._threads > _MOST_THREADS:
            raise ValueError(f"threads={threads}: pass 1 to {_MOST_THREADS}")
        self._past_cache = None if past_cache is None else yes_or_no("past_cache", past_cache)
        self._columns = open_columns(rows_path, rows_name, labels_path, labels_name)
        row_bytes = sum(column.row_bytes for column in self._columns) + _INDEX_BYTES
        self._memory_rows = parse_size(buffer_bytes) // row_bytes
        order = BlockShuffleSampler(
            self._columns[0].rows,
            batch_size=batch_size,
            block_rows=self._choose_block_rows(block_rows),
            buffer_blocks=sys.maxsize,  # settled below
            seed=seed,
            drop_last=drop_last,
            rank=rank,
            ranks=ranks,
        )
        self._go_to(order, 0)
        self._settle_order(buffers=2)
        self._ring: Ring = []  # in a worker: where it reads to, fill after fill

    def __len__(self) -> int:
        return len(self.order)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration.

        After `load_state_dict` the same epoch keeps its place; another begins at its first batch.
        """
        if epoch != self.order.epoch:
            self._go_to(replace(self.order, epoch=epoch), 0)

    def __iter__(self) -> Iterator[Any]:
        worker, caller = get_worker_info(), sys._getframe(1).f_locals.get("self")
        if getattr(caller, "auto_collation", False):  # of a DataLoader
            raise RuntimeError(
                "the loader would put these batches into batches of its own: pass "
                "DataLoader(batches, batch_size=None, ...)"
            )
        if worker is None:
            self._settle_order(buffers=2)
            return self._batches(self._read_ahead())
        if not self._ring:
            raise RuntimeError(
                "workers hand over whole fills, not batches: "
                "loop over dataset.unpack(loader), not over the loader"
            )
        return self._read_in_worker(worker.id, worker.num_workers)

    def unpack(self, loader: DataLoader[Any]) -> Iterator[Batch]:
        """Yield the batches of a DataLoader over this dataset, whose workers read the fills.

        They read into memory that they share with the loop: `prefetch_factor * num_workers` fills,
        and the one that is handed out. To pin memory, pin each batch.
        """
        if loader.dataset is not self or loader.batch_size is not None:
            raise ValueError("pass DataLoader(batches, batch_size=None, ...) over these batches")
        if loader.num_workers == 0:
            return iter(self)
        for setting, wrong in (("persistent_workers", True), ("in_order", False)):
            if getattr(loader, setting, None) is wrong:
                raise ValueError(f"{setting}={wrong} would mix up the epochs: leave it out")
        if self.order.ranks * loader.num_workers > self.order.blocks:
            raise ValueError(
                f"{self.order.ranks} ranks of {loader.num_workers} workers are more than the "
                f"{self.order.blocks} blocks: pass fewer, or smaller block_rows"
            )
        buffers = loader.num_workers * (loader.prefetch_factor or 1) + 1
        self._settle_order(buffers)
        ring = make_ring(self._columns, self._fill_rows, buffers)
        self._ring = ring  # the workers take it along
        try:
            messages = iter(loader)
        finally:
            self._ring = []
        fills = zip(messages, self.order.fills(self._start), as_arrays(ring), strict=False)
        return self._batches((fill, rows) for _, fill, rows in fills)

    def state_dict(self) -> dict[str, Any]:
        """Return the place behind the last batch that was handed out, as numbers and strings."""
        files = [
            " ".join([*(file.fingerprint for file in column.files), column.name])
            for column in self._columns
        ]
        place = {"batches": self._place.batches, **asdict(self._place.order)}
        return {"version": _VERSION, "files": files, **place}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iteration yield the batches that were left when `state` was taken.

        The place is kept until an iteration ends the epoch, or `set_epoch` has chosen another.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"the state is {state!r}: pass one that state_dict returned")
        for name, own in self.state_dict().items():
            if name not in (*_PLACE, "rank") and state.get(name) != own:
                raise ValueError(
                    f"the state is another reader's: its {name} is {state.get(name)!r}, here it is "
                    f"{own!r}: make this reader as that one was, or begin a new epoch"
                )
        try:
            batches, epoch, buffer_blocks = [whole_number(n, state.get(n), 0) for n in _PLACE]
            order = replace(self.order, epoch=epoch, buffer_blocks=buffer_blocks)
            if batches > len(order):
                raise ValueError(f"batches={batches}: pass {len(order)} or less")
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"the state is of no place ({error}): pass one that state_dict returned"
            ) from error
        self._go_to(order, batches)

    def _go_to(self, order: BlockShuffleSampler, batches: int) -> None:
        #: The sampler of the last iteration, or the next one. With workers, ask after `unpack`.
        self.order = order
        self._start = batches  # that the next iteration leaves out
        self._place = _Place(order, batches)

    def _choose_block_rows(self, wanted: int | None) -> int:
        rows = self._columns[0]
        if wanted is None:
            most = min(self._memory_rows // 2, rows.rows) // _FEWEST_BLOCKS
            wanted = max(min(_BLOCK_BYTES // rows.row_bytes, most), 1)
        return -(-whole_number("block_rows", wanted, 1) // rows.chunk_rows) * rows.chunk_rows

    def _buffer_blocks(self, buffers: int) -> int:
        block_rows = self.order.block_rows
        batch_size = min(self.order.batch_size, self.order.rows)
        rows = self._memory_rows // buffers
        blocks = rows // block_rows
        if blocks * block_rows < batch_size:
            raise ValueError(
                f"buffer_bytes makes {buffers} buffers of {rows} rows, less than a block of "
                f"{block_rows} or a batch of {batch_size}: pass a larger buffer_bytes"
            )
        return blocks

    def _settle_order(self, buffers: int) -> None:
        """Settle how many blocks a buffer holds, which is also how a resumed one must do it."""
        order = self.order
        buffer_blocks = self._buffer_blocks(buffers)
        if self._start and buffer_blocks != order.buffer_blocks:
            raise ValueError(
                f"the state was taken with {order.buffer_blocks} blocks in a buffer, now there "
                f"are {buffer_blocks}: pass buffer_bytes, num_workers and prefetch_factor as they "
                "were, or begin a new epoch"
            )
        self.order = replace(order, buffer_blocks=buffer_blocks)

    def _read_ahead(self) -> Generator[tuple[Fill, list[Rows]]]:
        room = partial(make_buffer, rows=self._fill_rows)
        buffers = ([*map(room, self._columns)] for _ in range(2))
        fills = zip(self.order.fills(self._start), cycle(buffers), strict=False)
        return read_fills(fills, self._find_sources(), self._threads, ahead=1)

    def _read_in_worker(self, worker: int, workers: int) -> Iterator[None]:
        fills = zip(self.order.fills(self._start), as_arrays(self._ring), strict=False)
        mine = islice(fills, worker, None, workers)
        with closing(read_fills(mine, self._find_sources(), self._threads, ahead=0)) as ready:
            for _ in ready:
                yield None

    def _batches(self, fills: Generator[tuple[Fill, list[Rows]]]) -> Iterator[Batch]:
        self._place = place = _Place(self.order, self._start)
        return self._copy_batches(fills, place, os.getpid())

    def _copy_batches(
        self, fills: Generator[tuple[Fill, list[Rows]]], place: _Place, process: int
    ) -> Iterator[Batch]:
        with closing(fills):
            _check_process(process)
            for fill, buffers in fills:
                for places in fill.batches():
                    place.batches += 1
                    batch = tuple(torch.from_numpy(rows.take(places, axis=0)) for rows in buffers)
                    yield batch[0] if len(batch) == 1 else batch
                    _check_process(process)  # before it waits for the next fill
        if self._place is place:
            self._start = 0  # the iteration after this one is whole

    def _find_sources(self) -> list[Source]:
        return [
            find_source(column, self.order.block_rows, self._past_cache) for column in self._columns
        ]

    @property
    def _fill_rows(self) -> int:
        return min(self.order.buffer_blocks * self.order.block_rows, self.order.rows)


def _check_process(process: int) -> None:
    if os.getpid() != process:
        raise RuntimeError(
            "the threads and workers of this iterator are in the process that this one was forked "
            "from: begin an iteration here, iter(batches)"
        )
