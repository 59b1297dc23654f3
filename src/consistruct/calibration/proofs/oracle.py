"""Certificates over labels never listed: few true labels, and the best label found exactly.

Four kinds, each with a stand-alone checker: orders scored item by item or place by place, orders
scored pair by pair, sequences with chain scores, label sets judged by F-beta.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct.calibration.proofs.base import (
    Exact,
    PlainCertificate,
    WorstDistribution,
    probabilities,
)
from consistruct.calibration.proofs.checkers import orders, pairs, sizes, states
from consistruct.calibration.proofs.statement import (
    ALL,
    Statement,
    fbeta_statement,
    measure_words,
    order_words,
    same_data,
    same_parts,
)
from consistruct.losses.base import Loss
from consistruct.structures import Structure

__all__ = [
    "ORACLE_KINDS",
    "OracleCertificate",
    "OrderCertificate",
    "PairScoreCertificate",
    "SetSizeCertificate",
    "StatesCertificate",
]

ORDER_SCORES = ("one free score per item", "one free score per item and place")


@dataclass(frozen=True, eq=False)
class OracleCertificate(PlainCertificate):
    """lower ≤ H(ε) ≤ upper, the lower end by Theorem 7, the upper one by a point.

    Attributes
    ----------
    pair : (i, j), j is predicted though i is better by ε
    true_labels, distribution : the true labels that have probability, and how much (divided by the
    sum)
    theta : score parameters under which j wins
    """

    eps: Exact
    lower: Exact
    upper: Exact
    pair: tuple[tuple[int, ...], tuple[int, ...]]
    true_labels: list[Any]
    distribution: list[float]
    theta: list[float]

    def different_loss(self, loss: Loss) -> str | None:
        from consistruct.calibration.proofs.provers.oracle import problem_of  # it imports these

        own = problem_of(loss)
        stated = self.kind, {name: self.document()[name] for name in self._fields}
        if own is not None and same_data(own[1], stated[1]) and own[0] == stated[0]:
            return None
        return f"its loss is {self.statement.loss}, which {loss!r} is not"

    @property
    @abstractmethod
    def _fields(self) -> tuple[str, ...]:
        """The fields that are the loss."""

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        return None if space == loss.score_space else f"its scores are its own, not {space!r}"

    def worst_distribution(self, loss: Loss) -> WorstDistribution:
        # column generation may hold a true label twice
        true_labels, where = np.unique(np.array(self.true_labels), axis=0, return_inverse=True)
        distribution = np.zeros(len(true_labels))
        np.add.at(distribution, where.ravel(), probabilities(self.distribution))
        return WorstDistribution(self.pair, true_labels, distribution)


@dataclass(frozen=True, eq=False)
class OrderCertificate(OracleCertificate):
    """Orders scored item by item (NDCG, precision, Spearman's rho) or place by place (matchings).

    Attributes
    ----------
    loss : name and numbers of the loss; see `checkers/orders.py`
    """

    kind = "orders"

    loss: dict[str, Any]

    @property
    def _fields(self) -> tuple[str, ...]:
        return ("loss",)

    @property
    def statement(self) -> Statement:
        return Statement(
            loss=order_words(self.loss),
            scores=ORDER_SCORES[self.loss["name"] in ("matching", "footrule")],
            surrogate="quadratic",
            measure="uniform on the orders",
            distributions=ALL,
            data={"loss": self.loss},
        )

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        orders.verify(document)


@dataclass(frozen=True, eq=False)
class PairScoreCertificate(OracleCertificate):
    """Orders scored pair by pair (Kendall's distance, average precision).

    Attributes
    ----------
    loss : name and numbers of the loss; see `checkers/pairs.py`
    """

    kind = "pairs"

    loss: dict[str, Any]

    @property
    def _fields(self) -> tuple[str, ...]:
        return ("loss",)

    @property
    def statement(self) -> Statement:
        return Statement(
            loss=order_words(self.loss),
            scores="one free score per pair of items",
            surrogate="quadratic",
            measure="uniform on the orders",
            distributions=ALL,
            data={"loss": self.loss},
        )

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        pairs.verify(document)


@dataclass(frozen=True, eq=False)
class StatesCertificate(OracleCertificate):
    """Hamming loss of T parts with n_states states each, chain scores."""

    kind = "states"

    T: int
    n_states: int

    @property
    def _fields(self) -> tuple[str, ...]:
        return ("T", "n_states")

    @property
    def statement(self) -> Statement:
        return Statement(
            loss=f"the share of wrong parts, of {self.T} with {self.n_states} states each",
            scores="one free score per part and state, and per pair of neighboring states",
            surrogate="quadratic",
            measure=measure_words(None),
            distributions=ALL,
            data={"T": self.T, "n_states": self.n_states, "scores": "chain"},
        )

    def different_loss(self, loss: Loss) -> str | None:
        return same_parts(self.T, self.n_states, loss)

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        if space.linked_states == self.n_states and space.measure == "uniform":
            return None
        return f"its scores are those of a chain, with the uniform measure, not {space!r}"

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        states.verify(document)


@dataclass(frozen=True, eq=False)
class SetSizeCertificate(OracleCertificate):
    """F-beta of T labels, true sets of the sizes given; `empty` is F of two empty sets."""

    kind = "sizes"

    T: int
    beta: float
    empty: float
    sizes: list[int]

    @property
    def _fields(self) -> tuple[str, ...]:
        return ("T", "beta", "empty", "sizes")

    @property
    def statement(self) -> Statement:
        return fbeta_statement(self.T, self.beta, self.empty, self.sizes)

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        sizes.verify(document)


ORACLE_KINDS: dict[str, type[OracleCertificate]] = {
    cls.kind: cls
    for cls in (OrderCertificate, PairScoreCertificate, StatesCertificate, SetSizeCertificate)
}
