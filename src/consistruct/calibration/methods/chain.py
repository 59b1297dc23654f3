"""Hamming loss with binary chain scores: a flow along the chain."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from consistruct.calibration.curve import CurvePoint, Method, Progress, at_each, status_of
from consistruct.calibration.proofs.base import down, up
from consistruct.calibration.proofs.chain import ChainCertificate
from consistruct.calibration.structured.chain import ChainFlow
from consistruct.protocols import FloatArray

__all__ = ["ChainMethod"]


@dataclass(eq=False)
class ChainMethod(Method):
    """H of Hamming(T) with Chain(T, 2) by flows (upper end) and a dynamic programme (lower end)."""

    T: int

    def __post_init__(self) -> None:
        self.name = "chain flows"
        self._flow = ChainFlow(self.T)
        self._proofs: dict[float, ChainCertificate] = {}

    @property
    def max_eps(self) -> float:
        return 1.0

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            proof = self.certificate(value)
            status = status_of(proof.lower, proof.upper, 1.0)
            return CurvePoint(value, proof.lower, proof.upper, 0.0, self.name, status, proof.pair)

        return at_each(eps, point, progress)

    def certificate(self, eps: float) -> ChainCertificate:
        if eps not in self._proofs:
            found, scale = self._flow.solve(eps), Fraction(8 * self.T**2)
            self._proofs[eps] = ChainCertificate(
                self.T, str(found.eps), down(found.lower / scale),
                up(found.upper / scale), found.differs, found.flow, found.contrast,
                found.multipliers,
            )  # fmt: skip
        return self._proofs[eps]
