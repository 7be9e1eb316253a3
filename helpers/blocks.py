"""The fast path: shuffled batches of rows out of a file larger than RAM, ready to train on.

    batches = ShuffledBlocks("rows.npy", "labels.npy", batch_size=256, mix_bytes="128 MiB")
    for epoch in range(10):
        batches.set_epoch(epoch)
        for rows, labels in batches:
            ...

Labels in the same HDF5 file: ShuffledBlocks("data.h5", "data.h5"). Threads read whole blocks of
rows ahead, and each value is copied twice: from the file into a mix of blocks, from there into its
batch. So no DataLoader is needed. Its workers pay where every batch is worth much of Python's time:

    loader = DataLoader(batches, batch_size=None, num_workers=2)
    for rows, labels in batches.unpack(loader):
        ...

How an order comes about is told in `block_order`, how rows are read in `mixes` and `columns`.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from helpers.block_order import BlockOrder, Indices, Place
from helpers.columns import Column, open_column
from helpers.messages import Batch, Message, as_batch
from helpers.mixes import copy_rows, read_mixes
from helpers.units import parse_size

_VERSION = 1  # of the order: the same seed gives the same batches, and a state can be resumed
_BLOCK_BYTES = 1 << 20  # large enough to be read at the disk's speed, small enough to mix many
_FEWEST_BLOCKS = 32  # in a mix, and in a file, where their size is chosen here
_PICK_BYTES = 8  # for each row of the mix that is handed out


class ShuffledBlocks(IterableDataset[Batch]):
    """Batches of a file's rows, or of `(rows, labels)`, in shuffled blocks.

    Every row comes once in an epoch. Memory is `mix_bytes`, shared out among DataLoader workers,
    plus a few batches: half of it holds the mix that is handed out, half the next one. The more
    blocks in a mix the better the shuffle: smaller `block_rows`, or larger `mix_bytes`. Of `ranks`
    processes, each with its own `rank`, all get as many batches.
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
        batches_per_message: int = 16,
    ) -> None:
        if threads < 1:
            raise ValueError(f"threads={threads}: pass 1 or more")
        self._columns = _open_columns(rows_path, rows_name, labels_path, labels_name)
        rows, mix_rows = self._columns[0], _count_mix_rows(self._columns, mix_bytes)
        if block_rows is None:
            block_rows = _choose_block_rows(rows, mix_rows)
        elif block_rows % rows.chunk_rows and block_rows != rows.rows:
            raise ValueError(
                f"block_rows={block_rows} cuts chunks of {rows.chunk_rows} rows: "
                f"pass a multiple of {rows.chunk_rows}"
            )
        self._order = BlockOrder(
            rows=rows.rows,
            block_rows=block_rows,
            mix_rows=mix_rows,
            batch_size=batch_size,
            batches_per_message=batches_per_message,
            seed=seed,
            drop_last=drop_last,
            rank=rank,
            ranks=ranks,
        )
        self._threads = threads
        self._epoch = 0
        self._start = 0  # batches that the next iteration leaves out
        self._handed_out = 0
        self._workers = 1

    def __len__(self) -> int:
        return self._order.batches

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration. Another epoch begins at its first batch."""
        if epoch != self._epoch:
            self._epoch, self._start, self._handed_out = epoch, 0, 0

    def indices(self, num_workers: int = 0) -> Iterator[Indices]:
        """Yield the row numbers of each batch that the next iteration hands out."""
        return self._order.indices(self._epoch, self._start, max(num_workers, 1))

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        if worker is None:
            return self._batches(self._begin(1))
        place = self._begin(worker.num_workers)
        # The loader asks worker 0 first: after a resume it plays the part whose turn it is.
        turn = worker.id + place.batches // self._order.batches_per_message
        return self._messages(place._replace(worker=turn % place.workers))

    def unpack(self, loader: DataLoader[Batch]) -> Iterator[Batch]:
        """Yield the batches of a DataLoader over this dataset, one by one.

        Workers send messages of several batches, because a message takes about the same time
        whatever its size.
        """
        if loader.num_workers == 0:
            return iter(loader)
        if loader.persistent_workers:
            raise ValueError(
                "persistent_workers=True keeps all epochs in the first one's order: pass False"
            )
        place = self._begin(loader.num_workers)
        self._start = place.batches  # for the copies that the workers get
        messages = iter(loader)
        self._start = 0
        return self._unpacked(messages)

    def state_dict(self) -> dict[str, Any]:
        """Return the place in the epoch, behind the last batch that was handed out."""
        return {
            "epoch": self._epoch,
            "batches": self._handed_out,
            "workers": self._workers,
            **self._identity(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Make the next iteration yield the batches that were left when `state` was taken."""
        for name, own in self._identity().items():
            if state.get(name) != own:
                raise ValueError(
                    f"the state is of another reader: its {name} is {state.get(name)!r}, here it "
                    f"is {own!r}: make this reader as that one was, or begin a new epoch"
                )
        self._epoch, self._workers = state["epoch"], state["workers"]
        self._start = self._handed_out = state["batches"]

    def _identity(self) -> dict[str, Any]:
        files = [_digest(column.path) for column in self._columns]
        return {"version": _VERSION, **asdict(self._order), "files": files}

    def _begin(self, workers: int) -> Place:
        """Return where an iteration starts; the one after it starts with the epoch."""
        self._order.check_workers(workers)
        if self._start and workers != self._workers:
            raise ValueError(
                f"the state was taken with num_workers={self._workers} and the loader has "
                f"{workers}: pass the same number, or begin a new epoch"
            )
        place = Place(self._epoch, self._start, workers=workers)
        self._start, self._handed_out, self._workers = 0, place.batches, workers
        return place

    def _batches(self, place: Place) -> Iterator[Batch]:
        for _, tensors in self._read(replace(self._order, batches_per_message=1), place):
            self._handed_out += 1
            yield as_batch(tensors)

    def _messages(self, place: Place) -> Iterator[Message]:
        for sizes, tensors in self._read(self._order, place):
            yield Message(sizes, tensors)

    def _unpacked(self, messages: Iterator[Message]) -> Iterator[Batch]:
        for message in messages:
            for batch in message.batches():
                self._handed_out += 1
                yield batch

    def _read(
        self, order: BlockOrder, place: Place
    ) -> Iterator[tuple[list[int], list[torch.Tensor]]]:
        mix_rows = min(order.mix_rows // place.workers, order.rows)
        mixes = read_mixes(order.mixes(place), self._columns, mix_rows, self._threads)
        with closing(mixes):
            sizes = map(sum, order.messages(place))
            yield from zip(
                order.messages(place), copy_rows(mixes, self._columns, sizes), strict=True
            )


def _open_columns(
    rows_path: str | Path, rows_name: str, labels_path: str | Path | None, labels_name: str
) -> list[Column]:
    rows = open_column(rows_path, rows_name)
    if labels_path is None:
        return [rows]
    labels = open_column(labels_path, labels_name)
    if labels.rows != rows.rows:
        raise ValueError(
            f"{rows.path} has {rows.rows:,} rows, and {labels.path} {labels.rows:,} labels: "
            "pass the labels of these rows"
        )
    return [rows, labels]


def _count_mix_rows(columns: Sequence[Column], mix_bytes: str | int) -> int:
    """Return how many rows half of the memory holds."""
    row_bytes = sum(column.row_bytes for column in columns)
    return parse_size(mix_bytes) // (2 * row_bytes + _PICK_BYTES)


def _choose_block_rows(rows: Column, mix_rows: int) -> int:
    """Return about a megabyte of rows, less where a mix or the file would have too few blocks."""
    most = min(mix_rows, rows.rows) // _FEWEST_BLOCKS
    chunks = min(_BLOCK_BYTES // rows.row_bytes, most) // rows.chunk_rows
    return min(max(chunks, 1) * rows.chunk_rows, rows.rows)


def _digest(path: Path) -> str:
    """Return a digest of a file's size and of 16 samples: the same for a copy of the file."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for sample in range(16):
            file.seek(size * sample // 16)
            digest.update(file.read(4096))
    return digest.hexdigest()
