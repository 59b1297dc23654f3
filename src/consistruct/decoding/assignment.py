"""Perfect matchings: linear assignment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_theta
from consistruct.decoding.base import BaseDecoder
from consistruct.protocols import LabelArray

__all__ = ["Assignment"]


@dataclass(frozen=True, eq=False, repr=False)
class Assignment(BaseDecoder):
    """The permutation p that maximises Σ_i θ[i, p(i)]; θ is (n, n_items²), row after row.

    Shortest augmenting paths, O(n_items³) per example. Ties are broken by the algorithm's own
    deterministic order, not by index.

    Examples
    --------
    >>> from consistruct.decoding import Assignment
    >>> Assignment(2)([[0.0, 3.0, 2.0, 1.0]])
    array([[1, 0]])
    """

    n_items: int
    tie_rule = "deterministic: order of the augmenting paths"

    def __post_init__(self) -> None:
        self._set(n_items=check_count(self.n_items, "n_items"))

    def __call__(self, theta: ArrayLike) -> LabelArray:
        n_items = self.n_items
        scores = check_theta(theta, n_items**2).reshape(-1, n_items, n_items)
        partners = np.empty((len(scores), n_items), dtype=np.int64)
        for example, matrix in enumerate(scores):
            try:
                partners[example] = scipy.optimize.linear_sum_assignment(matrix, maximize=True)[1]
            except ValueError:
                raise ValueError(
                    f"every matching is forbidden (score −inf) for example {example}; "
                    f"leave at least one matching possible"
                ) from None
        return partners
