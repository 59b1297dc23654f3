"""Closed forms of the calibration function, one per row of the table in the documentation.

Each gives k·H or H as a list of quadratic pieces, so that the whole curve is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from consistruct.losses.base import Loss
from consistruct.losses.block import Block, Mixed
from consistruct.losses.hamming import Hamming
from consistruct.losses.zero_one import ZeroOne
from consistruct.scores import Blocks, Full, Separable
from consistruct.scores.base import BaseScoreSpace

__all__ = ["ClosedForm", "Quadratic", "closed_form"]


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
class ClosedForm:
    """H(ε) = exp(log_scale) · piece(ε), +inf above the last piece."""

    name: str
    formula: str
    pieces: tuple[Quadratic, ...]
    log_scale: float = 0.0
    level: float = 0.0  # consistency level
    error: float = 0.0  # approximation error

    @property
    def max_eps(self) -> float:
        return self.pieces[-1].high if self.pieces else 0.0

    def scaled(self, eps: float) -> float:
        """H/exp(log_scale) at ε > 0."""
        for piece in self.pieces:
            if eps <= piece.high:
                return max(piece(eps), 0.0)
        return math.inf


def closed_form(loss: Loss, space: BaseScoreSpace) -> ClosedForm | None:
    """The closed form for this loss and these scores, or None."""
    if space.measure != "uniform":
        return None
    for find in FORMS:
        found = find(loss, space)
        if found is not None:
            return found
    return None


def _zero_one(loss: Loss, space: BaseScoreSpace) -> ClosedForm | None:
    if not isinstance(loss, ZeroOne) or not isinstance(space, Full) or loss.k < 2:
        return None
    piece = Quadratic(0.0, 1.0, 0.25)
    return ClosedForm("0-1 loss, full scores", "ε²/4k", (piece,), -math.log(loss.k))


def _block_full(loss: Loss, space: BaseScoreSpace) -> ClosedForm | None:
    if not isinstance(loss, Block) or not isinstance(space, Full) or loss.partition.n_blocks < 2:
        return None
    # 2s/(s+1) grows with s, so the smallest block decides
    s = min(loss.partition.block_sizes)
    piece = Quadratic(0.0, 1.0, 0.25 * _ratio(2 * s, s + 1))
    formula = "ε²/4k · min_v 2s_v/(s_v+1)"
    log_k = math.log(loss.partition.n_labels)
    return ClosedForm("block loss, full scores", formula, (piece,), -log_k)


def _block_own(loss: Loss, space: BaseScoreSpace) -> ClosedForm | None:
    own = loss.score_space if isinstance(loss, Block) else None
    if not isinstance(loss, Block) or space != own or loss.partition.n_blocks < 2:
        return None
    small, next_small = sorted(loss.partition.block_sizes)[:2]
    total = loss.partition.n_labels
    piece = Quadratic(0.0, 1.0, 0.25 * _ratio(2 * small * next_small, total * (small + next_small)))
    return ClosedForm("block loss, block scores", "ε²/4k · min_{u≠v} 2 s_u s_v/(s_u+s_v)", (piece,))


def _hamming_own(loss: Loss, space: BaseScoreSpace) -> ClosedForm | None:
    if not isinstance(loss, Hamming) or loss.T is None or not isinstance(space, Separable):
        return None
    piece = Quadratic(0.0, 1.0, 0.25 / (loss.n_states * loss.T))
    return ClosedForm("Hamming loss, separable scores", "ε²/4sT", (piece,))


def _mixed_full(loss: Loss, space: BaseScoreSpace) -> ClosedForm | None:
    sizes = set(loss.partition.block_sizes) if isinstance(loss, Mixed) else set()
    if not isinstance(loss, Mixed) or not isinstance(space, Full) or len(sizes) != 1:
        return None
    s, eta, b = sizes.pop(), loss.eta, loss.partition.n_blocks
    if s < 2 or b < 2 or eta == 0:
        return None
    log_scale = -math.log(loss.partition.n_labels)
    bend = 1.0 if eta >= 0.5 else eta / (1 - eta)
    pieces = [Quadratic(0.0, bend, 0.25)]
    if bend < 1.0:
        # ε²s/(2(s+1)) − η(ε+1)(s−1)(2ε−εη−η)/(4(s+1)), expanded in ε
        factor = eta * _ratio(s - 1, 4 * (s + 1))
        a = 0.5 * _ratio(s, s + 1) - factor * (2 - eta)
        pieces.append(Quadratic(bend, 1.0, a, -factor * (2 - 2 * eta), factor * eta))
    formula = "ε²/4k for ε ≤ η/(1−η), then a second quadratic"
    return ClosedForm("mixed loss, full scores", formula, tuple(pieces), log_scale)


def _mixed_blocks(loss: Loss, space: BaseScoreSpace) -> ClosedForm | None:
    sizes = set(loss.partition.block_sizes) if isinstance(loss, Mixed) else set()
    if not isinstance(loss, Mixed) or not isinstance(space, Blocks) or len(sizes) != 1:
        return None
    s, eta, b = sizes.pop(), loss.eta, loss.partition.n_blocks
    if space.partition != loss.partition or s < 2 or b < 2 or eta >= 1:
        return None
    # (ε−η/2)²/(4b) · (ηb/k+1−η)²/(1−η/2)², and ηb/k = η/s
    factor = (eta / _float(s) + 1 - eta) ** 2 / (4 * b * (1 - eta / 2) ** 2)
    flat = Quadratic(0.0, eta / 2, 0.0)
    rise = Quadratic(eta / 2, 1.0, factor, -eta * factor, factor * eta**2 / 4)
    pieces = (flat, rise) if eta > 0 else (rise,)
    formula = "0 for ε ≤ η/2, then (ε−η/2)²/4b · (ηb/k+1−η)²/(1−η/2)²"
    return ClosedForm("mixed loss, block scores", formula, pieces, level=eta / 2, error=eta)


def _ratio(numerator: int, denominator: int) -> float:
    """Exact integer division rounded once; Python does it for integers of any size."""
    return numerator / denominator


def _float(value: int) -> float:
    return float(value) if value < 2**1000 else math.inf


FORMS: tuple[Callable[[Loss, BaseScoreSpace], ClosedForm | None], ...] = (
    _zero_one,
    _block_full,
    _block_own,
    _hamming_own,
    _mixed_full,
    _mixed_blocks,
)
