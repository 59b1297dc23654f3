"""Closed forms of the calibration function, one per row of the table in the documentation.

Each gives H/scale as a list of quadratic pieces with rational coefficients: η and all sizes are
exact, so a value is rounded once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from consistruct.losses.base import Loss
from consistruct.losses.classes import Block, Mixed, ZeroOne
from consistruct.losses.hamming import Hamming
from consistruct.structures import Structure

__all__ = ["FORMS", "ClosedForm", "Quadratic", "RationalPiece", "closed_form"]


@dataclass(frozen=True)
class Quadratic:
    """a·ε² + b·ε + c on (low, high]."""

    low: float
    high: float
    a: float
    b: float = 0.0
    c: float = 0.0

    def __call__(self, eps: float) -> float:
        return (self.a * eps + self.b) * eps + self.c


@dataclass(frozen=True)
class RationalPiece:
    """a·ε² + b·ε + c on (low, high], all of them exact."""

    low: Fraction
    high: Fraction
    a: Fraction
    b: Fraction = Fraction(0)
    c: Fraction = Fraction(0)

    def __call__(self, eps: Fraction) -> Fraction:
        return (self.a * eps + self.b) * eps + self.c


@dataclass(frozen=True)
class ClosedForm:
    """H(ε) = scale · piece(ε), +inf above the last piece."""

    name: str
    formula: str
    exact: tuple[RationalPiece, ...]
    scale: Fraction = Fraction(1)
    level: float = 0.0  # consistency level
    error: float = 0.0  # approximation error

    @property
    def log_scale(self) -> float:
        return math.log(self.scale.numerator) - math.log(self.scale.denominator)

    @property
    def pieces(self) -> tuple[Quadratic, ...]:
        """The pieces of H/scale, rounded."""
        return tuple(
            Quadratic(float(p.low), float(p.high), float(p.a), float(p.b), float(p.c))
            for p in self.exact
        )

    @property
    def max_eps(self) -> float:
        return float(self.exact[-1].high) if self.exact else 0.0

    def value(self, eps: Fraction) -> Fraction | None:
        """H/scale at ε > 0, exact; None above the last piece."""
        for piece in self.exact:
            if eps <= piece.high:
                return max(piece(eps), Fraction(0))
        return None


def closed_form(loss: Loss, space: Structure) -> ClosedForm | None:
    """The closed form for this loss and these scores, or None."""
    if space.measure != "uniform":
        return None
    finds = next((finds for cls, finds in FORMS.items() if isinstance(loss, cls)), (_hamming_own,))
    found = (find(loss, space) for find in finds)
    return next((form for form in found if form is not None), None)


ONE, QUARTER = Fraction(1), Fraction(1, 4)


def _parabola(a: Fraction) -> tuple[RationalPiece, ...]:
    """a·ε² on (0, 1]."""
    return (RationalPiece(Fraction(0), ONE, a),)


def _zero_one(loss: ZeroOne, space: Structure) -> ClosedForm | None:
    if not space.one_per_label or loss.k < 2:
        return None
    return ClosedForm("0-1 loss, full scores", "ε²/4k", _parabola(QUARTER), Fraction(1, loss.k))


def _block_full(loss: Block, space: Structure) -> ClosedForm | None:
    if not space.one_per_label or loss.partition.n_blocks < 2:
        return None
    # 2s/(s+1) grows with s, so the smallest block decides
    s = min(loss.partition.block_sizes)
    pieces = _parabola(QUARTER * Fraction(2 * s, s + 1))
    formula = "ε²/4k · min_v 2s_v/(s_v+1)"
    scale = Fraction(1, loss.partition.n_labels)
    return ClosedForm("block loss, full scores", formula, pieces, scale)


def _block_own(loss: Block, space: Structure) -> ClosedForm | None:
    if space != loss.score_space or loss.partition.n_blocks < 2:
        return None
    small, next_small = sorted(loss.partition.block_sizes)[:2]
    total = loss.partition.n_labels
    pieces = _parabola(QUARTER * Fraction(2 * small * next_small, total * (small + next_small)))
    return ClosedForm("block loss, block scores", "ε²/4k · min_{u≠v} 2 s_u s_v/(s_u+s_v)", pieces)


def _hamming_own(loss: Loss, space: Structure) -> ClosedForm | None:
    T, n_states = loss.hamming_shape or (None, 0)
    if T is None or space.separate_states is None:
        return None
    pieces = _parabola(QUARTER / (n_states * T))
    return ClosedForm("Hamming loss, separable scores", "ε²/4sT", pieces)


def _mixed_full(loss: Mixed, space: Structure) -> ClosedForm | None:
    sizes = set(loss.partition.block_sizes)
    if not space.one_per_label or len(sizes) != 1:
        return None
    s, eta, b = sizes.pop(), Fraction(loss.eta), loss.partition.n_blocks
    if s < 2 or b < 2 or eta == 0:
        return None
    bend = ONE if 2 * eta >= 1 else eta / (1 - eta)
    pieces = [RationalPiece(Fraction(0), bend, QUARTER)]
    if bend < 1:
        # ε²s/(2(s+1)) − η(ε+1)(s−1)(2ε−εη−η)/(4(s+1)), expanded in ε
        factor = eta * Fraction(s - 1, 4 * (s + 1))
        a = Fraction(s, 2 * (s + 1)) - factor * (2 - eta)
        pieces.append(RationalPiece(bend, ONE, a, -factor * (2 - 2 * eta), factor * eta))
    formula = "ε²/4k for ε ≤ η/(1−η), then a second quadratic"
    scale = Fraction(1, loss.partition.n_labels)
    return ClosedForm("mixed loss, full scores", formula, tuple(pieces), scale)


def _mixed_blocks(loss: Mixed, space: Structure) -> ClosedForm | None:
    sizes = set(loss.partition.block_sizes)
    if space.partition is None or len(sizes) != 1:
        return None
    s, eta, b = sizes.pop(), Fraction(loss.eta), loss.partition.n_blocks
    if space.partition != loss.partition or s < 2 or b < 2 or eta >= 1:
        return None
    # (ε−η/2)²/(4b) · (ηb/k+1−η)²/(1−η/2)², and ηb/k = η/s
    factor = (eta / s + 1 - eta) ** 2 / (4 * b * (1 - eta / 2) ** 2)
    flat = RationalPiece(Fraction(0), eta / 2, Fraction(0))
    rise = RationalPiece(eta / 2, ONE, factor, -eta * factor, factor * eta**2 / 4)
    pieces = (flat, rise) if eta > 0 else (rise,)
    formula = "0 for ε ≤ η/2, then (ε−η/2)²/4b · (ηb/k+1−η)²/(1−η/2)²"
    return ClosedForm(
        "mixed loss, block scores", formula, pieces, level=loss.eta / 2, error=loss.eta
    )


# what is known of a loss: each returns True for some scores
FORMS: dict[type[Loss], tuple[Callable[[Any, Structure], ClosedForm | None], ...]] = {
    ZeroOne: (_zero_one,),
    Block: (_block_full, _block_own),
    Hamming: (_hamming_own,),
    Mixed: (_mixed_full, _mixed_blocks),
}
