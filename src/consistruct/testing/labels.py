"""Label sets: exact size, index and unindex, bounded enumeration, measure, input checks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from consistruct.exceptions import TooManyLabelsError
from consistruct.protocols import LabelSet
from consistruct.testing.contracts import (
    ensure,
    ensure_close,
    ensure_raises,
    ensure_same_shape,
    read_only,
    reports_errors,
)
from consistruct.testing.members import check_member

__all__ = ["check_label_set"]

N_DRAWS = 20_000


@reports_errors
def check_label_set(labels: LabelSet, *, random_state: int = 0) -> None:
    """Check a finite label set over all its labels, or an infinite one (size None) by samples."""
    check_member(labels)
    rng = np.random.default_rng(random_state)
    drawn = labels.sample(5, rng)
    ensure_same_shape(drawn, (5, *labels.shape), labels, "sample(n) has shape (n, *shape)")
    ensure(np.array_equal(labels.check(drawn), drawn), labels, "samples are valid labels")
    ensure(isinstance(labels.measure, str) and bool(labels.measure), labels, "measure is a name")
    _check_input(labels, drawn)
    if labels.size is None:
        for name, action in (
            ("enumerate", labels.enumerate),
            ("weights", labels.weights),
            ("index", lambda: labels.index(drawn)),
        ):
            ensure_raises(
                TooManyLabelsError,
                action,
                labels,
                f"{name} of an infinite set raises TooManyLabelsError",
            )
        return
    _check_finite(labels, labels.size, rng)


def _check_input(labels: LabelSet, drawn: Any) -> None:
    frozen = read_only(drawn)
    labels.check(frozen)
    ensure(np.array_equal(frozen, drawn), labels, "check leaves its input alone")
    empty = labels.check(drawn[:0])
    ensure_same_shape(empty, (0, *labels.shape), labels, "a batch of 0 labels is accepted")
    ensure_same_shape(
        labels.check(drawn[:1]), (1, *labels.shape), labels, "a batch of 1 label is accepted"
    )
    ensure_raises(
        ValueError,
        lambda: labels.check(drawn[None]),
        labels,
        "labels of a wrong shape raise ValueError",
    )
    ensure_raises(
        TypeError,
        lambda: labels.check(drawn.astype(str)),
        labels,
        "strings as labels raise TypeError",
    )
    if getattr(labels, "signed", False):  # costs of either sign, but finite ones
        outside = np.full_like(drawn, np.nan)
    else:
        outside = -1 - drawn
    ensure_raises(
        ValueError, lambda: labels.check(outside), labels, "labels out of range raise ValueError"
    )


def _check_finite(labels: LabelSet, size: int, rng: np.random.Generator) -> None:
    ensure(type(size) is int and size >= 1, labels, "size is a positive Python int")
    every = labels.enumerate(limit=size)
    ensure_same_shape(every, (size, *labels.shape), labels, "enumerate gives (size, *shape)")
    ensure(len(np.unique(every, axis=0)) == size, labels, "enumerated labels are distinct")
    ensure(
        np.array_equal(labels.index(every), np.arange(size)), labels, "enumerate is in index order"
    )
    ensure(np.array_equal(labels.unindex(np.arange(size)), every), labels, "unindex inverts index")
    for dtype in (np.int16, np.int32, np.uint64):
        small = read_only(every, dtype)
        ensure(
            np.array_equal(labels.index(small), np.arange(size)),
            labels,
            f"{dtype.__name__} is accepted",
        )
    for name, action in (
        ("enumerate", lambda: labels.enumerate(limit=size - 1)),
        ("weights", lambda: labels.weights(limit=size - 1)),
    ):
        ensure_raises(TooManyLabelsError, action, labels, f"{name} raises above its limit")
    for outside in (size, -1):
        ensure_raises(
            ValueError,
            partial(labels.unindex, [outside]),
            labels,
            "a wrong index raises ValueError",
        )
    ensure_raises(
        ValueError,
        lambda: labels.check(every + size),
        labels,
        "labels out of range raise ValueError",
    )
    ensure_raises(
        TypeError, lambda: labels.check(every + 0.5), labels, "fractions as labels raise TypeError"
    )
    weights = labels.weights(limit=size)
    ensure_same_shape(weights, (size,), labels, "weights has one entry per label")
    ensure(bool((weights > 0).all()), labels, "the reference measure is positive everywhere")
    ensure_close(weights.sum(), 1.0, labels, "the reference measure sums to one")
    if labels.measure == "uniform":
        ensure_close(
            weights, np.full(size, 1 / size), labels, "the measure named uniform is uniform"
        )
    seen = np.bincount(labels.index(labels.sample(N_DRAWS, rng)).astype(np.int64), minlength=size)
    # six standard deviations of a binomial share; the seed is fixed
    allowed = 6 * np.sqrt(weights / N_DRAWS) + 6 / N_DRAWS
    gap = np.abs(seen / N_DRAWS - weights) / allowed
    ensure(bool(gap.max() <= 1), labels, "sample draws from the reference measure")
