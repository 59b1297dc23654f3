"""Approximation error of explicit problems, by linear programming."""

from __future__ import annotations

import numpy as np

from consistruct.calibration.lp import minimize
from consistruct.protocols import FloatArray

__all__ = ["approximation_error"]


def approximation_error(all_rows: FloatArray, predictable_rows: FloatArray) -> float:
    """sup over q of [min over predictable c of ℓ_c] − [min over all c of ℓ_c].

    One linear program for each label a that cannot be predicted: max t − ℓ_a with t ≤ ℓ_c.
    """
    n_true_labels = all_rows.shape[1]
    kept = {row.tobytes() for row in predictable_rows}
    candidates = [row for row in np.unique(all_rows, axis=0) if row.tobytes() not in kept]
    best = 0.0
    for row in candidates:
        if ((predictable_rows - row).max(axis=1) <= best).any():
            continue  # some predictable label is never worse by more than what is known already
        found = minimize(
            np.append(row, -1.0),
            A_ub=np.column_stack([-predictable_rows, np.ones(len(predictable_rows))]),
            b_ub=np.zeros(len(predictable_rows)),
            A_eq=np.append(np.ones(n_true_labels), 0.0)[None],
            b_eq=np.ones(1),
            bounds=[(0.0, None)] * n_true_labels + [(None, None)],
        )
        best = max(best, -found.value)
    return best
