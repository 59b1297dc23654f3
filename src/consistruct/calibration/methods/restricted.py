"""H over some distributions of the truth: one explicit problem for each polytope of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from consistruct.calibration.distributions import Distributions, Polytope
from consistruct.calibration.levels import approximation_error
from consistruct.calibration.methods.base import Method, Progress
from consistruct.calibration.methods.explicit import PoolMethod
from consistruct.calibration.methods.explicit_full import ExplicitFullMethod
from consistruct.calibration.point import CurvePoint, Status, status_of
from consistruct.calibration.problem import explicit_problem
from consistruct.calibration.proofs import Certificate
from consistruct.exceptions import CertificateError, ConsistructError
from consistruct.losses.base import Loss
from consistruct.losses.cost_matrix import CostMatrix
from consistruct.protocols import FloatArray
from consistruct.scores import Full
from consistruct.scores.base import BaseScoreSpace

__all__ = ["RestrictedCertificate", "RestrictedMethod"]


@dataclass(frozen=True, eq=False)
class RestrictedCertificate:
    """A proof for each polytope of distributions; H is the least of them.

    Attributes
    ----------
    parts : tuple of (Polytope, Certificate or None)
        None where no distribution of the polytope makes a prediction worse by ε.
    winner : int
        The part that attains the upper bound.
    """

    loss: Loss
    space: BaseScoreSpace
    distributions: Distributions
    eps: float
    lower: float
    upper: float
    pair: tuple[Any, Any]
    parts: tuple[tuple[Polytope, Certificate | None], ...]
    winner: int
    log_scale: float = 0.0

    @property
    def law(self) -> FloatArray:
        """(m,) distribution of the truth under which j is wrongly predicted at the least cost."""
        polytope, proof = self.parts[self.winner]
        shares = np.array(proof.probabilities)  # type: ignore[union-attr]
        law: FloatArray = polytope.matrix() @ shares
        return law

    def check(self) -> None:
        """List the extreme distributions again, then check every part."""
        L = self.loss.matrix()
        expected = self.distributions.polytopes(L.shape[1])
        if tuple(polytope for polytope, _ in self.parts) != expected:
            raise CertificateError("the parts are not those of the distributions")
        kept = self.space.predictable().indices
        lowers = [math.inf]
        for polytope, proof in self.parts:
            columns = polytope.columns(L)
            if proof is None:
                rows = columns if kept is None else columns[kept]
                if float((rows.max(axis=0) - rows.min(axis=0)).max()) >= self.eps:
                    raise CertificateError(f"no proof is given for the part {polytope.name!r}")
                continue
            if proof.eps != self.eps or not _same_problem(proof, columns):
                raise CertificateError(f"the proof of {polytope.name!r} is about another problem")
            proof.check()
            lowers.append(proof.lower * math.exp(proof.log_scale))
        won = self.parts[self.winner][1]
        if won is None or self.upper < won.upper * math.exp(won.log_scale) * (1 - 1e-12):
            raise CertificateError(f"the upper bound {self.upper!r} is not attained")
        if self.lower > min(lowers) * (1 + 1e-12):
            raise CertificateError(f"the lower bound {self.lower!r} is not proved")


def _same_problem(proof: Any, columns: FloatArray) -> bool:
    """Whether a certificate is about this loss matrix, entry by entry in exact numbers."""
    stated = [[Fraction(x) for x in row] for row in proof.loss]
    return stated == [[Fraction(x) for x in row] for row in columns.tolist()]


@dataclass(eq=False)
class RestrictedMethod(Method):
    """The least H over polytopes of distributions, each an explicit problem of its own."""

    loss: Loss
    space: BaseScoreSpace
    distributions: Distributions
    fast_from: int  # labels from which full scores take the compiled route
    jobs: int = 1

    def __post_init__(self) -> None:
        m = self.loss.truths.size
        assert m is not None
        L = self.loss.matrix()
        self._parts = [
            (polytope, self._method(polytope.columns(L)))
            for polytope in self.distributions.polytopes(m)
        ]
        self.name = f"{self._parts[0][1].name}, {self.distributions.spec}"

    def _method(self, columns: FloatArray) -> PoolMethod | ExplicitFullMethod:
        # constants by column change nothing where the scores contain them; costs must not be < 0
        loss = CostMatrix(columns)
        if isinstance(self.space, Full):
            if self.space.width >= self.fast_from:
                return ExplicitFullMethod(loss, self.space, self.jobs)
            return PoolMethod(loss, self.space, explicit_problem(loss, self.space))
        return PoolMethod(loss, self.space, explicit_problem(loss, self.space))

    @cached_property
    def _limits(self) -> list[float]:
        return [method.max_eps for _, method in self._parts]

    @property
    def max_eps(self) -> float:
        return max(self._limits)

    @cached_property
    def consistency_level(self) -> float:
        return max(method.consistency_level for _, method in self._parts)

    @cached_property
    def approximation_error(self) -> float:
        return max(
            approximation_error(method.loss.matrix(), method.problem.loss * method.problem.unit)
            if isinstance(method, PoolMethod) and not method.problem.expresses
            else 0.0
            for _, method in self._parts
        )

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        best: dict[float, list[CurvePoint]] = {value: [] for value in eps.tolist()}
        for done, (_, method) in enumerate(self._parts):
            inside = eps[eps <= method.max_eps]
            for point in method.points(inside) if len(inside) else []:
                best[point.eps].append(point)
            if progress is not None:
                progress((done + 1) * len(eps) // len(self._parts), len(eps))
        return [self._least(value, best[value]) for value in eps.tolist()]

    def _least(self, eps: float, points: list[CurvePoint]) -> CurvePoint:
        low = min(point.lower for point in points)
        won = min(points, key=lambda point: point.upper)
        status: Status = status_of(low, won.upper, max(point.upper for point in points))
        pair = None if won.pair is None else self._named(won.pair)
        return CurvePoint(eps, low, won.upper, 0.0, self.name, status, pair)

    def _named(self, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        """Labels of the loss, from the positions that the parts know or from its own labels."""
        if isinstance(pair[0], int):
            labels = self.loss.predictions.unindex(np.array(pair)).tolist()
            one, other = (tuple(x) if isinstance(x, list) else x for x in labels)
            return one, other
        return pair

    def certificate(self, eps: float) -> Certificate:
        if eps <= self.consistency_level:
            raise ConsistructError(
                f"H({eps:g}) = 0: ε is not above the consistency level {self.consistency_level:g}"
            )
        parts: list[tuple[Polytope, Certificate | None]] = [
            (polytope, method.certificate(eps) if eps <= method.max_eps else None)
            for polytope, method in self._parts
        ]
        ends = [
            (p.lower * math.exp(p.log_scale), p.upper * math.exp(p.log_scale))
            if p is not None
            else (math.inf, math.inf)
            for _, p in parts
        ]
        winner = min(range(len(ends)), key=lambda n: ends[n][1])
        won = parts[winner][1]
        assert won is not None
        lower, upper = min(low for low, _ in ends), ends[winner][1]
        return RestrictedCertificate(
            self.loss, self.space, self.distributions, eps, lower, upper,
            self._named(won.pair), tuple(parts), winner,
        )  # fmt: skip
