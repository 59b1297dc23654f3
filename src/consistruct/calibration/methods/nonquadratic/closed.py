"""Closed forms: the 0-1 loss at any k, and independent parts on the Hamming loss at any T."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from consistruct.calibration.curve import CurvePoint, Method, Progress, at_each
from consistruct.calibration.proofs import Certificate
from consistruct.calibration.proofs.base import down, up
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray
from consistruct.surrogates import SURROGATES, BaseSurrogate

__all__ = ["FormulaMethod", "bracket", "closed_form"]

DIGITS = 60  # of decimal arithmetic, more where ε² is small
SAFE = Fraction(1, 10**25)  # relative: far more than what is lost


def _context(eps: float) -> Context:
    return Context(prec=DIGITS + 2 * max(0, -Decimal(eps).adjusted()))


def bracket(eps: float) -> Decimal:
    """(1+ε)log(1+ε) + (1−ε)log(1−ε), to more than thirty digits.

    >>> float(bracket(1.0)) == 2 * math.log(2), float(bracket(1e-9))
    (True, 1e-18)
    """
    with localcontext(_context(eps)):
        e = Decimal(eps)
        rest = (1 - e) * (1 - e).ln() if e < 1 else Decimal(0)
        return (1 + e) * (1 + e).ln() + rest


def _half(eps: float) -> Decimal:
    with localcontext(_context(eps)):
        return bracket(eps) / 2


def _exponential(eps: float) -> Decimal:
    with localcontext(_context(eps)):
        return 2 * (1 - (1 - Decimal(eps) ** 2).sqrt())


def _quarter(eps: float) -> Decimal:
    with localcontext(_context(eps)):
        return Decimal(eps) ** 2 / 4


@dataclass(eq=False)
class FormulaMethod(Method):
    """H from a formula, for 0 < ε ≤ 1."""

    formula: str
    value: Callable[[float], Decimal]
    scale: Fraction = Fraction(1)
    compare_with: str = ""

    def __post_init__(self) -> None:
        self.name = f"closed form {self.formula}"
        self.log_scale = math.log(self.scale.numerator) - math.log(self.scale.denominator)

    @property
    def max_eps(self) -> float:
        return 1.0

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            found = Fraction(self.value(value))
            ends = down(found * (1 - SAFE)), up(found * (1 + SAFE))
            return CurvePoint(value, *ends, self.log_scale, self.name, "exact", scale=self.scale)

        return at_each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
        raise ConsistructError(
            f"H = {self.formula} is proved by hand; for a numerical certificate of a small case "
            f"use {self.compare_with}"
        )


# Two labels i, j have probability (1+ε)/2, (1−ε)/2 and share their scores; with the others at zero
# probability nothing else can be cheaper.
_ZERO_ONE: dict[str, tuple[str, Callable[[float], Decimal], bool]] = {
    "logistic": ("(1/k)[(1+ε)log(1+ε)+(1−ε)log(1−ε)]", bracket, True),
    "exponential": ("(2/k)(1−√(1−ε²))", _exponential, True),
    "log": ("½[(1+ε)log(1+ε)+(1−ε)log(1−ε)]", _half, False),
    "sparsemax": ("ε²/4", _quarter, False),
}


def closed_form(surrogate: BaseSurrogate) -> FormulaMethod | None:
    """The formula where there is one; Bayes and argmax decoding agree in all these cases."""
    loss, space, name = surrogate.loss, surrogate.score_space, surrogate.name
    if name not in SURROGATES or type(surrogate) is not SURROGATES[name].cls:
        return None  # a class of the user's own
    parts = loss.hamming_shape
    if name == "log" and parts is not None and space.separate_states is not None:
        # The parts separate: min Σ_t h(δ_t) with mean δ = ε, h the 0-1 curve of one part, which
        # is convex and does not depend on the number of states. So all δ_t = ε.
        assert parts[0] is not None
        formula = "(T/2)[(1+ε)log(1+ε)+(1−ε)log(1−ε)]"
        return FormulaMethod(formula, _half, Fraction(parts[0]), "ZeroOne(s) for one part")
    if loss.is_zero_one and loss.n_labels and loss.n_labels >= 2:
        found = _ZERO_ONE.get(name)
        if found is not None and space.rank == loss.n_labels and space.measure == "uniform":
            formula, value, per_label = found
            scale = Fraction(1, loss.n_labels) if per_label else Fraction(1)
            return FormulaMethod(formula, value, scale, "CostMatrix(1 - np.eye(k)) for a small k")
    return None
