"""Too many labels to list: oracles where there are some, bounds otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct.calibration.hard_pairs import PairGuesses
from consistruct.calibration.methods.base import Method, PairedMethod, Progress, each
from consistruct.calibration.oracle import OraclePair, OracleSolution
from consistruct.calibration.point import CurvePoint, status_of
from consistruct.calibration.proofs import Certificate, OracleCertificate
from consistruct.calibration.proofs.oracle import MARGIN, describe
from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, LabelArray
from consistruct.scores.base import BaseScoreSpace

__all__ = ["BoundsMethod", "OracleMethod"]


@dataclass(eq=False)
class OracleMethod(PairedMethod):
    """Scores that express the loss, an exact decoder and an oracle over truths: no enumeration.

    The lower end is that of `guesses` (Theorem 7), the upper one the best pair that was solved.
    Where they meet the value is certified; elsewhere they are bounds and say so.
    """

    loss: Loss
    space: BaseScoreSpace
    guesses: PairGuesses

    def __post_init__(self) -> None:
        self.name = "oracle cutting planes"
        self.only_theorem_7 = True
        self._solved: dict[float, tuple[tuple[OracleSolution, OraclePair] | None, float]] = {}

    @property
    def max_eps(self) -> float:
        return self.loss.max_value

    def _solve(self, eps: float) -> tuple[tuple[OracleSolution, OraclePair] | None, float]:
        if eps not in self._solved:
            bound = self.guesses.lower_bound(eps) * (1 - MARGIN)
            best: tuple[OracleSolution, OraclePair] | None = None
            for i, j in self.guesses.pairs(eps):
                pair = OraclePair(self.loss, self.space, i, j)
                found = pair.solve(eps, cutoff=math.inf if best is None else best[0].upper)
                if found is not None and (best is None or found.upper < best[0].upper):
                    best = found, pair
                if best is not None and best[0].upper <= bound * (1 + 1e-7):
                    break
            self._solved[eps] = best, bound
        return self._solved[eps]

    def pair_at(self, eps: float) -> tuple[Any, Any] | None:
        guesses = self.guesses.pairs(eps)
        return (_plain(guesses[0][0]), _plain(guesses[0][1])) if guesses else None

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            best, bound = self._solve(value)
            if best is None:  # no pair that was tried can differ by ε
                return CurvePoint(value, bound, math.inf, 0.0, self.name, "bounds")
            solution, pair = best
            upper = solution.upper * (1 + MARGIN)
            status = status_of(bound, upper, 1.0)
            status = "bounds" if status == "loose" else status
            labels = _plain(pair.i[0]), _plain(pair.j[0])
            return CurvePoint(value, bound, upper, 0.0, self.name, status, labels)

        return each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
        best, bound = self._solve(eps)
        if best is None:
            raise ConsistructError(
                f"no pair that was tried differs by ε = {eps}: only the bound of Theorem 7 is known"
            )
        solution, pair = best
        loss, scores = describe(self.loss, self.space)
        return OracleCertificate(
            loss=loss,
            scores=scores,
            eps=eps,
            lower=bound,
            upper=solution.upper * (1 + MARGIN),
            pair=(_plain(pair.i[0]), _plain(pair.j[0])),
            truths=solution.truths.tolist(),
            law=solution.law.tolist(),
            theta=solution.theta.tolist(),
        )


def _plain(label: LabelArray) -> Any:
    """A label as plain Python: an int, or a tuple of them."""
    values = np.asarray(label).tolist()
    return tuple(values) if isinstance(values, list) else values


@dataclass(eq=False)
class BoundsMethod(Method):
    """Nothing but Theorem 7: the last resort, and it says so."""

    loss: Loss
    space: BaseScoreSpace

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

        return each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
        raise ConsistructError(
            "only the bound of Theorem 7 is known here; it follows from the diameter of the scores "
            "(scores.diameter_squared()) and needs no further certificate"
        )
