"""From a float solution over labels that are never listed to a point that holds exactly.

The distribution is moved toward the true label of largest gap until j is worse than i by ε, the
parameters until no label scores more than j; both ends are then rational numbers. The arithmetic is
that of `consistruct.certificates`, so what is found here passes there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, singledispatch
from typing import Any

import numpy as np

from consistruct.calibration.methods.orbits.chain import snapped
from consistruct.calibration.proofs.base import up
from consistruct.certificates import KINDS, orders
from consistruct.certificates.exact import dot
from consistruct.certificates.theorem7 import expected_target
from consistruct.exceptions import ConsistructError
from consistruct.losses import (
    Kendall,
    Matching,
    MeanAveragePrecision,
    PairwiseDisagreement,
    SpearmanFootrule,
    SpearmanRho,
)
from consistruct.losses.base import Loss
from consistruct.losses.fbeta import FBeta
from consistruct.losses.rankings.gains import GainLoss
from consistruct.losses.rankings.orders import OrderLoss
from consistruct.protocols import FloatArray
from consistruct.structures import Structure

__all__ = ["ExactPoint", "OracleProver", "oracle_prover", "problem_of"]

STEPS = (1, 8, 64, 512, 2**15)  # how far toward j, in units of what j lacks
Label = Any  # nested lists of integers


@dataclass(frozen=True, eq=False)
class ExactPoint:
    """A feasible point and its value."""

    distribution: list[float]
    theta: list[float]
    value: Fraction


@dataclass(eq=False)
class OracleProver:
    """Exact scores, targets, largest scores and distances of one loss.

    Attributes
    ----------
    kind : name of the kind of certificate
    problem : the loss as plain data, the fields of a certificate
    """

    kind: str
    problem: dict[str, Any]

    @cached_property
    def space(self) -> Any:
        """The scores as the checker has them."""
        return KINDS[self.kind].space_of(self.problem)

    def eps(self, eps: float) -> Fraction:
        """ε, or the multiple of 1/T next to it where H jumps there."""
        return snapped(eps, self.space.T) if self.kind == "states" else Fraction(eps)

    @cached_property
    def _diameter(self) -> Fraction:
        found: Fraction = self.space.diameter(Fraction(0))
        return found

    def lower(self, eps: Fraction) -> Fraction:
        """Theorem 7; only the states of a chain have a diameter that depends on ε."""
        far = self.space.diameter(eps) if self.kind == "states" else self._diameter
        return eps**2 / (2 * far)

    def point(
        self,
        eps: Fraction,
        pair: tuple[Label, Label],
        true_labels: list[Label],
        distribution: FloatArray,  # (m,)
        theta: FloatArray,  # (width,)
    ) -> ExactPoint | None:
        """The point made feasible; None where that would change it too much."""
        space = self.space
        i, j = (space.features(label) for label in pair)
        gap = [b - a for a, b in zip(i, j, strict=True)]
        gaps = [dot(gap, space.target(true_label)) for true_label in true_labels]
        weights = _raised(np.maximum(distribution, 0.0).tolist(), gaps, eps)
        if weights is None:
            return None
        scores = self._winning(j, [float(x) for x in theta], pair[1])
        if scores is None:
            return None
        expected = expected_target(space, true_labels, weights)
        total = [Fraction(a) + b for a, b in zip(scores, expected, strict=True)]
        return ExactPoint(weights, scores, space.mean_square(total) / 2)

    def _winning(self, j: list[Fraction], theta: list[float], order: Label) -> list[float] | None:
        """Parameters under which j has the highest score, as near to the given ones as is easy."""
        if isinstance(self.space, orders.Positions):
            return _sorted_along(order, self.space.discount, theta)
        missing = self._lacking(j, theta)
        if missing <= 0:
            return theta
        direction = self._direction(j)
        for step in STEPS:
            raised = [t + up(step * missing * d) for t, d in zip(theta, direction, strict=True)]
            if self._lacking(j, raised) <= 0:
                return raised
        return None

    def _lacking(self, j: list[Fraction], theta: list[float]) -> Fraction:
        """By how much the best label is ahead of j."""
        exact = [Fraction(x) for x in theta]
        found: Fraction = self.space.largest(exact) - dot(j, exact)
        return found

    def _direction(self, j: list[Fraction]) -> list[Fraction]:
        """Parameters that raise j above every other label."""
        if self.kind == "states":  # a point for every part as in j
            parts = self.space.T * self.space.s
            return [x if column < parts else Fraction(0) for column, x in enumerate(j)]
        if self.kind == "pairs" and self.space.signs:
            return [Fraction(0), *(2 * x for x in j[1:])]
        if self.kind == "sizes":  # members gain, others lose
            T, blocks = self.space.T, len(self.space.blocks)
            signs = [Fraction(T if x > 0 else -T) for x in j[: T * blocks]]
            return [*signs, *(Fraction(0) for _ in j[T * blocks :])]
        return j


def _sorted_along(order: list[int], discount: list[Fraction], theta: list[float]) -> list[float]:
    """The nearest scores, nearly, that do not rise along the order where the discount falls."""
    groups: list[list[int]] = []  # places that count alike
    for place, item in enumerate(order):
        if place and discount[place] == discount[place - 1]:
            groups[-1].append(item)
        else:
            groups.append([item])
    # neighbors that rise are pooled: [sum, number of items] of every pool
    pools: list[tuple[float, list[int]]] = []
    for group in groups:
        if len(group) > 1:  # free among themselves; only their extremes meet the neighbors
            pools.append((math.nan, group))
            continue
        value, items = theta[group[0]], group
        while pools and pools[-1][0] < value:
            last, before = pools.pop()
            value = (last * len(before) + value * len(items)) / (len(before) + len(items))
            items = before + items
        pools.append((value, items))
    found, most = list(theta), math.inf
    for value, items in pools:
        for item in items:
            wanted = theta[item] if math.isnan(value) else value
            found[item] = min(wanted, most)
        most = min([most, *(found[item] for item in items)])
    return found


def _raised(distribution: list[float], gaps: list[Fraction], eps: Fraction) -> list[float] | None:
    """Weights of the labels with Σ weight·gap ≥ ε·Σ weight: more for the largest gap if needed."""
    total = sum((Fraction(x) for x in distribution), Fraction(0))
    short = sum(
        (Fraction(x) * (eps - gap) for x, gap in zip(distribution, gaps, strict=True)), Fraction(0)
    )
    if total > 0 and short <= 0:
        return distribution
    top = max(range(len(gaps)), key=lambda y: gaps[y])
    if gaps[top] < eps:
        return None
    if gaps[top] == eps:
        return [float(y == top) for y in range(len(gaps))]
    more = Fraction(distribution[top]) + short / (gaps[top] - eps) if total > 0 else Fraction(1)
    return [up(more) if y == top else x for y, x in enumerate(distribution)]


def oracle_prover(loss: Loss, space: Structure) -> OracleProver:
    """The exact form of a loss; raises ConsistructError, in one line, where there is none."""
    if loss.hamming_shape is not None and space.linked_states is not None:
        T, n_states = loss.hamming_shape
        if T is not None and T >= 2:
            return OracleProver("states", {"T": T, "n_states": n_states})
    found = problem_of(loss) if space == loss.score_space else None
    if found is not None:
        return OracleProver(*found)
    raise ConsistructError(f"no exact certificate is known for {loss!r} with {space!r}")


def problem_of(loss: Loss) -> tuple[str, dict[str, Any]] | None:
    """Kind of certificate and plain data of a loss with its own scores; None for other losses."""
    if isinstance(loss, FBeta):
        sizes = list(loss.true_labels.allowed_sizes)
        return "sizes", {"T": loss.T, "beta": loss.beta, "empty": loss.empty, "sizes": sizes}
    found = _order_loss(loss)
    return None if found is None else (found[0], {"loss": found[1]})


@singledispatch
def _order_loss(loss: Loss) -> tuple[str, dict[str, Any]] | None:
    """Kind and plain data of a loss on orders; None for other losses."""
    return None


@_order_loss.register(OrderLoss)
def _(loss: OrderLoss) -> tuple[str, dict[str, Any]] | None:
    names: dict[type[Loss], tuple[str, str]] = {
        SpearmanRho: ("orders", "rho"),
        SpearmanFootrule: ("orders", "footrule"),
        Matching: ("orders", "matching"),
        MeanAveragePrecision: ("pairs", "precision"),
    }
    if type(loss) not in names:
        return None
    kind, name = names[type(loss)]
    return kind, {"name": name, "n": loss.n}


@_order_loss.register(GainLoss)
def _(loss: GainLoss) -> tuple[str, dict[str, Any]]:
    table = loss._gain(np.arange(loss.n_grades)[:, None])
    return "orders", {
        "name": "gains",
        "discount": loss._discount().tolist(),
        "gains": table.ravel().tolist(),
        "normalizer": loss.fixed_normalizer,
    }


@_order_loss.register(PairwiseDisagreement)
def _(loss: PairwiseDisagreement) -> tuple[str, dict[str, Any]]:
    if loss.n_grades == 2:
        return "orders", {"name": "pairwise", "n": loss.n}
    graded = {"true_labels": "grades", "grades": loss.n_grades, "ties": "exclude"}
    return "pairs", {"name": "signs", "n": loss.n, **graded}


@_order_loss.register(Kendall)
def _(loss: Kendall) -> tuple[str, dict[str, Any]]:
    ties = "exclude" if loss.ties == "exclude" else "count"
    ranks = max(loss.n or 2, 2)
    true_labels = {"true_labels": "orders"} if loss.ties == "refuse" else {"true_labels": "ranks"}
    return "pairs", {"name": "signs", "n": loss.n, **true_labels, "grades": ranks, "ties": ties}
