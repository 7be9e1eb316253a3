"""Datasets of any size whose right values are known: made once, streaming, in constant memory."""

from data_gen.blocks import Recipe
from data_gen.made import MadeData
from data_gen.making import ensure

__all__ = ["MadeData", "Recipe", "ensure"]
