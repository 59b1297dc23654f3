"""The calibration problem as plain data.

In a μ-orthonormal basis of the scores (rows F̃_c with E_c F̃_c F̃_cᵀ = I) the excess surrogate risk of
score parameters θ under the law q of the truth is ½‖θ + Uq‖², U = E_c F̃_c L_c. Write v = θ + Uq and
P = F̃U (the loss projected on the scores, equal to L up to constants where the scores express it).
The pair (i, j) asks for the cheapest v for which j is predicted though i is better by ε:

    H_ij(ε) = min ½‖v‖²   s.t.   ⟨F̃_c − F̃_j, v⟩ ≤ (P_c − P_j) q  for every predictable c ≠ j,
                                 (L_j − L_i) q ≥ ε,   q in the simplex.

H(ε) = min over i ≠ j in pred(F). That i be optimal need not be asked: if j is worse than *some* i
by ε, its excess task risk is at least ε. Without those constraints the dual has nothing to repair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consistruct.exceptions import TooManyLabelsError
from consistruct.labels.base import ENUMERATION_LIMIT
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.scores import Full, Orthonormalised
from consistruct.scores.base import BaseScoreSpace

__all__ = ["ExplicitProblem", "PairProblem", "explicit_problem"]


@dataclass(frozen=True, eq=False)
class ExplicitProblem:
    """Loss and scores over listed predictions; only predictable ones are kept.

    ``H = scaled value · exp(log_scale)``: with full scores the factor 1/k is kept apart.
    """

    loss: FloatArray  # (p, m) rows L_c of the predictable labels
    embedding: FloatArray  # (p, r) rows F̃_c
    targets: FloatArray  # (r, m) U
    labels: LabelArray  # (p,) index of each kept label
    expresses: bool  # whether P equals L up to a constant per column
    log_scale: float = 0.0

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
        kernel = self.embedding @ self.embedding.T
        leverage = np.diag(kernel)
        return np.maximum(leverage[:, None] + leverage[None, :] - 2 * kernel, 0.0)

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
    cell of truths; without one every cell has one member.
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

    def expand_law(self, q: FloatArray, n_columns: int) -> FloatArray:
        """q of the cells -> law over all truths, (n_columns,): uniform within a cell."""
        full = np.zeros(n_columns)
        for mass, cell in zip(q, self.column_cells, strict=True):
            full[cell] = mass / len(cell)
        return full

    def expand_multipliers(self, w: FloatArray, n_rows: int) -> FloatArray:
        """w of the cells -> one multiplier per row of the parent, (n_rows,)."""
        full = np.zeros(n_rows)
        for weight, cell in zip(w, self.row_cells, strict=True):
            full[cell] = weight / len(cell)
        return full


def explicit_problem(
    loss: Loss, space: BaseScoreSpace, *, limit: int = ENUMERATION_LIMIT
) -> ExplicitProblem:
    """List predictions and truths; raises TooManyLabelsError above `limit`."""
    size = loss.n_labels
    if size is None or size > limit:
        raise TooManyLabelsError(
            size, limit, f"the dense calibration problem of {loss!r}", "use a structured method"
        )
    L = loss.matrix(limit=limit)
    if isinstance(space, Full):
        weights = space.predictions.weights(limit=limit)
        uniform = space.measure == "uniform"
        root = np.ones(len(L)) if uniform else np.sqrt(weights)
        embedding = np.diag(1.0 / root)
        targets = root[:, None] * L
        log_scale = -float(np.log(len(L))) if uniform else 0.0
        return ExplicitProblem(L, embedding, targets, np.arange(len(L)), True, log_scale)
    basis = Orthonormalised(space)
    embedding = basis.matrix(limit=limit)
    weights = space.predictions.weights(limit=limit)
    targets = embedding.T @ (weights[:, None] * L)
    residual = L - embedding @ targets
    constant = residual - residual.mean(axis=0)
    expresses = bool(np.abs(constant).max() <= 1e-9 * max(1.0, float(L.max())))
    predictable = space.predictable()
    kept = np.arange(len(L)) if predictable.indices is None else predictable.indices
    return ExplicitProblem(L[kept], embedding[kept], targets, kept, expresses)
