"""Decoders against brute force over the rows of F."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from consistruct.decoding.base import SMALLEST_INDEX
from consistruct.protocols import Decoder, FloatArray, IntArray, LabelSet
from consistruct.testing.contracts import (
    ensure,
    ensure_close,
    ensure_raises,
    ensure_same_shape,
    read_only,
    reports_errors,
)
from consistruct.testing.members import check_member

__all__ = ["check_decoder"]

N_THETAS = 40


@reports_errors
def check_decoder(
    decoder: Decoder,
    F: ArrayLike,
    predictions: LabelSet,
    *,
    forbidding: bool = True,
    random_state: int = 0,
) -> None:
    """The decoded label attains max_c ⟨F_c, θ⟩, and ties, −inf and bad input follow the rules.

    Parameters
    ----------
    decoder : Decoder
    F : (k, width) array
        Embedding of every prediction, in index order.
    predictions : LabelSet
    forbidding : bool
        Whether −inf in θ forbids labels; a decoder whose coordinates do not belong to labels
        (an orthonormal basis, sorting) has other rules and is checked without.
    random_state : int
    """
    check_member(decoder)
    rows = np.asarray(F, dtype=np.float64)
    rng = np.random.default_rng(random_state)
    theta = rng.standard_normal((N_THETAS, rows.shape[1]))
    _check_values(decoder, rows, predictions, theta)
    _check_ties(decoder, rows, predictions, rng)
    _check_input(decoder, rows, predictions, theta)
    if forbidding:
        _check_forbidden(decoder, rows, predictions, rng)


def _indices(decoder: Decoder, theta: FloatArray, predictions: LabelSet) -> IntArray:
    found = np.asarray(decoder(theta))
    ensure_same_shape(
        found, (len(theta), *predictions.shape), decoder, "decoding gives (n, *label shape)"
    )
    return predictions.index(found).astype(np.int64)


def _check_values(
    decoder: Decoder, rows: FloatArray, predictions: LabelSet, theta: FloatArray
) -> None:
    if not decoder.exact:
        return
    scores = theta @ rows.T
    attained = scores[np.arange(len(theta)), _indices(decoder, theta, predictions)]
    ensure_close(attained, scores.max(axis=1), decoder, "the decoded label has the largest score")


def _check_ties(
    decoder: Decoder, rows: FloatArray, predictions: LabelSet, rng: np.random.Generator
) -> None:
    ensure(
        isinstance(decoder.tie_rule, str) and bool(decoder.tie_rule), decoder, "tie_rule is stated"
    )
    # small integers: sums are exact in float64 where F holds integers too, and ties are many
    theta = rng.integers(-1, 2, size=(N_THETAS, rows.shape[1])).astype(np.float64)
    theta[0] = 0.0
    if not np.array_equal(rows, np.round(rows)):
        theta = theta[:1]
    found = _indices(decoder, theta, predictions)
    again = _indices(decoder, theta, predictions)
    ensure(np.array_equal(found, again), decoder, "decoding is deterministic")
    scores = theta @ rows.T
    if decoder.exact:
        ensure_close(
            scores[np.arange(len(theta)), found],
            scores.max(axis=1),
            decoder,
            "the decoded label has the largest score among ties",
        )
    if decoder.exact and decoder.tie_rule == SMALLEST_INDEX:
        ensure(
            np.array_equal(found, scores.argmax(axis=1)), decoder, "ties go to the smallest index"
        )


def _check_input(
    decoder: Decoder, rows: FloatArray, predictions: LabelSet, theta: FloatArray
) -> None:
    width = rows.shape[1]
    for n in (0, 1):
        _indices(decoder, theta[:n], predictions)
    single = read_only(theta, np.float32)
    kept = single.copy()
    expected = _indices(decoder, single.astype(np.float64), predictions)
    ensure(
        np.array_equal(_indices(decoder, single, predictions), expected),
        decoder,
        "float32 scores decode like the same numbers in float64",
    )
    ensure(np.array_equal(single, kept), decoder, "decoding leaves its input alone")
    for bad in (np.nan, np.inf):
        if width == 0:
            break
        wrong = theta[:2].copy()
        wrong[1, width - 1] = bad
        ensure_raises(
            ValueError,
            partial(decoder, wrong),
            decoder,
            f"a score of {bad} raises ValueError",
        )
    for wrong in (np.zeros((2, width + 1)), np.zeros(width), np.zeros((1, 1, width))):
        ensure_raises(
            ValueError,
            partial(decoder, wrong),
            decoder,
            "theta of wrong shape raises ValueError",
        )
    ensure_raises(
        TypeError,
        lambda: decoder(np.full((1, width), "a")),
        decoder,
        "theta that is not numeric raises TypeError",
    )


def _check_forbidden(
    decoder: Decoder, rows: FloatArray, predictions: LabelSet, rng: np.random.Generator
) -> None:
    usable = np.flatnonzero((rows >= 0).all(axis=0))
    if len(usable) == 0:
        return
    all_forbidden = np.zeros((1, rows.shape[1]))
    all_forbidden[0, usable] = -np.inf
    if (rows[:, usable] > 0).any(axis=1).all():
        ensure_raises(
            ValueError, lambda: decoder(all_forbidden), decoder, "no label left raises ValueError"
        )
    for _ in range(N_THETAS):
        theta = rng.standard_normal((rows.shape[1],))
        theta[rng.choice(usable, size=1 + rng.integers(len(usable)), replace=False)] = -np.inf
        forbidden = np.isneginf(theta)
        scores = (np.where(forbidden, 0.0, theta)[None] @ rows.T)[0]
        scores[(rows[:, forbidden] > 0).any(axis=1)] = -np.inf
        if np.isneginf(scores).all():
            ensure_raises(
                ValueError,
                partial(decoder, theta[None]),
                decoder,
                "no label left raises ValueError",
            )
            continue
        found = int(_indices(decoder, theta[None], predictions)[0])
        ensure(bool(np.isfinite(scores[found])), decoder, "−inf forbids a label")
        if decoder.exact:
            ensure_close(scores[found], scores.max(), decoder, "the best label left is decoded")
