"""Listed labels with full scores: active sets in compiled code, any cost matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from consistruct.calibration.curve import (
    CurvePoint,
    Method,
    Progress,
    Status,
    status_of,
)
from consistruct.calibration.methods.explicit.method import PoolMethod, largest_difference
from consistruct.calibration.methods.explicit_full import ExplicitCurve, explicit_curve
from consistruct.calibration.methods.orbits.closed_forms import Quadratic
from consistruct.calibration.problem.listed import explicit_problem
from consistruct.calibration.proofs.base import down, up
from consistruct.calibration.proofs.filters import Point
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.calibration.proofs.provers.listed import ListedProver, Proof
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.structures import Structure

__all__ = ["ExplicitFullMethod"]

POLISH_LIMIT = 64  # labels up to which loose values are solved again over the integers


@dataclass(eq=False)
class ExplicitFullMethod(Method):
    """Any loss matrix, full scores, any measure.

    `rows` is the loss exactly, where the floats of `loss` round it: then floats find the points,
    and what they prove is evaluated for these rows.
    """

    loss: Loss
    space: Structure  # one score per label
    jobs: int = 1
    rows: list[list[Fraction]] | None = None
    scale: Fraction = field(init=False)

    def __post_init__(self) -> None:
        self.name = "explicit active sets"
        self.scale = Fraction(1, self.space.width)
        self.log_scale = -math.log(self.space.width)

    @cached_property
    def _matrix(self) -> FloatArray:
        return self.loss.matrix()

    @cached_property
    def _measure(self) -> FloatArray | None:
        return None if self.space.measure == "uniform" else self.space.predictions.weights()

    @cached_property
    def max_eps(self) -> float:
        return largest_difference(self._matrix.tolist() if self.rows is None else self.rows)

    @cached_property
    def _pool(self) -> PoolMethod:
        """The same problem by single pairs: slow, for pieces and for the last digits."""
        problem = explicit_problem(self.loss, self.space)
        return PoolMethod(self.loss, self.space, problem, self.rows)

    def _curve(self, eps: FloatArray, progress: Progress | None = None) -> ExplicitCurve:
        return explicit_curve(
            self._matrix, eps, mu=self._measure, jobs=self.jobs, progress=progress
        )

    def _outward(self, lower: float, upper: float) -> tuple[float, float]:
        """k·μ was rounded: H grows with every weight, so its ends move by no more than that."""
        if self._measure is None:
            return lower, upper
        return lower * (1 - 4 * 2.0**-52), upper * (1 + 4 * 2.0**-52)

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        if self.rows is not None:
            return self._exact_points(eps, progress)
        found = self._curve(eps, progress)
        labels = self.loss.predictions.unindex(np.maximum(found.pair, 0).ravel())
        names = [tuple(label) if labels.ndim > 1 else label for label in labels.tolist()]
        points = []
        for position, value in enumerate(eps.tolist()):
            loose = found.status[position] != "certified"
            if loose and self.space.width <= POLISH_LIMIT:
                points += self._pool.points(np.array([value]))
                continue
            lower, upper = self._outward(
                float(found.scaled_lower[position]), float(found.scaled_upper[position])
            )
            status: Status = "loose" if loose else "certified"
            pair = names[2 * position], names[2 * position + 1]
            points.append(
                CurvePoint(value, lower, upper, self.log_scale, self.name, status, pair, self.scale)
            )
        return points

    @cached_property
    def _prover(self) -> ListedProver:
        """Exact arithmetic about `rows`, with all dual points that floats found so far."""
        assert self.rows is not None
        return ListedProver(self.rows, measure=self._measure)

    def _exact_points(self, eps: FloatArray, progress: Progress | None) -> list[CurvePoint]:
        """H for the exact rows, from the points that floats find for the rounded ones."""
        points = []
        for value, proof in zip(eps.tolist(), self._evaluated(eps, progress), strict=True):
            if proof is None:
                points += self._pool.points(np.array([value]))
                continue
            lower, upper = down(proof.lower / self.scale), up(proof.upper / self.scale)
            labels = self.loss.predictions.unindex(np.array(proof.pair)).tolist()
            i, j = (tuple(label) if isinstance(label, list) else label for label in labels)
            status = status_of(lower, upper, self.max_eps**2)
            points.append(
                CurvePoint(
                    value, lower, upper, self.log_scale, self.name, status, (i, j), self.scale
                )
            )
        return points

    def _evaluated(self, eps: FloatArray, progress: Progress | None = None) -> list[Proof | None]:
        """What the points of the rounded rows prove for the exact ones; None: solve it by pairs."""
        found = self._curve(np.minimum(eps, largest_difference(self._matrix.tolist())), progress)
        prover = self._prover
        prover.lines.update(_dual_points(found))
        proofs: list[Proof | None] = []
        for position, value in enumerate(map(Fraction, eps.tolist())):
            if found.status[position] != "certified" and self.space.width <= POLISH_LIMIT:
                proofs.append(None)
                continue
            pair = int(found.pair[position, 0]), int(found.pair[position, 1])
            distribution = [Fraction(x) for x in found.distributions[position].tolist()]
            if max(prover.problem.gap(*pair)) < value * prover.problem.unit:
                # ε is the end of the range, and rounding moved it
                pair, distribution = prover.widest
            proofs.append(prover.evaluate(value, pair, distribution))
        return proofs

    def certificate(self, eps: float) -> ListedCertificate:
        if self.rows is not None:
            proved = self._evaluated(np.array([eps]))[0]
            certificate = None if proved is None else self._prover.certificate(Fraction(eps))
            return self._pool.certificate(eps) if certificate is None else certificate
        found = self._curve(np.array([eps]))
        if found.status[0] != "certified" and self.space.width <= POLISH_LIMIT:
            return self._pool.certificate(eps)
        lower, upper = self._outward(float(found.scaled_lower[0]), float(found.scaled_upper[0]))
        k = self.space.width
        i, j = (int(label) for label in found.pair[0])
        proof = Proof(
            Fraction(eps),
            Fraction(lower) / k,
            Fraction(upper) / k,
            (i, j),
            [Fraction(x) for x in found.distributions[0].tolist()],
            Fraction(float(found.levels[0])),
            None,
        )
        return proof.as_certificate(
            loss=self._matrix.tolist(),
            scores=None,
            measure=None if self._measure is None else self._measure.tolist(),
            points=_dual_points(found),
            wins={},
            excluded={},
        )

    @property
    def fast_pieces(self) -> bool:  # type: ignore[override]
        """Whether the pieces are known."""
        return "_pool" in self.__dict__ and self._pool.fast_pieces

    def pieces(self) -> tuple[Quadratic, ...]:
        pool = self._pool
        assert pool.scale is not None
        assert self.scale is not None
        factor = float(pool.scale / self.scale)
        return tuple(
            Quadratic(p.low, p.high, p.a * factor, p.b * factor, p.c * factor)
            for p in pool.pieces()
        )


def _dual_points(found: ExplicitCurve) -> dict[tuple[int, int], list[Point]]:
    """The dual points of a curve by pair, as fractions."""
    points: dict[tuple[int, int], list[Point]] = {}
    stored = found.points
    for t in range(len(stored)):
        part = slice(stored.indptr[t], stored.indptr[t + 1])
        weights = map(Fraction, stored.weights[part].tolist())
        w = dict(zip(stored.rows[part].tolist(), weights, strict=True))
        pair = int(stored.i[t]), int(stored.j[t])
        points.setdefault(pair, []).append((w, Fraction(float(stored.nu[t]))))
    return points
