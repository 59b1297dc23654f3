"""Certificates over labels never listed: few true labels, and the best label found exactly.

Four kinds that share one check (`certificates/theorem7.py`): orders scored item by item or place by
place, orders scored pair by pair, sequences with chain scores, label sets judged by F-beta.
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
from consistruct.calibration.proofs.comparing import same_parts
from consistruct.certificates.statement import same_data
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
    loss : name and numbers of the loss; see `certificates/orders.py`
    """

    kind = "orders"

    loss: dict[str, Any]

    @property
    def _fields(self) -> tuple[str, ...]:
        return ("loss",)


@dataclass(frozen=True, eq=False)
class PairScoreCertificate(OracleCertificate):
    """Orders scored pair by pair (Kendall's distance, average precision).

    Attributes
    ----------
    loss : name and numbers of the loss; see `certificates/pairs.py`
    """

    kind = "pairs"

    loss: dict[str, Any]

    @property
    def _fields(self) -> tuple[str, ...]:
        return ("loss",)


@dataclass(frozen=True, eq=False)
class StatesCertificate(OracleCertificate):
    """Hamming loss of T parts with n_states states each, chain scores."""

    kind = "states"

    T: int
    n_states: int

    @property
    def _fields(self) -> tuple[str, ...]:
        return ("T", "n_states")

    def different_loss(self, loss: Loss) -> str | None:
        return same_parts(self.T, self.n_states, loss)

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        if space.linked_states == self.n_states and space.measure == "uniform":
            return None
        return f"its scores are those of a chain, with the uniform measure, not {space!r}"


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


ORACLE_KINDS: dict[str, type[OracleCertificate]] = {
    cls.kind: cls
    for cls in (OrderCertificate, PairScoreCertificate, StatesCertificate, SetSizeCertificate)
}
