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
    from helpers.drawing.chunk_grid import draw_chunk_grid as draw_chunk_grid
    from helpers.drawing.heat_maps import draw_heat_maps as draw_heat_maps
    from helpers.drawing.mechanisms import draw_double_charge as draw_double_charge
    from helpers.drawing.mechanisms import draw_pickled_map as draw_pickled_map
    from helpers.drawing.mechanisms import draw_read_ahead as draw_read_ahead
    from helpers.drawing.opens import draw_open as draw_open
    from helpers.drawing.outcome_table import OutcomeTable as OutcomeTable
    from helpers.drawing.setting_curves import draw_setting as draw_setting
    from helpers.drawing.shared_pages import draw_copied as draw_copied
    from helpers.drawing.shared_pages import draw_sums as draw_sums
    from helpers.drawing.shared_pages import draw_touched_page as draw_touched_page
    from helpers.drawing.shared_position import draw_shared_position as draw_shared_position
    from helpers.drawing.shuffle_buffer import draw_shuffle_buffer as draw_shuffle_buffer
    from helpers.drawing.stages import draw_stages as draw_stages
    from helpers.drawing.stream_order import AccuracyCurves as AccuracyCurves
    from helpers.drawing.stream_order import draw_order as draw_order
    from helpers.drawing.sweeps import draw_rungs as draw_rungs
    from helpers.drawing.sweeps import sweep as sweep
    from helpers.drawing.wrong_rows import draw_losses as draw_losses
    from helpers.drawing.wrong_rows import draw_wrong_rows as draw_wrong_rows
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
    from helpers.memory import budgeted_bytes as budgeted_bytes
    from helpers.page_cache import evict as evict
    from helpers.plots import before_after as before_after
    from helpers.predictions import predict as predict
    from helpers.progress import track as track
    from helpers.queued_memory import queued_bytes as queued_bytes
    from helpers.read_counts import count_reads as count_reads
    from helpers.scales import scale as scale
    from helpers.sliders import Slider as Slider
    from helpers.units import format_bytes as format_bytes
    from helpers.verdicts import Verdict as Verdict
    from helpers.verdicts import judge as judge

_HOMES = {
    name: home
    for home, names in {
        "budget": "enforcement",
        "checks": "check check_dataset check_value",
        "disk": "read_ahead_bytes sequential_read",
        "drawing.chunk_grid": "draw_chunk_grid",
        "drawing.heat_maps": "draw_heat_maps",
        "drawing.mechanisms": "draw_double_charge draw_pickled_map draw_read_ahead",
        "drawing.opens": "draw_open",
        "drawing.outcome_table": "OutcomeTable",
        "drawing.setting_curves": "draw_setting",
        "drawing.shared_pages": "draw_copied draw_sums draw_touched_page",
        "drawing.shared_position": "draw_shared_position",
        "drawing.shuffle_buffer": "draw_shuffle_buffer",
        "drawing.stages": "draw_stages",
        "drawing.stream_order": "AccuracyCurves draw_order",
        "drawing.sweeps": "draw_rungs sweep",
        "drawing.wrong_rows": "draw_losses draw_wrong_rows",
        "evidence": "shown",
        "experiment": "run",
        "extension": "load_ipython_extension",
        "forked_reads": "read_in_a_fork",
        "loaders.blocks": "ShuffledBlocks",
        "loaders.datasets": "Hdf5Dataset Labelled NpyDataset",
        "loaders.mixing": "distinct_labels",
        "loaders.order": "BlockShuffleSampler ShuffleBuffer",
        "machine": "check_machine",
        "memory": "anonymous_bytes budgeted_bytes",
        "page_cache": "evict",
        "plots": "before_after",
        "predictions": "predict",
        "progress": "track",
        "queued_memory": "queued_bytes",
        "read_counts": "count_reads",
        "scales": "scale",
        "sliders": "Slider",
        "units": "format_bytes",
        "verdicts": "Verdict judge",
    }.items()
    for name in names.split()
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"helpers has no {name!r}; it has {', '.join(sorted(_HOMES))}")
    return getattr(importlib.import_module(f"helpers.{_HOMES[name]}"), name)
