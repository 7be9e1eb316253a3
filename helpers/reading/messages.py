"""Messages: how DataLoader workers hand over batches, several at a time, through shared memory.

A message between processes takes as long whatever its size, and to map new shared memory takes
longer than to fill it. So a worker writes its batches into slots that are made once and used in
turn. Its message only names the slot, and the process of the loop copies the batches out.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch

from helpers.reading.block_reads import Rows
from helpers.reading.columns import Column
from helpers.reading.mixes import make_room


class Message(NamedTuple):
    """Tells which batches of a worker lie ready in the next slot."""

    worker: int
    number: int  # of the worker's messages, in an epoch
    sizes: list[int]  # of its batches, which lie one after another


class Slots:
    """Shared memory for as many messages of each worker as are in use at a time.

    A loader asks a worker for its next message when it hands out the one `prefetch_factor` before.
    That one is still in use then, and none before it; so one slot more is enough.
    """

    def __init__(
        self, columns: Sequence[Column], rows: int, workers: int, prefetch_factor: int
    ) -> None:
        self._columns = columns
        self._count = prefetch_factor + 1
        empty = (make_room(column, workers, self._count, rows) for column in columns)
        self._tensors = [
            torch.from_numpy(array).share_memory_()  # type: ignore[no-untyped-call]
            for array in empty
        ]

    def arrays(self, worker: int, messages: Iterable[list[int]]) -> Iterator[list[Rows]]:
        """Yield the arrays that hold the rows of a worker's messages, one after another."""
        for number, sizes in enumerate(messages):
            yield [rows[: sum(sizes)] for rows in self._slot(worker, number)]

    def take(self, message: Message) -> Iterator[list[Rows]]:
        """Yield copies of the batches of a message, an array for each column."""
        slot, first = self._slot(message.worker, message.number), 0
        for size in message.sizes:
            copies = [make_room(column, size) for column in self._columns]
            for copy, rows in zip(copies, slot, strict=True):
                copy[:] = rows[first : first + size]
            yield copies
            first += size

    def _slot(self, worker: int, number: int) -> list[Rows]:
        return [tensor[worker, number % self._count].numpy() for tensor in self._tensors]
