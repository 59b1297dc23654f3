"""The paper's losses over growing sizes: how D·M and N* grow, with its constants and sharp."""

from __future__ import annotations

import math
from dataclasses import dataclass

from consistruct.guarantees.complexity import SampleComplexity, sample_complexity
from consistruct.losses import Block, Hamming, Mixed, ZeroOne
from consistruct.losses.base import Loss

__all__ = ["PlanRow", "plan_table"]

SIZES = (4, 8, 16, 32, 64, 128, 256, 1024)
BLOCK_SIZE = 5
MIXED_ETA = 0.4


@dataclass(frozen=True)
class PlanRow:
    """One loss of a family.

    Attributes
    ----------
    order : str
        What the paper states of D·M: O(k), O(b) or O(log³ k); it states nothing of the mixed loss.
    size : int
        The k, b or T in `order`.
    log_rate : float
        log of the paper's rate at this size: k, b or T³.
    """

    family: str
    order: str
    size: int
    log_rate: float
    result: SampleComplexity

    @property
    def paper_ratio(self) -> float:
        """D·M of the paper's constants over the rate it states: tends to a constant."""
        return math.exp(self.result.paper.log_D + self.result.paper.log_M - self.log_rate)

    @property
    def sharp_ratio(self) -> float:
        """N*·ε⁴/ξ(QR)² of the sharp constants: 16 or 4 for the paper's consistent losses."""
        z = self.result.q_bound * self.result.radius
        log = self.result.sharp.log_iterations + 4 * math.log(self.result.eps)
        return math.exp(log - 2 * math.log(z**2 + z))


def plan_table(
    *, eps: float, radius: float = 1.0, q_bound: float = 1.0, sizes: tuple[int, ...] = SIZES
) -> tuple[PlanRow, ...]:
    """0-1, block, Hamming and mixed losses with their own scores, one row per size.

    Examples
    --------
    >>> row = plan_table(eps=0.1, sizes=(1000,))[2]
    >>> row.family, round(row.paper_ratio, 2), round(row.sharp_ratio, 6)
    ('hamming', 1.01, 4.0)
    """
    rows = []
    for family, order, power in (
        ("zero-one", "O(k)", 1),
        ("block", "O(b)", 1),
        ("hamming", "O(log³ k)", 3),
        ("mixed", "O(k), as 0-1", 1),
    ):
        for n in sizes:
            loss = _member(family, n)
            size = BLOCK_SIZE * n if family == "mixed" else n
            found = sample_complexity(loss, eps=eps, radius=radius, q_bound=q_bound)
            rows.append(PlanRow(family, order, size, power * math.log(size), found))
    return tuple(rows)


def _member(family: str, n: int) -> Loss:
    if family == "zero-one":
        return ZeroOne(n)
    if family == "block":
        return Block((BLOCK_SIZE,) * n)
    if family == "hamming":
        return Hamming(n)
    return Mixed((BLOCK_SIZE,) * n, MIXED_ETA)
