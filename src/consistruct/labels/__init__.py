"""Label sets: exact sizes, a fixed order, sampling, packed batches, bounded enumeration."""

from consistruct.labels.base import Classes
from consistruct.labels.costs import CostVectorSet
from consistruct.labels.permutations import Permutations
from consistruct.labels.product import Product
from consistruct.labels.ragged import Ragged
from consistruct.labels.subsets import Subsets

__all__ = ["Classes", "CostVectorSet", "Permutations", "Product", "Ragged", "Subsets"]
