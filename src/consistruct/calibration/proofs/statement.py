"""What a certificate is about: in words, as a hash, and compared with a user's own problem.

A check proves a sentence about the loss, the scores and ε that are in the file. Whether these are
the ones that a reader cares about is another question, and arithmetic cannot answer it: so the
sentence is written out without rounding, and `different_loss` and `different_scores` compare the
data of the file with a loss and a score space, exactly.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from consistruct._exact import exact_text, fraction_text, independent_columns, integer_columns
from consistruct.calibration.problem.listed import own_basis
from consistruct.calibration.proofs.checkers.listed import RATIONAL, number
from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss
from consistruct.structures import Structure

__all__ = [
    "ALL",
    "NO_MEASURE",
    "Statement",
    "check_space",
    "different_matrix",
    "different_scores",
    "fbeta_statement",
    "matrix_words",
    "measure_words",
    "order_words",
    "same_data",
    "same_parts",
    "scores_words",
]


Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Statement:
    """The problem that a certificate is about.

    Attributes
    ----------
    loss, scores, surrogate, measure, distributions : what they are, in words
    data : the same as plain data with exact numbers, which `sha256` is the hash of
    """

    loss: str
    scores: str
    surrogate: str
    measure: str
    distributions: str
    data: dict[str, Any]

    @property
    def words(self) -> dict[str, str]:
        """The parts in words, in the order in which they are read."""
        names = ("loss", "scores", "surrogate", "measure", "distributions")
        return {name: getattr(self, name) for name in names}

    @property
    def sha256(self) -> str:
        """Hash of the data as JSON with sorted keys, all numbers being integers or "p/q"."""
        text = json.dumps(_normal(self.data), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def _normal(value: Any) -> Any:
    """Plain data with one way to write every number: 0.5 and "2/4" are "1/2"."""
    if isinstance(value, dict):
        return {str(key): _normal(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_normal(entry) for entry in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and not re.fullmatch(RATIONAL, value):
        return value
    return fraction_text(number(value))


# --- in words ---


def matrix_words(rows: Rows) -> str:
    """Return what a loss matrix is: how large, and between which numbers."""
    values = {number(x) for row in rows for x in row}
    return (
        f"a matrix of {len(rows)} predictions × {len(rows[0])} true labels, from "
        f"{exact_text(min(values))} to {exact_text(max(values))}"
    )


def scores_words(scores: Rows | None) -> str:
    """Return what listed scores are."""
    if scores is None:
        return "one free score per prediction, argmax decoding"
    return f"Fθ with a given matrix F of {len(scores)} × {len(scores[0])}, argmax decoding"


def measure_words(measure: Sequence[Any] | None) -> str:
    """Return what the reference measure on the predictions is."""
    return "uniform on the predictions" if measure is None else "a given weight per prediction"


def fbeta_statement(T: int, beta: Any, empty: Any, sizes: Sequence[int]) -> Statement:
    """Return what a certificate about F-beta with its own scores is about."""
    return Statement(
        loss=(
            f"1 − F-beta of sets of {T} labels, beta = {exact_text(number(beta))}; two empty sets "
            f"have F-beta {exact_text(number(empty))}; true sets have {_sizes_words(sizes)}"
        ),
        scores="the loss's own: per size of the set, one free score per label and a constant",
        surrogate="quadratic",
        measure="uniform on the sizes of sets, then on the sets",
        distributions=ALL,
        data={"T": T, "beta": beta, "empty": empty, "sizes": sizes},
    )


def _sizes_words(sizes: Sequence[int]) -> str:
    if list(sizes) == list(range(min(sizes), max(sizes) + 1)):
        return f"{min(sizes)} to {max(sizes)} members"
    return f"{', '.join(map(str, sizes))} members"


ORDER_LOSSES = {
    "pairwise": "the share of pairs of a relevant and another item in the wrong order",
    "rho": "(1 − Spearman's rank correlation)/2 of two orders",
    "matching": "the share of items in a wrong place",
    "footrule": "Spearman's footrule, the normalized sum of how far items are displaced",
    "precision": "1 − average precision",
    "signs": "the share of pairs of items in the wrong order",
}


def order_words(loss: dict[str, Any]) -> str:
    """Return what a loss on orders is; discounts and gains are rounded, and stated to be."""
    if loss["name"] != "gains":
        extra = {name: x for name, x in loss.items() if name not in ("name", "n")}
        details = "".join(f", {name} = {x}" for name, x in extra.items())
        return f"{ORDER_LOSSES[loss['name']]}, {loss['n']} items{details}"
    normalizer = loss["normalizer"]
    divided = "the most attainable" if normalizer is None else exact_text(number(normalizer))
    return (
        f"1 − (sum of gain × discount)/({divided}) of {len(loss['discount'])} items, discounts ≈ "
        f"{_some(loss['discount'])}, gains of the grades ≈ {_some(loss['gains'])}"
    )


def _some(values: Sequence[Any]) -> str:
    shown = ", ".join(f"{float(number(x)):.4g}" for x in values[:6])
    return shown + (", …" if len(values) > 6 else "")


ALL = "all distributions of the true label"
NO_MEASURE = "none: this surrogate weighs no predictions"


# --- compared with one's own ---


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


def same_data(one: Any, other: Any) -> bool:
    """Return whether plain data have the same exact numbers."""
    return bool(_normal(one) == _normal(other))


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
