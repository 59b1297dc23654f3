"""Closed forms: the 0-1 loss at any k, and independent parts on the Hamming loss at any T."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from consistruct.calibration.methods.base import Method, Progress, at_each
from consistruct.calibration.point import CurvePoint
from consistruct.calibration.proofs import Certificate
from consistruct.exceptions import ConsistructError
from consistruct.losses.hamming import Hamming
from consistruct.losses.zero_one import ZeroOne
from consistruct.protocols import FloatArray
from consistruct.scores import Separable
from consistruct.surrogates import SURROGATES, BaseSurrogate

__all__ = ["FormulaMethod", "bracket", "closed_form"]

SERIES_BELOW = 0.1
SERIES_TERMS = 12  # ε²ⁿ/(n(2n−1)) at ε = 0.1 is below rounding from n = 9 on


def bracket(eps: float) -> float:
    """(1+ε)log(1+ε) + (1−ε)log(1−ε) = Σ_n ε²ⁿ/(n(2n−1)), without cancellation.

    >>> bracket(1.0) == 2 * math.log(2), bracket(1e-9)
    (True, 1e-18)
    """
    if eps < SERIES_BELOW:
        terms = range(SERIES_TERMS, 0, -1)
        return math.fsum(eps ** (2 * n) / (n * (2 * n - 1)) for n in terms)
    rest = (1 - eps) * math.log1p(-eps) if eps < 1 else 0.0
    return (1 + eps) * math.log1p(eps) + rest


def _exponential(eps: float) -> float:
    return 2 * eps**2 / (1 + math.sqrt(max(1 - eps**2, 0.0)))  # = 2(1 − √(1−ε²))


@dataclass(eq=False)
class FormulaMethod(Method):
    """H from a formula, for 0 < ε ≤ 1."""

    formula: str
    value: Callable[[float], float]
    log_scale: float = 0.0
    compare_with: str = ""

    def __post_init__(self) -> None:
        self.name = f"closed form {self.formula}"

    @property
    def max_eps(self) -> float:
        return 1.0

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            found = self.value(value)
            return CurvePoint(value, found, found, self.log_scale, self.name, "exact")

        return at_each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
        raise ConsistructError(
            f"H = {self.formula} is proved by hand; for a numerical certificate of a small case "
            f"use {self.compare_with}"
        )


# Two labels i, j carry the law (1+ε)/2, (1−ε)/2 and share their scores; with the others at zero
# probability nothing else can be cheaper.
_ZERO_ONE: dict[str, tuple[str, Callable[[float], float], bool]] = {
    "logistic": ("(1/k)[(1+ε)log(1+ε)+(1−ε)log(1−ε)]", bracket, True),
    "exponential": ("(2/k)(1−√(1−ε²))", _exponential, True),
    "log": ("½[(1+ε)log(1+ε)+(1−ε)log(1−ε)]", lambda eps: bracket(eps) / 2, False),
    "sparsemax": ("ε²/4", lambda eps: eps**2 / 4, False),
}


def closed_form(surrogate: BaseSurrogate) -> FormulaMethod | None:
    """The formula where there is one; Bayes and argmax decoding agree in all these cases."""
    loss, space, name = surrogate.loss, surrogate.score_space, surrogate.name
    if name not in SURROGATES or type(surrogate) is not SURROGATES[name].cls:
        return None  # a class of the user's own
    if name == "log" and isinstance(loss, Hamming) and isinstance(space, Separable):
        # The parts separate: min Σ_t h(δ_t) with mean δ = ε, h the 0-1 curve of one part, which
        # is convex and does not depend on the number of states. So all δ_t = ε.
        assert loss.T is not None
        formula = "(T/2)[(1+ε)log(1+ε)+(1−ε)log(1−ε)]"
        return FormulaMethod(
            formula, lambda eps: bracket(eps) / 2, math.log(loss.T), "ZeroOne(s) for one part"
        )
    if isinstance(loss, ZeroOne) and loss.n_labels and loss.n_labels >= 2:
        found = _ZERO_ONE.get(name)
        if found is not None and space.rank == loss.n_labels and space.measure == "uniform":
            formula, value, per_label = found
            scale = -math.log(loss.n_labels) if per_label else 0.0
            return FormulaMethod(formula, value, scale, "CostMatrix(1 - np.eye(k)) for a small k")
    return None
