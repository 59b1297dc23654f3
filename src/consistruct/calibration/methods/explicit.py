"""Listed labels: quadratic programs with pruning and symmetry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from consistruct.calibration.levels import approximation_error, consistency_level
from consistruct.calibration.methods.base import Method, Progress, each
from consistruct.calibration.parametric import lower_envelope, trace_pair
from consistruct.calibration.point import CurvePoint, status_of
from consistruct.calibration.pool import ExplicitPairs, PairPool, PoolPoint
from consistruct.calibration.problem import ExplicitProblem
from consistruct.calibration.proofs import Certificate, ExplicitCertificate, ProblemCertificate
from consistruct.calibration.structured.blocks import as_mixed
from consistruct.calibration.structured.closed_forms import Quadratic
from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.scores import Full, Orthonormalised
from consistruct.scores.base import BaseScoreSpace

__all__ = ["PoolMethod"]

PIECE_LIMIT = 2000  # pairs whose curves are traced for exact pieces


@dataclass(eq=False)
class PoolMethod(Method):
    """Explicit quadratic programs with pruning and symmetry: any loss, any scores, any measure."""

    loss: Loss
    space: BaseScoreSpace
    problem: ExplicitProblem
    reduced: bool = False  # the problem lists blocks, not labels

    def __post_init__(self) -> None:
        self.name = "symmetric reduction" if self.reduced else "explicit quadratic programs"
        self.log_scale = self.problem.log_scale
        self._unit = self.problem.unit
        self._source = ExplicitPairs(self.problem)
        self._pool = PairPool(self._source)

    @property
    def max_eps(self) -> float:
        return self.problem.max_eps * self._unit if self.problem.n_rows > 1 else 0.0

    def _labels(self, number: int) -> tuple[Any, Any]:
        i, j = (self.problem.labels[row] for row in self._source.pairs[number])
        if self.reduced:
            return int(i), int(j)
        labels = self.loss.predictions.unindex(np.array([i, j]))
        one, other = labels.tolist()
        return (tuple(one), tuple(other)) if labels.ndim > 1 else (one, other)

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        diameter = max(float(self.problem.distances.max(initial=0.0)), 1e-300)
        scale = self.problem.max_eps**2 / (2 * diameter)

        def point(value: float) -> CurvePoint:
            if value <= self.consistency_level:  # v = 0 is optimal: shown by a linear program
                pair = self._level[1]
                rows = None if pair is None else self._row_labels(*pair)
                return CurvePoint(value, 0.0, 0.0, self.log_scale, self.name, "certified", rows)
            found = self._pool.point(value / self._unit)
            status = status_of(found.lower, found.upper, scale)
            pair_labels = self._labels(found.pair) if found.pair >= 0 else None
            return CurvePoint(
                value, found.lower, found.upper, self.log_scale, self.name, status, pair_labels
            )

        return each(eps, point, progress)

    def _row_labels(self, i: int, j: int) -> tuple[Any, Any]:
        pairs = self._source.pairs
        return self._labels(int(np.flatnonzero((pairs[:, 0] == i) & (pairs[:, 1] == j))[0]))

    @cached_property
    def _level(self) -> tuple[float, tuple[int, int] | None, FloatArray]:
        return consistency_level(self.problem)

    @property
    def consistency_level(self) -> float:
        return self._level[0] * self._unit

    @cached_property
    def approximation_error(self) -> float:
        if self.problem.expresses:
            return 0.0
        if self.reduced:
            # a truth in a large block that is not its first label: only that label is free of η
            found = as_mixed(self.loss)
            assert found is not None
            partition, eta = found
            return eta if max(partition.block_sizes) > 1 else 0.0
        rows = self.loss.matrix() / self._unit
        return approximation_error(rows, self.problem.loss) * self._unit

    def certificate(self, eps: float) -> Certificate:
        found = self._pool.point(eps / self._unit)
        if found.solution is None:
            raise ConsistructError(f"no pair is feasible at ε = {eps}: H is +inf, nothing to prove")
        multipliers = self._multipliers()
        i, j = (int(row) for row in self._source.pairs[found.pair])
        law, scores = self._primal(found, i, j)
        if self.reduced:
            return ProblemCertificate(
                self.problem, eps, found.lower, found.upper, self._labels(found.pair),
                (i, j), law, scores, multipliers,
            )  # fmt: skip
        labels = self.problem.labels
        scale = math.exp(self.log_scale)
        full = {
            (int(labels[a]), int(labels[b])): [(self._spread(w), nu) for w, nu in points]
            for (a, b), points in multipliers.items()
        }
        return ExplicitCertificate(
            self.loss, self.space, eps, found.lower * scale, found.upper * scale,
            (int(labels[i]), int(labels[j])), law, self._all_scores(scores) * self._unit, full,
        )  # fmt: skip

    def _multipliers(self) -> dict[tuple[int, int], list[tuple[FloatArray, float]]]:
        """Stored dual points over rows, by pair of rows."""
        found: dict[tuple[int, int], list[tuple[FloatArray, float]]] = {}
        for stored in self._pool.stored:
            pair, _ = self._source.problem(stored.pair)
            i, j = (int(row) for row in self._source.pairs[stored.pair])
            w = pair.expand_multipliers(stored.w, self.problem.n_rows)
            found.setdefault((i, j), []).append((w, stored.line.nu))
        return found

    def _spread(self, w: FloatArray) -> FloatArray:
        full = np.zeros(self.loss.n_labels or 0)
        full[self.problem.labels] = w
        return full

    def _primal(self, found: PoolPoint, i: int, j: int) -> tuple[FloatArray, FloatArray]:
        """Law over all truths and score parameters θ in the orthonormal basis."""
        assert found.solution is not None
        pair, _ = self._source.problem(found.pair)
        law = pair.expand_law(found.solution.q, self.problem.loss.shape[1])
        # v = −Σ w_c (F̃_c − F̃_j) with the multipliers that give this v
        weights = np.asarray(
            np.linalg.lstsq(pair.order.T, found.solution.v, rcond=None)[0], dtype=np.float64
        )
        full = pair.expand_multipliers(weights, self.problem.n_rows)
        v = full @ self.problem.embedding - full.sum() * self.problem.embedding[j]
        return law, v - self.problem.targets @ law

    def _all_scores(self, theta: FloatArray) -> FloatArray:
        if isinstance(self.space, Full):
            weights = self.space.predictions.weights()
            return theta if self.space.measure == "uniform" else theta / np.sqrt(weights)
        return Orthonormalised(self.space).matrix() @ theta

    def pieces(self) -> tuple[Quadratic, ...]:
        n_pairs = len(self._source.limits)
        if n_pairs > PIECE_LIMIT:
            raise ConsistructError(
                f"exact pieces need the curves of {n_pairs} pairs, more than the limit of "
                f"{PIECE_LIMIT}; use interval(eps)"
            )
        curves: dict[bytes, list[Quadratic]] = {}
        for number in range(n_pairs):
            problem, signature = self._source.problem(number)
            if signature not in curves:
                curves[signature] = trace_pair(problem)
        unit = self._unit  # back from ε/unit; the factor unit² is in log_scale
        return tuple(
            Quadratic(p.low * unit, p.high * unit, p.a / unit**2, p.b / unit, p.c)
            for p in lower_envelope(list(curves.values()))
        )
