"""Losses and scores as the head of a report names them: words, where `repr` is Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from consistruct.exceptions import describe_count
from consistruct.report.label_names import label_text

__all__ = ["loss_title", "scores_title"]

N_NAMES = 6
LENGTH = 90


def loss_title(loss: Any) -> str:
    """The loss in a few words; a loss of the user's own by its `repr`, cut where it is long.

    >>> from consistruct import losses
    >>> loss_title(losses.CostMatrix([[0, 1], [10, 0]], ("ham", "spam"), ("ham", "spam")))
    'costs of mistakes between 2 classes: ham, spam'
    >>> loss_title(losses.Ordinal(5)), loss_title(losses.Hamming(None, 23))
    ('distance between 5 ordered classes', 'share of wrong tags, of 23')
    """
    words = _LOSSES.get(type(loss).__name__)
    return label_text(repr(loss), LENGTH) if words is None else words(loss)


def scores_title(space: Any) -> str:
    """What the scores are attached to.

    >>> from consistruct import losses
    >>> scores_title(losses.Hamming(1000).score_space)
    'one score for each state of each part'
    """
    name = type(space).__name__
    if name == "Dense":
        return f"scores of {describe_count(space.predictions.size)} labels, of rank {space.rank}"
    words = _SCORES.get(name)
    return label_text(repr(space), LENGTH) if words is None else words


def _costs(loss: Any) -> str:
    names = loss.truths.names
    listed = "" if names is None else f": {_listed(names)}"
    if loss.truths.size == loss.n_labels:
        return f"costs of mistakes between {loss.n_labels} classes{listed}"
    return f"costs of {loss.n_labels} decisions for {loss.truths.size} classes{listed}"


def _listed(names: Any) -> str:
    shown = ", ".join(label_text(name, 24) for name in names[:N_NAMES])
    return shown if len(names) <= N_NAMES else f"{shown}, …"


def _count(number: int | None, what: str) -> str:
    return what if number is None else f"{describe_count(number)} {what}"


def _hamming(loss: Any) -> str:
    if loss.T is None:
        return f"share of wrong tags, of {loss.n_states}"
    states = "" if loss.n_states == 2 else f" with {loss.n_states} states each"
    return f"share of wrong labels, of {describe_count(loss.T)}{states}"


def _tree(loss: Any) -> str:
    kind = "distance in a label tree" if loss.kind == "path" else "height of the common ancestor"
    return f"{kind} with {len(loss.parents)} nodes"


def _top(loss: Any, name: str) -> str:
    items = "items of a query" if loss.n is None else f"{loss.n} items"
    q = getattr(loss, "q", None)
    return f"{name} of a ranking of {items}" + ("" if q is None else f", first {q}")


_LOSSES: dict[str, Callable[[Any], str]] = {
    "ZeroOne": lambda loss: f"share of errors over {describe_count(loss.k)} classes",
    "Block": lambda loss: (
        f"share of errors between blocks of {describe_count(loss.n_labels)} classes"
    ),
    "Mixed": lambda loss: (
        f"errors between blocks and, at {loss.eta:g}, all errors over "
        f"{describe_count(loss.n_labels)} classes"
    ),
    "Hamming": _hamming,
    "LabelCosts": lambda loss: f"costs of missed and spurious labels, of {len(loss.miss)}",
    "Ordinal": lambda loss: (
        f"distance between {describe_count(loss.k)} ordered classes"
        + ("" if loss.power == 1 else f", to the power {loss.power:g}")
    ),
    "Abstain": lambda loss: (
        f"errors over {describe_count(loss.k)} classes; no answer costs {loss.cost:g}"
    ),
    "CostMatrix": _costs,
    "CostVectors": lambda loss: f"costs of each example for {describe_count(loss.k)} decisions",
    "Decision": lambda loss: f"regret of {loss.name}" if loss.name else "regret of decisions",
    "FBeta": lambda loss: f"1 − F{loss.beta:g} of sets of {describe_count(loss.T)} labels",
    "PrecisionAt": lambda loss: _top(loss, "1 − precision"),
    "NDCG": lambda loss: _top(loss, "1 − NDCG"),
    "ExpectedRankUtility": lambda loss: _top(loss, "lost expected rank utility"),
    "PairwiseDisagreement": lambda loss: _top(loss, "share of wrong pairs"),
    "MeanAveragePrecision": lambda loss: _top(loss, "1 − average precision"),
    "Kendall": lambda loss: _top(loss, "Kendall's distance"),
    "SpearmanFootrule": lambda loss: _top(loss, "Spearman's footrule"),
    "SpearmanRho": lambda loss: _top(loss, "Spearman's squared distance"),
    "Matching": lambda loss: f"share of wrong pairs in a matching of {_count(loss.n, 'items')}",
    "PartialLabels": lambda loss: f"{loss_title(loss.loss)}; truths are sets of candidates",
    "Tree": _tree,
    "Combination": lambda loss: " + ".join(
        f"{weight:g} · ({loss_title(part)})" for weight, part in loss.terms
    ),
}

_SCORES = {
    "Full": "one score for each label",
    "Blocks": "one score for each block of labels",
    "Separable": "one score for each state of each part",
    "Chain": "scores of states and of neighbouring pairs, as in a chain",
    "SetSizes": "scores of labels, by the size of the set",
    "Positions": "one score for each item, discounted by position",
    "PairOrder": "one score for each pair of items",
    "PairDiscount": "one score for each pair of items, discounted by position",
    "Matchings": "one score for each pair of a matching",
    "Decisions": "one score for each cost of a decision",
}
