"""Datasets of any size whose right values are known: made once, streaming, in constant memory."""

from data_gen.comparison import Checked, check
from data_gen.generate import ensure
from data_gen.generated import GeneratedData
from data_gen.recipe import Recipe
from data_gen.shuffling import Shuffled, shuffle

__all__ = ["Checked", "GeneratedData", "Recipe", "Shuffled", "check", "ensure", "shuffle"]
