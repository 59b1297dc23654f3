"""The calibration problem as plain data.

In a μ-orthonormal basis of the scores (rows F̃_c with E_c F̃_c F̃_cᵀ = I) the excess surrogate risk
of score parameters θ under the distribution q of the true label is ½‖θ + Uq‖², U = E_c F̃_c L_c.
Write v = θ + Uq and P = F̃U (the loss projected on the scores, equal to L up to constants where the
scores express it). The pair (i, j) requests the cheapest v for which j is predicted though i is
better by ε:

    H_ij(ε) = min ½‖v‖²   s.t.   ⟨F̃_c − F̃_j, v⟩ ≤ (P_c − P_j) q  for every predictable c ≠ j,
                                 (L_j − L_i) q ≥ ε,   q in the simplex.

H(ε) = min over i ≠ j in pred(F). That i be optimal need not be required: if j is worse than *some*
i by ε, its excess task risk is at least ε. Without those constraints the dual has nothing to
repair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import frexp, log

import numpy as np
import scipy  # its submodules are imported on use

from consistruct.certificates.exact import independent_columns, integer_columns
from consistruct.exceptions import TooManyLabelsError
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.structures import Structure
from consistruct.structures.base import ENUMERATION_LIMIT

__all__ = ["ExplicitProblem", "PairProblem", "explicit_problem", "expresses_listed", "own_basis"]

MOST_OWN = 100_000  # entries of a loss whose own scores get an exact basis: well under a second


@dataclass(frozen=True, eq=False)
class ExplicitProblem:
    """Loss and scores over listed predictions; only predictable ones are kept.

    ``H = scaled value · exp(log_scale)``: with full scores the factor 1/k is kept apart. Losses
    and ε are divided by `unit`, a power of two that brings them near one without any rounding; H
    is homogeneous of degree two, so unit² is part of the scale.
    """

    loss: FloatArray  # (p, m) rows L_c of the predictable labels
    embedding: FloatArray  # (p, r) rows F̃_c
    targets: FloatArray  # (r, m) U
    labels: LabelArray  # (p,) index of each kept label
    expresses: bool  # whether P equals L up to a constant per column
    log_scale: float = 0.0
    unit: float = 1.0

    @cached_property
    def projected(self) -> FloatArray:
        """P, (p, m)."""
        return self.embedding @ self.targets

    @property
    def n_rows(self) -> int:
        return len(self.loss)

    @cached_property
    def max_eps(self) -> float:
        """Largest excess task risk: max over y of max_j L_jy − min_i L_iy."""
        return float((self.loss.max(axis=0) - self.loss.min(axis=0)).max())

    @cached_property
    def pair_limits(self) -> FloatArray:
        """(p, p): at [i, j] the largest ε for which the pair is feasible."""
        return np.stack([(self.loss - row).max(axis=1) for row in self.loss])

    @cached_property
    def distances(self) -> FloatArray:
        """(p, p): ‖F̃_i − F̃_j‖²."""
        # by differences: near neighbors would cancel in ‖F̃_i‖² + ‖F̃_j‖² − 2⟨F̃_i, F̃_j⟩
        return np.asarray(
            scipy.spatial.distance.cdist(self.embedding, self.embedding, "sqeuclidean")
        )

    @cached_property
    def residual(self) -> float:
        """How far (P_i − P_j)_y is from (L_i − L_j)_y at most, over pairs and true labels."""
        difference = self.loss - self.projected
        return float((difference.max(axis=0) - difference.min(axis=0)).max())

    def pair(self, i: int, j: int) -> PairProblem:
        """The problem of predicting row j while row i is better."""
        others = np.delete(np.arange(self.n_rows), j)
        return PairProblem(
            order=self.embedding[others] - self.embedding[j],
            order_rhs=self.projected[others] - self.projected[j],
            gap=self.loss[j] - self.loss[i],
            row_cells=tuple(others[:, None]),
            column_cells=tuple(np.arange(self.loss.shape[1])[:, None]),
        )


@dataclass(frozen=True, eq=False)
class PairProblem:
    """min ½‖v‖² s.t. order·v ≤ order_rhs·q, gap·q ≥ ε, q in the simplex.

    After a reduction by symmetry a constraint stands for a cell of predictions and a column for a
    cell of true labels; without one every cell has one member.
    """

    order: FloatArray  # (c, r) F̃_c − F̃_j
    order_rhs: FloatArray  # (c, m) P_c − P_j
    gap: FloatArray  # (m,) L_j − L_i
    row_cells: tuple[IntArray, ...]  # rows of the parent problem behind each constraint
    column_cells: tuple[IntArray, ...]  # columns behind each entry of q

    @cached_property
    def max_eps(self) -> float:
        """Largest ε for which the pair is feasible."""
        return float(self.gap.max())

    def expand_multipliers(self, w: FloatArray, n_rows: int) -> FloatArray:
        """w of the cells -> one multiplier per row of the parent, (n_rows,)."""
        full = np.zeros(n_rows)
        for weight, cell in zip(w, self.row_cells, strict=True):
            full[cell] = weight / len(cell)
        return full


def explicit_problem(
    loss: Loss, space: Structure, *, limit: int = ENUMERATION_LIMIT
) -> ExplicitProblem:
    """List predictions and true labels; raises TooManyLabelsError above `limit`."""
    size = loss.n_labels
    if size is None or size > limit:
        raise TooManyLabelsError(
            size, limit, f"the dense calibration problem of {loss!r}", "use a structured method"
        )
    L = loss.matrix(limit=limit)
    if space.one_per_label:
        unit = _unit(L - L.min(axis=0))
        weights = space.predictions.weights(limit=limit)
        uniform = space.measure == "uniform"
        root = np.ones(len(L)) if uniform else np.sqrt(weights)
        log_scale = 2 * log(unit) - (log(len(L)) if uniform else 0.0)
        return ExplicitProblem(
            L / unit, np.diag(1.0 / root), root[:, None] * L / unit,
            np.arange(len(L)), True, log_scale, unit,
        )  # fmt: skip
    # a constant column matters only where the scores do not contain the constant
    unit = _unit(L - L.min(axis=0) if space.contains_constant else L)
    embedding, targets = _project(L / unit, space, limit)
    expresses = _is_constant_by_column(L / unit, embedding @ targets)
    predictable = space.predictable()
    kept = np.arange(len(L)) if predictable.indices is None else predictable.indices
    return ExplicitProblem(
        L[kept] / unit, embedding[kept], targets, kept, expresses, 2 * log(unit), unit
    )


def expresses_listed(loss: Loss, space: Structure, *, limit: int = ENUMERATION_LIMIT) -> bool:
    """Whether each column of the loss equals its projection on the scores up to a constant."""
    L = loss.matrix(limit=limit)
    L = L / _unit(L)
    embedding, targets = _project(L, space, limit)
    return _is_constant_by_column(L, embedding @ targets)


def own_basis(loss: Loss, space: Structure) -> FloatArray:
    """Return columns whose span the scores are, (k, r) or more.

    A loss's own scores are the span of the constant and its columns. A basis made of these is
    exact; the one that models are trained with is rounded, and expresses the loss not quite.
    """
    F = space.matrix()
    if space != loss.score_space or loss.true_labels.size is None or F.size > MOST_OWN:
        return F
    span = np.column_stack([np.ones(len(F)), loss.matrix()])
    if span.size > MOST_OWN:
        return F
    kept = independent_columns(integer_columns(span.tolist()))
    # a larger rank comes from rounded losses: the scores leave out what only rounding tells apart
    return span[:, kept] if len(kept) == space.rank else F


def _project(L: FloatArray, space: Structure, limit: int) -> tuple[FloatArray, FloatArray]:
    """F̃ (k, r) and U = E_c F̃_c L_c (r, m)."""
    embedding = space.orthonormal(limit=limit)
    weights = space.predictions.weights(limit=limit)
    return embedding, embedding.T @ (weights[:, None] * L)


def _is_constant_by_column(L: FloatArray, projected: FloatArray) -> bool:
    residual = L - projected
    spread = residual.max(axis=0) - residual.min(axis=0)
    return bool((spread <= 1e-9 * np.abs(L).max(axis=0)).all())


def _unit(values: FloatArray) -> float:
    """The power of two at or just below the largest magnitude; one if all are zero."""
    largest = float(np.abs(values).max(initial=0.0))
    return 2.0 ** (frexp(largest)[1] - 1) if largest > 0 else 1.0
