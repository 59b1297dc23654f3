"""Too many labels to list: oracles where there are some, bounds otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from consistruct.calibration.hard_pairs import HardPairs
from consistruct.calibration.methods.base import Method, PairedMethod, Progress, each
from consistruct.calibration.oracle import OraclePair, OracleSolution
from consistruct.calibration.point import CurvePoint, status_of
from consistruct.calibration.proofs import Certificate, OracleCertificate
from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss
from consistruct.losses.hamming import Hamming
from consistruct.protocols import FloatArray
from consistruct.scores import Chain, Separable
from consistruct.scores.base import BaseScoreSpace

__all__ = ["BoundsMethod", "OracleMethod"]


@dataclass(eq=False)
class OracleMethod(PairedMethod):
    """Product label sets whose scores express the loss: decoder and truth oracle."""

    loss: Hamming
    space: Separable | Chain

    def __post_init__(self) -> None:
        self.name = "oracle cutting planes"
        self.only_theorem_7 = True
        self._hard = HardPairs(self.space)
        self._solved: dict[float, tuple[OracleSolution, OraclePair, float]] = {}

    @property
    def max_eps(self) -> float:
        return 1.0

    def _solve(self, eps: float) -> tuple[OracleSolution, OraclePair, float]:
        if eps not in self._solved:
            needed = self._hard.least_difference(eps)
            bound = self._hard.lower_bound(eps)
            best: tuple[OracleSolution, OraclePair] | None = None
            for i, j in self._hard.candidates(needed):
                pair = OraclePair(self.loss, self.space, i, j)
                found = pair.solve(eps, cutoff=math.inf if best is None else best[0].upper)
                if found is not None and (best is None or found.upper < best[0].upper):
                    best = found, pair
                if best is not None and best[0].upper <= bound * (1 + 1e-7):
                    break
            assert best is not None
            self._solved[eps] = (*best, bound)
        return self._solved[eps]

    def pair_at(self, eps: float) -> tuple[Any, Any] | None:
        i, j = self._hard.candidates(self._hard.least_difference(eps))[0]
        return tuple(i.tolist()), tuple(j.tolist())

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            solution, pair, bound = self._solve(value)
            status = status_of(bound, solution.upper, 1.0)
            labels = tuple(pair.i[0].tolist()), tuple(pair.j[0].tolist())
            status = "bounds" if status == "loose" else status
            return CurvePoint(value, bound, solution.upper, 0.0, self.name, status, labels)

        return each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
        solution, pair, bound = self._solve(eps)
        return OracleCertificate(
            pair,
            solution,
            eps,
            bound,
            solution.upper,
            (tuple(pair.i[0].tolist()), tuple(pair.j[0].tolist())),
            "Theorem 7 over all pairs that differ in at least εT parts",
        )


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
