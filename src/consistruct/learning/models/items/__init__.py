"""Rankings: items of queries of different lengths, sorted by a score per item."""

from consistruct.learning.models.items.model import Items

__all__ = ["Items"]
