"""Compare the problem of a certificate with a user's own loss and scores, exactly.

A check proves a sentence about the numbers in the file. These functions tell whether it is about
the loss and the scores that a reader cares about, and where not, name the first difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from consistruct.calibration.problem.listed import own_basis
from consistruct.certificates.exact import (
    exact_text,
    independent_columns,
    integer_columns,
    number,
)
from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss
from consistruct.structures import Structure

__all__ = ["check_space", "different_matrix", "different_scores", "same_parts"]

Rows = Sequence[Sequence[Any]]


def different_matrix(rows: Rows, loss: Loss) -> str | None:
    """Return how a matrix differs from a loss, None if it does not."""
    size = len(rows), len(rows[0])
    own = loss.n_labels, loss.true_labels.size
    if own != size:
        return (
            f"its loss is a matrix of {size[0]} × {size[1]}, {loss!r} has {own[0]} predictions and "
            f"{'infinitely many' if own[1] is None else own[1]} true labels"
        )
    for c, (given, row) in enumerate(zip(rows, loss.matrix().tolist(), strict=True)):
        for y, (a, b) in enumerate(zip(given, row, strict=True)):
            if number(a) != Fraction(b):
                return (
                    f"its loss of predicting {c} where {y} is true is {exact_text(number(a))}, "
                    f"that of {loss!r} is {exact_text(Fraction(b))}"
                )
    return None


def same_parts(T: int, n_states: int, loss: Loss) -> str | None:
    """Return how the share of wrong parts differs from a loss, None if it does not."""
    if loss.hamming_shape == (T, n_states):
        return None
    return f"its loss is the Hamming loss of {T} parts with {n_states} states each, not {loss!r}"


def different_scores(
    scores: Rows | None, measure: Sequence[Any] | None, loss: Loss, space: Structure
) -> str | None:
    """Return how listed scores differ from a space, None if they span the same and weigh alike."""
    k = space.predictions.size
    assert k is not None
    uniform = [Fraction(1, k)] * k
    given = uniform if measure is None else [number(x) for x in measure]
    is_uniform = space.measure == "uniform"
    own = uniform if is_uniform else [Fraction(x) for x in space.predictions.weights().tolist()]
    if given != own:
        return f"its reference measure is not that of {space!r}"
    mine = None if space.one_per_label else _columns(own_basis(loss, space).tolist())
    theirs = None if scores is None else _columns([[number(x) for x in row] for row in scores])
    ranks = [k if basis is None else len(basis[0]) for basis in (mine, theirs)]
    if ranks[0] != ranks[1]:
        return f"its scores have rank {ranks[1]}, those of {space!r} have rank {ranks[0]}"
    if mine is None or theirs is None or ranks[0] == k:
        return None  # all scores that there are
    both = [a + b for a, b in zip(mine, theirs, strict=True)]
    if len(independent_columns(both)) > ranks[0]:
        return f"its scores are another space of rank {ranks[1]} than {space!r}"
    return None


def _columns(rows: Rows) -> list[list[int]]:
    """A basis of the columns, as integers."""
    whole = integer_columns(rows)
    kept = independent_columns(whole)
    return [[row[column] for column in kept] for row in whole]


def check_space(loss: Loss, scores: Any) -> Structure:
    """Return the scores that a user names: a space, a spec such as "full", or None for own ones."""
    from consistruct.structures.registry import parse_scores

    if scores is None:
        own = loss.score_space
        assert isinstance(own, Structure)
        return own
    if isinstance(scores, Structure):
        return scores
    if isinstance(scores, str):
        return parse_scores(scores, loss)
    raise ConsistructError(
        f"scores must be a score space or a spec such as 'full', got {type(scores).__name__}"
    )
