"""Datasets of any size whose right values are known: made once, streaming, in constant memory."""

from data_gen.comparison import Checked, check
from data_gen.generate import ensure
from data_gen.generated import GeneratedData
from data_gen.recipe import Recipe
from data_gen.shuffling import Shuffled, shuffle
from data_gen.streams import append_log, record_type, write_shards, write_table

__all__ = [
    "Checked",
    "GeneratedData",
    "Recipe",
    "Shuffled",
    "append_log",
    "check",
    "ensure",
    "record_type",
    "shuffle",
    "write_shards",
    "write_table",
]
