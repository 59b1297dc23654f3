"""Certificates over labels that are never listed: few truths, and the best label found exactly.

Four kinds, each with a stand-alone checker: orders scored item by item or place by place, orders
scored pair by pair, sequences with chain scores, label sets judged by F-beta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct.calibration.proofs.base import Exact, PlainCertificate, WorstLaw, probabilities
from consistruct.calibration.proofs.checkers import orders, pairs, sizes, states
from consistruct.losses.base import Loss

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
    truths, law : the truths that have probability, and how much (divided by the sum)
    theta : score parameters under which j wins
    """

    eps: Exact
    lower: Exact
    upper: Exact
    pair: tuple[tuple[int, ...], tuple[int, ...]]
    truths: list[Any]
    law: list[float]
    theta: list[float]

    def worst_law(self, loss: Loss) -> WorstLaw:
        # column generation may hold a truth twice
        truths, where = np.unique(np.array(self.truths), axis=0, return_inverse=True)
        law = np.zeros(len(truths))
        np.add.at(law, where.ravel(), probabilities(self.law))
        return WorstLaw(self.pair, truths, law)


@dataclass(frozen=True, eq=False)
class OrderCertificate(OracleCertificate):
    """Orders scored item by item (NDCG, precision, Spearman's rho) or place by place (matchings).

    Attributes
    ----------
    loss : name and numbers of the loss; see `checkers/orders.py`
    """

    kind = "orders"

    loss: dict[str, Any]

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

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        pairs.verify(document)


@dataclass(frozen=True, eq=False)
class StatesCertificate(OracleCertificate):
    """Hamming loss of T parts with n_states states each, chain scores."""

    kind = "states"

    T: int
    n_states: int

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

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        sizes.verify(document)


ORACLE_KINDS: dict[str, type[OracleCertificate]] = {
    cls.kind: cls
    for cls in (OrderCertificate, PairScoreCertificate, StatesCertificate, SetSizeCertificate)
}
