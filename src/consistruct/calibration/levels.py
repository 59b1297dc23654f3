"""Consistency level and approximation error of explicit problems, by linear programming."""

from __future__ import annotations

import numpy as np

from consistruct.calibration.lp import minimise, simplex_row
from consistruct.calibration.problem import ExplicitProblem
from consistruct.protocols import FloatArray

__all__ = ["approximation_error", "consistency_level"]

MULTIPLIERS = (0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0)
NO_LEVEL = 1e-9  # rounding errors of the linear programs, for losses near one


def consistency_level(problem: ExplicitProblem) -> tuple[float, tuple[int, int] | None, FloatArray]:
    """sup{ε : H(ε) = 0}, the pair of rows (i, j) and the law q that attain it.

    H vanishes iff v = 0 is feasible: the best scores −Pq themselves make j win. So the level is the
    largest (L_j − L_i)q over laws with (P_c − P_j)q ≥ 0 for all c. It is 0 where the scores express
    the loss, because then j is optimal.
    """
    n_truths = problem.loss.shape[1]
    best, pair, law = 0.0, None, np.full(n_truths, 1.0 / n_truths)
    if problem.expresses or problem.n_rows < 2:
        return best, pair, law
    limits = _level_limits(problem)
    A_eq, b_eq = simplex_row(n_truths)
    # the pairs with most to lose first: the rest is pruned by their limits
    for flat in np.argsort(-limits, axis=None).tolist():
        i, j = divmod(flat, problem.n_rows)
        if limits[i, j] <= max(best, NO_LEVEL):
            break
        order = problem.projected[j] - np.delete(problem.projected, j, axis=0)  # ≤ 0 where j wins
        found = minimise(
            problem.loss[i] - problem.loss[j],
            A_ub=order,
            b_ub=np.zeros(len(order)),
            A_eq=A_eq,
            b_eq=b_eq,
        )
        if found.feasible and -found.value > max(best, NO_LEVEL):
            best, pair, law = -found.value, (i, j), found.x
    return best, pair, law


def _level_limits(problem: ExplicitProblem) -> FloatArray:
    """(p, p): at [i, j] a bound on what the linear program of the pair can find.

    Of its constraints only (P_i − P_j)q ≥ 0 is kept. By duality the rest is at most
    max_y [(L_j − L_i) + μ(P_i − P_j)]_y for every μ ≥ 0; μ = 1 leaves the part of the loss that the
    scores do not express.
    """
    best = np.full((problem.n_rows, problem.n_rows), np.inf)
    for multiplier in MULTIPLIERS:
        mixed = problem.loss - multiplier * problem.projected
        best = np.minimum(best, np.stack([(mixed - row).max(axis=1) for row in mixed]))
    return best


def approximation_error(all_rows: FloatArray, predictable_rows: FloatArray) -> float:
    """sup over q of [min over predictable c of ℓ_c] − [min over all c of ℓ_c].

    One linear program for each label a that cannot be predicted: max t − ℓ_a with t ≤ ℓ_c.
    """
    n_truths = all_rows.shape[1]
    kept = {row.tobytes() for row in predictable_rows}
    candidates = [row for row in np.unique(all_rows, axis=0) if row.tobytes() not in kept]
    best = 0.0
    for row in candidates:
        if ((predictable_rows - row).max(axis=1) <= best).any():
            continue  # some predictable label is never worse by more than what is known already
        found = minimise(
            np.append(row, -1.0),
            A_ub=np.column_stack([-predictable_rows, np.ones(len(predictable_rows))]),
            b_ub=np.zeros(len(predictable_rows)),
            A_eq=np.append(np.ones(n_truths), 0.0)[None],
            b_eq=np.ones(1),
            bounds=[(0.0, None)] * n_truths + [(None, None)],
        )
        best = max(best, -found.value)
    return best
