"""Convex non-decreasing functions below H, as Jensen's inequality needs them.

H itself is neither convex nor continuous. A slope s supports the line s·ε − H*(s) with
H*(s) = sup_ε [sε − H(ε)]; the maximum of such lines is convex and lies below H everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consistruct.calibration.structured.closed_forms import Quadratic
from consistruct.protocols import FloatArray

__all__ = ["Envelope", "envelope_from_grid", "envelope_from_pieces", "theorem_7_envelope"]

N_SLOPES = 32  # tangents per piece
SAFETY = 1e-8


@dataclass(frozen=True, eq=False)
class Envelope:
    """max(quadratic·ε², max_m slope_m·ε + intercept_m)·exp(log_scale), +inf above max_eps."""

    slopes: FloatArray
    intercepts: FloatArray
    quadratic: float
    max_eps: float
    log_scale: float = 0.0

    def _scaled(self, x: FloatArray) -> FloatArray:
        """The value over exp(log_scale), of any shape."""
        lines = (x[..., None] * self.slopes + self.intercepts).max(axis=-1)
        value = np.maximum(np.maximum(lines, self.quadratic * x**2), 0.0)
        return np.where(x > self.max_eps, np.inf, value)

    def __call__(self, eps: ArrayLike) -> Any:
        x = np.asarray(eps, dtype=np.float64)
        scaled = self._scaled(x)
        result = np.where(np.isinf(scaled), np.inf, scaled * math.exp(self.log_scale))
        return float(result) if result.ndim == 0 else result

    def log(self, eps: ArrayLike) -> Any:
        """log of the value, −inf where it is 0: finite where the value itself underflows."""
        x = np.asarray(eps, dtype=np.float64)
        with np.errstate(divide="ignore"):
            result = np.log(self._scaled(x)) + self.log_scale
        return float(result) if result.ndim == 0 else result

    def inverse(self, delta: float) -> float:
        """sup{ε ≤ max_eps : envelope(ε) ≤ δ}."""
        if not delta >= 0:
            raise ValueError(f"delta must be non-negative, got {delta}")
        return self.inverse_log(math.log(delta) if delta > 0 else -math.inf)

    def inverse_log(self, log_delta: float) -> float:
        """`inverse` at δ = exp(log_delta), for δ below all floats."""
        log_level = log_delta - self.log_scale
        level = math.exp(log_level) if log_level < 700 else math.inf
        best = self.max_eps
        rising = self.slopes > 0
        if rising.any():
            best = min(best, float(((level - self.intercepts[rising]) / self.slopes[rising]).min()))
        if self.quadratic > 0:
            best = min(best, math.sqrt(level / self.quadratic))
        return max(best, 0.0)


def envelope_from_grid(
    grid: FloatArray, lower: FloatArray, quadratic: float, max_eps: float, log_scale: float
) -> Envelope:
    """From H(ε) ≥ lower[m] for ε ≥ grid[m]: the convex hull of the points (grid[m+1], lower[m])."""
    hull: list[tuple[float, float]] = [(0.0, 0.0)]
    for x, y in zip(grid[1:].tolist(), lower[:-1].tolist(), strict=True):
        while len(hull) >= 2:
            (x0, y0), (x1, y1) = hull[-2], hull[-1]
            if (y1 - y0) * (x - x0) < (y - y0) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    points = np.array(hull)
    slopes = np.diff(points[:, 1]) / np.diff(points[:, 0])
    intercepts = points[:-1, 1] - slopes * points[:-1, 0]
    return Envelope(*_rounded_down(slopes, intercepts, quadratic), max_eps, log_scale)


def envelope_from_pieces(
    pieces: tuple[Quadratic, ...], quadratic: float, log_scale: float
) -> Envelope:
    """Supporting lines at the slopes that the pieces take, exact conjugates for each."""
    if not pieces:
        return Envelope(np.zeros(1), np.zeros(1), 0.0, 0.0, log_scale)
    slopes = {0.0}
    for piece in pieces:
        for eps in np.linspace(piece.low, piece.high, N_SLOPES).tolist():
            slopes.add(max(2 * piece.a * eps + piece.b, 0.0))
    ends = (
        [(p.high, p(p.high)) for p in pieces] + [(p.low, p(p.low)) for p in pieces] + [(0.0, 0.0)]
    )
    for x0, y0 in ends:  # chords between corners: the straight parts of the hull
        slopes |= {max((y1 - y0) / (x1 - x0), 0.0) for x1, y1 in ends if x1 > x0}
    ordered = np.array(sorted(slopes))
    conjugate = np.max([_conjugate(piece, ordered) for piece in pieces], axis=0)
    intercepts = -np.maximum(conjugate, 0.0)  # ε = 0 with H = 0 counts too
    return Envelope(*_rounded_down(ordered, intercepts, quadratic), pieces[-1].high, log_scale)


def theorem_7_envelope(log_k_eff: float, max_eps: float) -> Envelope:
    """ε²/(4 k_eff): all there is where nothing tighter than Theorem 7 is known."""
    zero = np.zeros(1)
    return Envelope(*_rounded_down(zero, zero, 0.25), max_eps, -log_k_eff)


def _rounded_down(
    slopes: FloatArray, intercepts: FloatArray, quadratic: float
) -> tuple[FloatArray, FloatArray, float]:
    """A little below, so that rounding in a value or a piece never lifts it above H."""
    return slopes * (1 - SAFETY), intercepts - SAFETY * np.abs(intercepts), quadratic * (1 - SAFETY)


def _conjugate(piece: Quadratic, slopes: FloatArray) -> FloatArray:
    """sup over the closed interval of sε − (aε² + bε + c), a ≥ 0."""
    if piece.a > 0:
        best = np.clip((slopes - piece.b) / (2 * piece.a), piece.low, piece.high)
    else:
        best = np.where(slopes >= piece.b, piece.high, piece.low)
    return slopes * best - (piece.a * best**2 + piece.b * best + piece.c)
