"""Rankings: sort the items by score."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_theta
from consistruct.decoding.base import BaseDecoder
from consistruct.exceptions import FamilyError
from consistruct.labels.ragged import Ragged
from consistruct.protocols import LabelArray

__all__ = ["Sort"]


@dataclass(frozen=True, eq=False, repr=False)
class Sort(BaseDecoder):
    """The order (best item first) that maximises Σ_i θ_i · discount(position of i).

    By the rearrangement inequality items are sorted by θ where the discount never increases.
    Positions of equal discount are interchangeable: items there are listed by number, which makes
    the answer the lexicographically smallest maximiser. An item with θ = −inf goes last.

    Parameters
    ----------
    discount : (n_items,) array or None
        Weight of each position, non-increasing; None decodes packed queries of any length under any
        decreasing discount (`decode_packed`).

    Examples
    --------
    >>> from consistruct.decoding import Sort
    >>> Sort([1.0, 0.6, 0.5])([[0.1, 0.9, 0.5]])
    array([[1, 2, 0]])
    >>> Sort([1.0, 1.0, 0.0])([[0.5, 0.1, 0.9]])  # the first two places count alike
    array([[0, 2, 1]])
    """

    discount: ArrayField | None
    forbids = False  # −inf puts an item last instead

    def __post_init__(self) -> None:
        if self.discount is None:
            return
        discount = frozen_array(self.discount)
        if discount.ndim != 1 or len(discount) == 0 or not np.isfinite(discount).all():
            raise ValueError(
                f"discount must be one finite weight per position, got shape {discount.shape}"
            )
        if (np.diff(discount) > 0).any():
            raise ValueError(
                "discount must not increase with the position; sorting would not be exact"
            )
        self._set(discount=discount)

    @cached_property
    def _plateaus(self) -> list[slice]:
        """Runs of at least two positions with equal discount."""
        discount = np.asarray(self.discount)
        edges = np.flatnonzero(np.diff(discount)) + 1
        bounds = [0, *edges.tolist(), len(discount)]
        runs = [slice(start, stop) for start, stop in pairwise(bounds)]
        return [run for run in runs if run.stop - run.start > 1]

    def __call__(self, theta: ArrayLike) -> LabelArray:
        if self.discount is None:
            raise FamilyError(self, "decode a plain array (decode_packed takes Ragged scores)")
        scores = check_theta(theta, len(self.discount))
        order = np.argsort(-scores, axis=1, kind="stable").astype(np.int64)
        for run in self._plateaus:
            order[:, run] = np.sort(order[:, run], axis=1)
        return order

    def decode_packed(self, theta: Ragged) -> Ragged:
        """Packed item scores (N,) -> packed orders: the best item of each query first."""
        values = np.asarray(theta.values)
        if values.ndim != 1:
            raise ValueError(f"packed theta must contain one score per item, got {values.shape}")
        scores = check_theta(values[:, None], 1)[:, 0]
        order = np.lexsort((-scores, theta.rows))  # stable: equal items by number
        return theta.with_values(order - theta.offsets[theta.rows])
