"""State what a certificate is about: in words, without rounding, and as a hash.

A check proves a sentence about the loss, the scores and ε that are in the file. Whether these are
the ones that a reader cares about is another question, and arithmetic cannot answer it: so the
sentence is written out, and the same problem has the same hash however its numbers are written.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from consistruct.certificates.exact import RATIONAL, exact_text, fraction_text, number

__all__ = [
    "ALL",
    "NO_MEASURE",
    "Statement",
    "fbeta_statement",
    "matrix_statement",
    "matrix_words",
    "measure_words",
    "order_words",
    "parts_statement",
    "same_data",
    "scores_words",
]

ALL = "all distributions of the true label"
NO_MEASURE = "none: this surrogate weighs no predictions"

Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Statement:
    """Describe the problem that a certificate is about.

    Attributes
    ----------
    loss, scores, surrogate, measure, distributions : str
        What they are, in words.
    data : dict
        The same as plain data with exact numbers, which `sha256` is the hash of.
    """

    loss: str
    scores: str
    data: dict[str, Any]
    surrogate: str = "quadratic"
    measure: str = "uniform on the predictions"
    distributions: str = ALL

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


def same_data(one: Any, other: Any) -> bool:
    """Return whether plain data have the same exact numbers.

    >>> same_data({"eps": 0.5}, {"eps": "2/4"})
    True
    """
    return bool(_normal(one) == _normal(other))


def _normal(value: Any) -> Any:
    """Return plain data with one way to write every number: 0.5 and "2/4" become "1/2"."""
    if isinstance(value, dict):
        return {str(key): _normal(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_normal(entry) for entry in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and not re.fullmatch(RATIONAL, value):
        return value
    return fraction_text(number(value))


# --- statements and words that several kinds share ------------------------------------------------


def matrix_statement(document: dict[str, Any], data: Sequence[str], **words: str) -> Statement:
    """Return a statement about a loss matrix; `data` names the fields that are the problem."""
    return Statement(
        loss=matrix_words(document["loss"]),
        data={name: document[name] for name in data},
        **{"scores": scores_words(None), **words},
    )


def parts_statement(T: int, n_states: int, scores: str, words: str) -> Statement:
    """Return a statement about the Hamming loss."""
    return Statement(
        loss=f"the share of wrong parts, of {T} with {n_states} states each",
        scores=words,
        data={"T": T, "n_states": n_states, "scores": scores},
    )


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
        measure="uniform on the sizes of sets, then on the sets",
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
        f"{_first_six(loss['discount'])}, gains of the grades ≈ {_first_six(loss['gains'])}"
    )


def _first_six(values: Sequence[Any]) -> str:
    shown = ", ".join(f"{float(number(x)):.4g}" for x in values[:6])
    return shown + (", …" if len(values) > 6 else "")
