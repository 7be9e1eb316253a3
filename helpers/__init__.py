"""The workshop's instruments. This file only re-exports; names load when they are first used.

    run an experiment       experiment, records, progress, budget, memory   (running/, system/)
    what forks share        forked_reads
    see it                  live, plots, predictions                        (drawing/)
    disks and machines      page_cache, disk, machine, scales
    in a notebook           extension, importable, checks, evidence         (cells/)
    from a file to batches  loaders/

What stands behind a line of modules is in the folders named beside it. A DataLoader worker that
needs `track` must not pay for matplotlib, so nothing is imported here until it is asked for.

From a file larger than RAM to shuffled batches: `ShuffledBlocks("rows.npy", "labels.npy")`. With a
DataLoader and indices of your own: `NpyDataset("rows.npy")` or `Hdf5Dataset("data.h5", "rows")`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helpers.budget import enforcement as enforcement
    from helpers.checks import check as check
    from helpers.checks import check_dataset as check_dataset
    from helpers.checks import check_value as check_value
    from helpers.disk import read_ahead_bytes as read_ahead_bytes
    from helpers.disk import sequential_read as sequential_read
    from helpers.drawing.mechanisms import draw_double_charge as draw_double_charge
    from helpers.drawing.mechanisms import draw_pickled_map as draw_pickled_map
    from helpers.drawing.mechanisms import draw_read_ahead as draw_read_ahead
    from helpers.drawing.shared_pages import draw_sums as draw_sums
    from helpers.drawing.shared_pages import draw_touched_page as draw_touched_page
    from helpers.drawing.shared_pages import worked_snapshots as worked_snapshots
    from helpers.drawing.sweeps import sweep as sweep
    from helpers.evidence import shown as shown
    from helpers.experiment import run as run
    from helpers.extension import load_ipython_extension as load_ipython_extension
    from helpers.forked_reads import read_in_a_fork as read_in_a_fork
    from helpers.loaders.blocks import ShuffledBlocks as ShuffledBlocks
    from helpers.loaders.datasets import Hdf5Dataset as Hdf5Dataset
    from helpers.loaders.datasets import Labelled as Labelled
    from helpers.loaders.datasets import NpyDataset as NpyDataset
    from helpers.loaders.mixing import distinct_labels as distinct_labels
    from helpers.loaders.order import BlockShuffleSampler as BlockShuffleSampler
    from helpers.loaders.order import ShuffleBuffer as ShuffleBuffer
    from helpers.machine import check_machine as check_machine
    from helpers.memory import anonymous_bytes as anonymous_bytes
    from helpers.page_cache import evict as evict
    from helpers.plots import before_after as before_after
    from helpers.predictions import predict as predict
    from helpers.progress import track as track
    from helpers.scales import scale as scale
    from helpers.units import format_bytes as format_bytes

_HOMES = {
    "anonymous_bytes": "memory",
    "before_after": "plots",
    "BlockShuffleSampler": "loaders.order",
    "check": "checks",
    "check_dataset": "checks",
    "check_machine": "machine",
    "check_value": "checks",
    "distinct_labels": "loaders.mixing",
    "draw_double_charge": "drawing.mechanisms",
    "draw_pickled_map": "drawing.mechanisms",
    "draw_read_ahead": "drawing.mechanisms",
    "draw_sums": "drawing.shared_pages",
    "draw_touched_page": "drawing.shared_pages",
    "enforcement": "budget",
    "evict": "page_cache",
    "format_bytes": "units",
    "Hdf5Dataset": "loaders.datasets",
    "Labelled": "loaders.datasets",
    "load_ipython_extension": "extension",
    "NpyDataset": "loaders.datasets",
    "predict": "predictions",
    "read_ahead_bytes": "disk",
    "read_in_a_fork": "forked_reads",
    "run": "experiment",
    "scale": "scales",
    "sequential_read": "disk",
    "shown": "evidence",
    "ShuffleBuffer": "loaders.order",
    "ShuffledBlocks": "loaders.blocks",
    "sweep": "drawing.sweeps",
    "track": "progress",
    "worked_snapshots": "drawing.shared_pages",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"helpers has no {name!r}; it has {', '.join(sorted(_HOMES))}")
    return getattr(importlib.import_module(f"helpers.{_HOMES[name]}"), name)
