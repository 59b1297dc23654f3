"""Too many labels to list: oracles where there are some, bounds otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from consistruct.calibration.curve import (
    CurvePoint,
    Method,
    Progress,
    at_each,
    status_of,
)
from consistruct.calibration.methods.oracle.hard_pairs import PairGuesses
from consistruct.calibration.methods.oracle.pair import OraclePair
from consistruct.calibration.proofs import Certificate
from consistruct.calibration.proofs.base import down, plain, up
from consistruct.calibration.proofs.oracle import ORACLE_KINDS
from consistruct.calibration.proofs.provers.oracle import ExactPoint, OracleProver
from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, LabelArray
from consistruct.structures import Structure

__all__ = ["BoundsMethod", "OracleMethod"]


@dataclass(frozen=True, eq=False)
class _Solved:
    """What is proved at one ε: Theorem 7 for all pairs, and the best point of those tried."""

    eps: Fraction
    lower: Fraction
    pair: tuple[Any, Any] | None = None
    true_labels: list[Any] | None = None
    point: ExactPoint | None = None


@dataclass(eq=False)
class OracleMethod(Method):
    """Scores that express the loss, an exact decoder, an oracle over true labels: no enumeration.

    The lower end is Theorem 7, the upper one the best pair that was solved; both are evaluated in
    rational arithmetic. Where they meet the value is certified; elsewhere they are bounds and say
    so.
    """

    loss: Loss
    space: Structure
    guesses: PairGuesses
    prover: OracleProver

    def __post_init__(self) -> None:
        self.name = "oracle cutting planes"
        self.only_theorem_7 = True
        self._solved: dict[float, _Solved] = {}

    @property
    def max_eps(self) -> float:
        return self.loss.max_value

    def _solve(self, value: float) -> _Solved:
        if value not in self._solved:
            eps = self.prover.eps(value)
            best = _Solved(eps, self.prover.lower(eps))
            target = best.lower * (1 + Fraction(1, 10**7))
            for i, j in self.guesses.pairs(value):
                known = math.inf if best.point is None else float(best.point.value)
                found = OraclePair(self.loss, self.space, i, j).solve(value, cutoff=known)
                if found is None:
                    continue
                pair, true_labels = (_plain(i), _plain(j)), found.true_labels.tolist()
                point = self.prover.point(eps, pair, true_labels, found.distribution, found.theta)
                if point is not None and (best.point is None or point.value < best.point.value):
                    best = _Solved(eps, best.lower, pair, true_labels, point)
                    if point.value <= target:
                        break
            self._solved[value] = best
        return self._solved[value]

    def pair_at(self, eps: float) -> tuple[Any, Any] | None:
        guesses = self.guesses.pairs(eps)
        return (_plain(guesses[0][0]), _plain(guesses[0][1])) if guesses else None

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            found = self._solve(value)
            lower = down(found.lower)
            if found.point is None:  # no pair that was tried can differ by ε
                return CurvePoint(value, lower, math.inf, 0.0, self.name, "bounds")
            upper = up(found.point.value)
            status = status_of(lower, upper, 1.0)
            status = "bounds" if status == "loose" else status
            return CurvePoint(value, lower, upper, 0.0, self.name, status, found.pair)

        return at_each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
        found = self._solve(eps)
        if found.point is None or found.pair is None or found.true_labels is None:
            raise ConsistructError(
                f"no pair that was tried differs by ε = {eps}: only the bound of Theorem 7 is known"
            )
        return ORACLE_KINDS[self.prover.kind](
            **self.prover.problem,
            eps=plain(found.eps),
            lower=down(found.lower),
            upper=up(found.point.value),
            pair=found.pair,
            true_labels=found.true_labels,
            distribution=found.point.distribution,
            theta=found.point.theta,
        )


def _plain(label: LabelArray) -> Any:
    """A label as plain Python: an int, or a tuple of them."""
    values = np.asarray(label).tolist()
    return tuple(values) if isinstance(values, list) else values


@dataclass(eq=False)
class BoundsMethod(Method):
    """Nothing but Theorem 7: the last resort, and it states it."""

    loss: Loss
    space: Structure

    def __post_init__(self) -> None:
        self.name = "bounds"
        self.log_scale = -math.log(4) - self.space.effective_classes().log  # H ≥ ε²/4k_eff
        self.only_theorem_7 = True

    @property
    def max_eps(self) -> float:
        return self.loss.max_value

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            lower = value**2 * (1 - 1e-12)
            return CurvePoint(value, lower, math.inf, self.log_scale, self.name, "bounds")

        return at_each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
        raise ConsistructError(
            "only the bound of Theorem 7 is known here; it follows from the diameter of the scores "
            "(scores.diameter_squared()) and needs no further certificate"
        )
