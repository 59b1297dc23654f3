"""Check label sets: exact size, index and unindex, bounded enumeration, measure, input."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from consistruct.exceptions import TooManyLabelsError
from consistruct.protocols import LabelSet
from consistruct.testing.contracts import Contracts, read_only, reports_errors
from consistruct.testing.members import check_member

__all__ = ["check_label_set"]

# draws that are counted against the measure: a share of 1 % is then known to 0.4 % (six deviations)
N_DRAWS = 20_000


@reports_errors
def check_label_set(labels: LabelSet, *, random_state: int = 0) -> None:
    """Check a finite label set over all its labels, or an infinite one (size None) by samples.

    Parameters
    ----------
    labels : LabelSet
        A few hundred labels at most; all of them are listed.
    random_state : int
        Seed of the samples.

    Examples
    --------
    >>> from consistruct.structures import Product
    >>> from consistruct.testing.labels import check_label_set
    >>> check_label_set(Product(3, 2))
    """
    contracts = Contracts(labels)
    check_member(labels)
    rng = np.random.default_rng(random_state)
    drawn = labels.sample(5, rng)
    contracts.shape(drawn, (5, *labels.shape), "sample(n) has shape (n, *shape)")
    contracts.ensure(np.array_equal(labels.check(drawn), drawn), "samples are valid labels")
    contracts.ensure(isinstance(labels.measure, str) and bool(labels.measure), "measure is a name")
    _check_input(labels, drawn)
    if labels.size is None:
        # an infinite set has no list: an error in place of a loop that never ends
        for name, action in (
            ("enumerate", labels.enumerate),
            ("weights", labels.weights),
            ("index", lambda: labels.index(drawn)),
        ):
            contracts.raises(
                TooManyLabelsError, action, f"{name} of an infinite set raises TooManyLabelsError"
            )
        return
    _check_finite(labels, labels.size, rng)


def _check_input(labels: LabelSet, drawn: Any) -> None:
    """Check that valid batches of any size pass unchanged, and that others are refused."""
    contracts = Contracts(labels)
    frozen = read_only(drawn)
    labels.check(frozen)
    contracts.ensure(np.array_equal(frozen, drawn), "check leaves its input alone")
    # splits of data leave batches of 0 and 1 rows, where shapes are lost most easily
    empty = labels.check(drawn[:0])
    contracts.shape(empty, (0, *labels.shape), "a batch of 0 labels is accepted")
    contracts.shape(labels.check(drawn[:1]), (1, *labels.shape), "a batch of 1 label is accepted")
    contracts.raises(
        ValueError, lambda: labels.check(drawn[None]), "labels of a wrong shape raise ValueError"
    )
    contracts.raises(
        TypeError, lambda: labels.check(drawn.astype(str)), "strings as labels raise TypeError"
    )
    if getattr(labels, "signed", False):  # costs of either sign, but finite ones
        outside = np.full_like(drawn, np.nan)
    else:
        # −1 − label is negative for every valid label, and of the right dtype and shape
        outside = -1 - drawn
    contracts.raises(
        ValueError, lambda: labels.check(outside), "labels out of range raise ValueError"
    )


def _check_finite(labels: LabelSet, size: int, rng: np.random.Generator) -> None:
    """Check size, order, measure and samples of a set that can be listed.

    ``index`` and ``unindex`` are inverse to each other and follow the order of ``enumerate``, in
    which ties are broken: decisions depend on it.
    """
    contracts = Contracts(labels)
    contracts.ensure(type(size) is int and size >= 1, "size is a positive Python int")
    listed = labels.enumerate(limit=size)
    contracts.shape(listed, (size, *labels.shape), "enumerate gives (size, *shape)")
    contracts.ensure(len(np.unique(listed, axis=0)) == size, "enumerated labels are distinct")
    contracts.ensure(
        np.array_equal(labels.index(listed), np.arange(size)), "enumerate is in index order"
    )
    contracts.ensure(
        np.array_equal(labels.unindex(np.arange(size)), listed), "unindex inverts index"
    )
    # labels of other libraries come in any integer type; a difference of uint64 would wrap around
    for dtype in (np.int16, np.int32, np.uint64):
        small = read_only(listed, dtype)
        contracts.ensure(
            np.array_equal(labels.index(small), np.arange(size)), f"{dtype.__name__} is accepted"
        )
    for name, action in (
        ("enumerate", lambda: labels.enumerate(limit=size - 1)),
        ("weights", lambda: labels.weights(limit=size - 1)),
    ):
        contracts.raises(TooManyLabelsError, action, f"{name} raises above its limit")
    for outside in (size, -1):
        contracts.raises(
            ValueError, partial(labels.unindex, [outside]), "a wrong index raises ValueError"
        )
    contracts.raises(
        ValueError, lambda: labels.check(listed + size), "labels out of range raise ValueError"
    )
    contracts.raises(
        TypeError, lambda: labels.check(listed + 0.5), "fractions as labels raise TypeError"
    )
    # a label of weight 0 would make Ḡ singular on scores that decisions depend on
    weights = labels.weights(limit=size)
    contracts.shape(weights, (size,), "weights has one entry per label")
    contracts.ensure((weights > 0).all(), "the reference measure is positive everywhere")
    contracts.close(weights.sum(), 1.0, "the reference measure sums to one")
    if labels.measure == "uniform":
        contracts.close(weights, np.full(size, 1 / size), "the measure named uniform is uniform")
    seen = np.bincount(labels.index(labels.sample(N_DRAWS, rng)).astype(np.int64), minlength=size)
    # six standard deviations of a binomial share, and six counts for labels that are hardly drawn;
    # the seed is fixed, so that a right set passes every time
    allowed = 6 * np.sqrt(weights / N_DRAWS) + 6 / N_DRAWS
    gap = np.abs(seen / N_DRAWS - weights) / allowed
    contracts.ensure(gap.max() <= 1, "sample draws from the reference measure")
