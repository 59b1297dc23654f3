"""Listed labels: quadratic programs with pruning and symmetry, proved in exact arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from consistruct.calibration.curve import (
    CurvePoint,
    Method,
    Progress,
    Status,
    at_each,
    status_of,
)
from consistruct.calibration.levels import approximation_error
from consistruct.calibration.methods.explicit.pair_solver import solve_pair
from consistruct.calibration.methods.explicit.parametric import lower_envelope
from consistruct.calibration.methods.explicit.pool import ExplicitPairs, PairPool
from consistruct.calibration.methods.orbits.closed_forms import Quadratic
from consistruct.calibration.problem.listed import ExplicitProblem, own_basis
from consistruct.calibration.proofs.base import down, up
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.calibration.proofs.provers.levels import Level, exact_level, residual
from consistruct.calibration.proofs.provers.listed import ListedProver, Proof
from consistruct.calibration.proofs.provers.pair import Piece
from consistruct.calibration.proofs.provers.reduced import Cells
from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.structures import Structure

__all__ = ["PoolMethod"]

PIECE_LIMIT = 2000  # pairs whose curves are traced for exact pieces
FEW_LABELS = 4  # whose pairs are traced in well under a second


@dataclass(eq=False)
class PoolMethod(Method):
    """Explicit quadratic programs with pruning and symmetry: any loss, any scores, any measure.

    `rows` and `basis` are the loss and the scores exactly, where the floats of `loss` and `space`
    round them: then all claims are about these.
    """

    loss: Loss
    space: Structure
    problem: ExplicitProblem
    rows: list[list[Fraction]] | None = None
    basis: FloatArray | None = None
    scale: Fraction = field(init=False)

    def __post_init__(self) -> None:
        self.name = "explicit quadratic programs"
        self._unit = self.problem.unit
        self.scale = Fraction(self._unit) ** 2
        self.log_scale = 2 * float(np.log(self._unit))
        self._taken = 0  # lines of the pool that the prover has

    @cached_property
    def _source(self) -> ExplicitPairs:
        return ExplicitPairs(self.problem)

    @cached_property
    def _pool(self) -> PairPool:
        """Pairs in floats, where there are too many for exact arithmetic on each."""
        return PairPool(self._source)

    @cached_property
    def prover(self) -> ListedProver:
        """Exact arithmetic about the same loss and scores."""
        full = self.space.one_per_label
        uniform = self.space.measure == "uniform"
        basis = self.basis
        if basis is None and not full:
            basis = own_basis(self.loss, self.space)
        return ListedProver(
            self._exact_rows,
            basis,
            None if uniform else self.space.predictions.weights(),
            rank=None if full else self.space.rank,
            predictable=self.problem.labels.tolist(),
            guide=self,
        )

    @property
    def _exact_rows(self) -> list[list[Any]]:
        return self.loss.matrix().tolist() if self.rows is None else self.rows

    @cached_property
    def _row_of(self) -> dict[int, int]:
        return {int(label): row for row, label in enumerate(self.problem.labels)}

    @cached_property
    def _number_of(self) -> dict[tuple[int, int], int]:
        pairs = self._source.pairs.tolist()
        return {(i, j): number for number, (i, j) in enumerate(pairs)}

    def cells(self, i: int, j: int) -> Cells | None:
        """Labels and true labels that the pair of labels cannot tell apart."""
        if i not in self._row_of or j not in self._row_of:
            return None
        if len(self.prover.rows) != self.problem.n_rows:
            return None
        pair, signature = self._source.problem(self._number_of[self._row_of[i], self._row_of[j]])
        labels = self.problem.labels
        return Cells(
            [[int(labels[row]) for row in cell] for cell in pair.row_cells],
            [cell.tolist() for cell in pair.column_cells],
            signature,
        )

    def solution(self, i: int, j: int, eps: float) -> tuple[FloatArray, FloatArray] | None:
        """A float solution of the pair of labels over its cells."""
        pair, _ = self._source.problem(self._number_of[self._row_of[i], self._row_of[j]])
        found = solve_pair(pair, min(eps / self._unit, pair.max_eps))
        return None if found is None else (found.q, found.w)

    def _spread(self, w: FloatArray) -> FloatArray:
        full = np.zeros(self.loss.n_labels or 0)
        full[self.problem.labels] = w
        return full

    @cached_property
    def max_eps(self) -> float:
        """The largest float that is at most the exact maximum of L_jy − L_iy."""
        if len(self.prover.rows) < 2:
            return 0.0
        rows = self._exact_rows
        return largest_difference([rows[label] for label in self.prover.rows])

    def _prove(self, eps: float) -> Proof:
        prover = self.prover
        if not prover.exact:  # floats say which pairs matter, and leave bounds for the others
            self._pool.point(eps / self._unit)
            labels = self.problem.labels
            for stored in self._pool.stored[self._taken :]:
                pair, _ = self._source.problem(stored.pair)
                i, j = (int(labels[row]) for row in self._source.pairs[stored.pair])
                w = self._spread(pair.expand_multipliers(stored.w, self.problem.n_rows))
                support = np.flatnonzero(w > 0)
                point = {int(c): Fraction(float(w[c])) for c in support}
                prover.add_line(i, j, (point, Fraction(max(stored.line.nu, 0.0))))
            self._taken = len(self._pool.stored)
        found = prover.prove(Fraction(eps), self._at_level(eps))
        if found is None:
            raise ConsistructError(f"no pair is feasible at ε = {eps}: H is +inf, nothing to prove")
        return found

    def _at_level(self, eps: float) -> tuple[tuple[int, int], list[Fraction]] | None:
        """Where H vanishes: the pair and the distribution whose best scores predict wrongly."""
        level = self._level
        if (
            self.prover.exact
            or level.pair is None
            or level.distribution is None
            or eps > level.lower
        ):
            return None
        return level.pair, list(level.distribution)

    def _labels(self, pair: tuple[int, int]) -> tuple[Any, Any]:
        labels = self.loss.predictions.unindex(np.array(pair))
        one, other = labels.tolist()
        return (tuple(one), tuple(other)) if labels.ndim > 1 else (one, other)

    def status(self, lower: float, upper: float, typical: float) -> Status:
        """Judge an interval: nothing is certified where the rank of the scores is an estimate."""
        found = status_of(lower, upper, typical)
        estimated = not getattr(self.space, "rank_is_exact", True)
        return "numerical" if estimated and found == "certified" else found

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        diameter = max(float(self.problem.distances.max(initial=0.0)), 1e-300)
        typical = self.problem.max_eps**2 / (2 * diameter)

        def point(value: float) -> CurvePoint:
            found = self._prove(value)
            lower, upper = down(found.lower / self.scale), up(found.upper / self.scale)
            return CurvePoint(
                value, lower, upper, self.log_scale, self.name,
                self.status(lower, upper, typical), self._labels(found.pair), self.scale,
            )  # fmt: skip

        return at_each(eps, point, progress)

    @cached_property
    def _level(self) -> Level:
        # where the scores express the loss, j is optimal wherever its best scores make it win
        by_structure = getattr(self.loss, "rank_tolerance", None) is None
        if self.space.one_per_label or (by_structure and self.space == self.loss.score_space):
            return Level(Fraction(0), Fraction(0))
        if self.problem.expresses:  # as far as floats can tell
            return Level(Fraction(0), residual(self.prover.problem, self.prover.rows))
        return exact_level(self.prover.problem, self.prover.rows)

    @property
    def consistency_level(self) -> float:
        return float(self._level.lower)

    @property
    def level_interval(self) -> tuple[float, float]:
        return down(self._level.lower), up(self._level.upper)

    @property
    def level_reason(self) -> str | None:
        if self.problem.expresses and self._level.upper > 0:
            return "the scores express the loss up to rounding errors only"
        return None

    @cached_property
    def approximation_error(self) -> float:
        if self.problem.expresses:
            return 0.0
        rows = self.loss.matrix() / self._unit
        return approximation_error(rows, rows[self.prover.rows]) * self._unit

    def certificate(self, eps: float) -> ListedCertificate:
        self._prove(eps)
        found = self.prover.certificate(Fraction(eps))
        assert found is not None
        return found

    @property
    def fast_pieces(self) -> bool:  # type: ignore[override]
        """Whether the pieces are known, or few pairs are to be traced."""
        few = len(self.prover.rows) <= FEW_LABELS and self.prover.exact
        return few or "_pieces" in self.__dict__

    def pieces(self) -> tuple[Quadratic, ...]:
        return self._pieces

    @cached_property
    def _pieces(self) -> tuple[Quadratic, ...]:
        # which labels can win is decided exactly: where floats see fewer, because the scores have a
        # direction too small for them, the pairs of the others may be the cheapest
        labels = self.prover.rows
        pairs = [(i, j) for i in labels for j in labels if i != j]
        if len(pairs) > PIECE_LIMIT:
            raise ConsistructError(
                f"exact pieces need the curves of {len(pairs)} pairs, more than the limit of "
                f"{PIECE_LIMIT}; use interval(eps)"
            )
        curves: dict[Any, list[Piece]] = {}
        for i, j in pairs:
            cells = self.cells(i, j) if len(labels) > FEW_LABELS else None
            signature = (i, j) if cells is None else cells.signature
            if signature not in curves:
                curves[signature] = [
                    (low, high, *(x / self.scale for x in coefficients))  # type: ignore[misc]
                    for low, high, *coefficients in self.prover.trace(i, j)
                ]
        return lower_envelope(list(curves.values()))


def largest_difference(rows: list[list[Any]]) -> float:
    """max over true labels of the largest minus the smallest loss, exact, then rounded down."""
    columns = list(zip(*rows, strict=True))
    return down(max(Fraction(max(column)) - Fraction(min(column)) for column in columns))
