"""The fast path: shuffled batches of rows out of a file larger than RAM, ready to train on.

    batches = ShuffledBlocks("rows.npy", "labels.npy", batch_size=256, mix_bytes="128 MiB")
    for epoch in range(10):
        batches.set_epoch(epoch)
        for rows, labels in batches:
            ...

Labels in the same HDF5 file: ShuffledBlocks("data.h5", "data.h5"). Threads read whole blocks of
rows ahead, and each value is copied twice: from the file into a mix of blocks, from there into its
batch. So no DataLoader is needed. Its workers can take over the reading and mixing as well, where
the loop itself needs much of Python:

    loader = DataLoader(batches, batch_size=None, num_workers=2)
    for rows, labels in batches.unpack(loader):
        ...

Where to read on: `block_order` (which rows when), `mixes` (threads and buffers), `columns` (files),
`messages` (from workers to the loop).
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from helpers.reading.block_order import BlockOrder, Indices, Place
from helpers.reading.block_reads import Rows
from helpers.reading.columns import choose_block_rows, fingerprint, open_columns
from helpers.reading.messages import Message, Slots
from helpers.reading.mixes import copy_rows, make_room, read_mixes
from helpers.reading.raw_files import MOST_ROOMS
from helpers.units import parse_size

Batch = Any  # a tensor of rows, or a tuple of rows and labels

# Of the order, without which no state can be resumed. numpy may shuffle otherwise in a new version.
_VERSION = "1, numpy " + ".".join(np.__version__.split(".")[:2])
_PLACE_BYTES = 8  # of a row in its mix
_MESSAGE_BYTES = 1 << 22  # so much to copy that the message itself costs little


class ShuffledBlocks(IterableDataset[Batch]):
    """Batches of a file's rows, or of `(rows, labels)`, in shuffled blocks.

    Every row comes once in an epoch, and without `set_epoch` each epoch has the order of the first.
    Of `ranks` processes, each with its own `rank`, all get as many batches.

    Memory is `mix_bytes`, shared out among workers, plus a few batches, whatever the file's size:
    half of it holds the mix that is handed out, half the next one. The more blocks in a mix, the
    better the shuffle: pass smaller `block_rows`, or larger `mix_bytes`.

    A file that RAM cannot hold is read past the page cache. `past_cache=True` does so with any
    file, which suits one that is read once; `False` never does.
    """

    def __init__(
        self,
        rows_path: str | Path,
        labels_path: str | Path | None = None,
        *,
        rows_name: str = "rows",
        labels_name: str = "labels",
        batch_size: int = 256,
        mix_bytes: str | int = "128 MiB",
        block_rows: int | None = None,
        seed: int = 0,
        drop_last: bool = False,
        rank: int = 0,
        ranks: int = 1,
        threads: int = 4,
        past_cache: bool | None = None,
    ) -> None:
        if not 1 <= threads <= MOST_ROOMS:
            raise ValueError(f"threads={threads}: pass 1 to {MOST_ROOMS}")
        self._columns = open_columns(rows_path, rows_name, labels_path, labels_name)
        row_bytes = sum(column.row_bytes for column in self._columns)
        mix_rows = parse_size(mix_bytes) // 2 // (row_bytes + _PLACE_BYTES)
        self._order = BlockOrder(
            rows=self._columns[0].rows,
            block_rows=choose_block_rows(self._columns[0], block_rows, mix_rows),
            mix_rows=mix_rows,
            batch_size=batch_size,
            batches_per_message=min(max(_MESSAGE_BYTES // (row_bytes * max(batch_size, 1)), 1), 32),
            seed=seed,
            drop_last=drop_last,
            rank=rank,
            ranks=ranks,
        )
        self._threads, self._past_cache = threads, past_cache
        self._epoch = 0
        self._start = 0  # batches that the next iteration leaves out
        self._handed_out = 0
        self._workers = 1
        self._slots: Slots | None = None  # in a worker: where its messages go

    def __len__(self) -> int:
        return self._order.batches

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration. Another epoch begins at its first batch."""
        if epoch < 0:
            raise ValueError(f"epoch={epoch}: pass 0 or more")
        if epoch != self._epoch:
            self._epoch, self._start, self._handed_out = epoch, 0, 0

    def indices(self, num_workers: int = 0) -> Iterator[Indices]:
        """Yield the row numbers of each batch that the next iteration hands out."""
        return self._order.indices(self._epoch, self._start, max(num_workers, 1))

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        if worker is None:
            return self._batches(self._begin(1))
        if self._slots is None:
            raise RuntimeError(
                "workers hand over several batches at a time: "
                "loop over dataset.unpack(loader), not over the loader"
            )
        place = self._begin(worker.num_workers)
        # The loader asks worker 0 first: after a resume it plays the part whose turn it is.
        turn = worker.id + place.batches // self._order.batches_per_message
        return self._messages(place._replace(worker=turn % place.workers), self._slots)

    def unpack(self, loader: DataLoader[Any]) -> Iterator[Batch]:
        """Yield the batches of a DataLoader over this dataset, out of its workers' messages."""
        if loader.num_workers == 0:
            return iter(loader)
        for setting, wrong in (("persistent_workers", True), ("in_order", False)):
            if getattr(loader, setting, None) is wrong:
                raise ValueError(f"{setting}={wrong} would mix up the epochs: leave it out")
        place = self._begin(loader.num_workers)
        rows = self._order.batches_per_message * self._order.batch_size
        slots = Slots(self._columns, rows, loader.num_workers, loader.prefetch_factor or 1)
        self._start, self._slots = place.batches, slots  # the workers take a copy of this along
        try:
            messages = iter(loader)
        finally:
            self._start, self._slots = 0, None
        return self._unpacked(messages, slots)

    def state_dict(self) -> dict[str, Any]:
        """Return the place behind the last batch that was handed out, as numbers and strings."""
        place = {"epoch": self._epoch, "batches": self._handed_out, "workers": self._workers}
        return {**place, **self._identity()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iteration yield the batches that were left when `state` was taken."""
        for name, own in self._identity().items():
            if state.get(name) != own:
                raise ValueError(
                    f"the state is another reader's: its {name} is {state.get(name)!r}, here it is "
                    f"{own!r}: make this reader as that one was, or begin a new epoch"
                )
        self._epoch, self._workers = state["epoch"], state["workers"]
        self._start = self._handed_out = state["batches"]

    def _identity(self) -> dict[str, Any]:
        files = [fingerprint(column.path) for column in self._columns]
        return {"version": _VERSION, **asdict(self._order), "files": files}

    def _begin(self, workers: int) -> Place:
        """Return where an iteration starts. The one after it starts with the epoch."""
        self._order.check_workers(workers)
        if self._start and workers != self._workers:
            raise ValueError(
                f"the state was taken with num_workers={self._workers}, and the loader has "
                f"{workers}: pass the same number, or begin a new epoch"
            )
        place = Place(self._epoch, self._start, workers=workers)
        self._start, self._handed_out, self._workers = 0, place.batches, workers
        return place

    def _batches(self, place: Place) -> Iterator[Batch]:
        """Yield batches in the process of the loop."""
        order = replace(self._order, batches_per_message=1)
        sizes = (size for (size,) in order.messages(place))
        new = ([make_room(column, size) for column in self._columns] for size in sizes)
        for arrays in self._filled(new, order, place):
            self._handed_out += 1
            yield _as_batch(arrays)

    def _messages(self, place: Place, slots: Slots) -> Iterator[Message]:
        """Yield messages in a worker."""
        arrays = slots.arrays(place.worker, self._order.messages(place))
        filled = self._filled(arrays, self._order, place)
        for number, sizes in enumerate(self._order.messages(place)):
            next(filled)
            yield Message(place.worker, number, sizes)

    def _unpacked(self, messages: Iterator[Message], slots: Slots) -> Iterator[Batch]:
        """Yield the batches of messages in the process of the loop."""
        for message in messages:
            for arrays in slots.take(message):
                self._handed_out += 1
                yield _as_batch(arrays)

    def _filled(
        self, arrays: Iterable[list[Rows]], order: BlockOrder, place: Place
    ) -> Iterator[list[Rows]]:
        mix_rows = min(order.mix_rows // place.workers, order.rows)
        mixes = read_mixes(
            order.mixes(place),
            self._columns,
            mix_rows,
            threads=self._threads,
            past_cache=self._past_cache,
        )
        with closing(mixes):
            yield from copy_rows(mixes, arrays)


def _as_batch(arrays: list[Rows]) -> Batch:
    tensors = [torch.from_numpy(array) for array in arrays]
    return tensors[0] if len(tensors) == 1 else tuple(tensors)
