"""H over some distributions of the true label: one explicit problem for each polytope of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from consistruct.calibration.curve import CurvePoint, Method, Progress, Status, status_of
from consistruct.calibration.methods.explicit.method import PoolMethod
from consistruct.calibration.methods.explicit_full.method import ExplicitFullMethod
from consistruct.calibration.problem.distributions import Distributions
from consistruct.calibration.problem.listed import explicit_problem, own_basis
from consistruct.calibration.proofs import Certificate
from consistruct.calibration.proofs.base import down, up
from consistruct.calibration.proofs.restricted import RestrictedCertificate
from consistruct.certificates.exact import number
from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss
from consistruct.losses.matrix import CostMatrix
from consistruct.protocols import FloatArray
from consistruct.structures import Structure

__all__ = ["RestrictedMethod"]


@dataclass(eq=False)
class RestrictedMethod(Method):
    """The least H over polytopes of distributions, each an explicit problem of its own."""

    loss: Loss
    space: Structure
    distributions: Distributions
    fast_from: int  # labels from which full scores take the compiled route
    jobs: int = 1

    def __post_init__(self) -> None:
        m = self.loss.true_labels.size
        assert m is not None
        L = self.loss.matrix()
        # the scores are the same for all parts, and their own loss is that of no part
        self._basis = None if self.space.one_per_label else own_basis(self.loss, self.space)
        self._parts = [
            (polytope, self._method(polytope.columns(L)))
            for polytope in self.distributions.polytopes(m)
        ]
        self.name = f"{self._parts[0][1].name}, {self.distributions.spec}"

    def _method(self, rows: list[list[Fraction]]) -> PoolMethod | ExplicitFullMethod:
        """The method for one polytope; its loss in floats only states where to look."""
        loss = CostMatrix([[float(x) for x in row] for row in rows], rows="pred")
        if self.space.one_per_label and self.space.width >= self.fast_from:
            return ExplicitFullMethod(loss, self.space, self.jobs, rows)
        problem = explicit_problem(loss, self.space)
        return PoolMethod(loss, self.space, problem, rows, self._basis)

    @cached_property
    def _limits(self) -> list[float]:
        return [method.max_eps for _, method in self._parts]

    @property
    def max_eps(self) -> float:
        return max(self._limits)

    @cached_property
    def consistency_level(self) -> float:
        return max(method.consistency_level for _, method in self._parts)

    @property
    def level_interval(self) -> tuple[float, float]:
        ends = [method.level_interval for _, method in self._parts]
        return max(low for low, _ in ends), max(high for _, high in ends)

    @property
    def level_reason(self) -> str | None:
        return next((why for _, method in self._parts if (why := method.level_reason)), None)

    @cached_property
    def approximation_error(self) -> float:
        return max(method.approximation_error for _, method in self._parts)

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
                f"H({eps!r}) = 0: ε is not above the consistency level {self.consistency_level!r}"
            )
        parts = [
            method.certificate(eps) if eps <= method.max_eps else None for _, method in self._parts
        ]
        proofs = [part for part in parts if part is not None]
        won = min(proofs, key=lambda part: number(part.upper) * part.scale)
        return RestrictedCertificate(
            self.loss.matrix().tolist(),
            self.distributions,
            eps,
            down(min(number(part.lower) * part.scale for part in proofs)),
            up(number(won.upper) * won.scale),
            tuple(parts),
            parts.index(won),
        )
