"""One pair of distributions by an interior-point solver."""

from __future__ import annotations

import clarabel
import numpy as np
import scipy  # its submodules are imported on use

from consistruct.calibration.methods.nonquadratic.conic import solve_conic
from consistruct.calibration.methods.nonquadratic.divergence_proof import Divergence
from consistruct.protocols import FloatArray

__all__ = ["solve_pair"]


def solve_pair(
    divergence: Divergence,
    order: FloatArray,
    gap: FloatArray,
    eps: float,
    columns: np.ndarray,
    tight: bool,
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """q, p, w, ν from the interior-point solver; q on `columns`."""
    at_q = np.flatnonzero(columns)
    n_q, n_p, n_o = len(at_q), len(gap), len(order)
    kl = divergence == "KL"
    n = n_q + n_p + (n_q if kl else 0)
    rows = np.zeros((2, n))
    rows[0, :n_q] = 1.0
    rows[1, n_q : n_q + n_p] = 1.0
    inequalities = np.zeros((n_o + n_q + n_p + 1, n))
    # losses of any unit: rows are scaled, and their multipliers scaled back
    units = np.maximum(np.abs(order).max(axis=1, initial=0.0), 1e-300)
    unit = max(float(np.abs(gap).max()), 1e-300)
    inequalities[:n_o, n_q : n_q + n_p] = order / units[:, None]
    inequalities[n_o : n_o + n_q + n_p, : n_q + n_p] = -np.eye(n_q + n_p)
    right = np.zeros(n_o + n_q + n_p + 1)
    if not tight:
        inequalities[-1, :n_q] = -gap[at_q] / unit
        right[-1] = -eps / unit
    blocks: list[tuple[object, FloatArray, object]] = [
        (rows, np.ones(2), clarabel.ZeroConeT(2)),
        (inequalities, right, clarabel.NonnegativeConeT(len(right))),
    ]
    cost, quadratic = np.zeros(n), None
    place = np.arange(n_q)
    if kl:
        # q e^{−t/q} ≤ p  ⇔  q log(q/p) ≤ t
        cost[n_q + n_p :] = 1.0
        same = n_q + at_q  # p of the same true label
        places = (
            np.concatenate([3 * place, 3 * place + 1, 3 * place + 2]),
            np.concatenate([n_q + n_p + place, place, same]),
        )
        signs = np.repeat([1.0, -1.0, -1.0], n_q)
        cones = scipy.sparse.csc_array((signs, places), shape=(3 * n_q, n))
        exponential = [clarabel.ExponentialConeT() for _ in range(n_q)]
        blocks.append((cones, np.zeros(3 * n_q), exponential))
    else:
        difference = np.zeros((len(gap), n))
        difference[at_q, place] = 1.0
        difference[:, n_q:] = -np.eye(n_p)
        quadratic = np.triu(difference.T @ difference)
    found = solve_conic(cost, blocks, quadratic)
    x = found.x if found.finite else np.zeros(n)
    z = found.z if found.finite else np.zeros(2 + len(right))
    q, p = np.zeros(len(gap)), np.zeros(len(gap))
    q[at_q], p[:] = x[:n_q], x[n_q : n_q + n_p]
    # a row of zeros, of a label with the same losses, needs no multiplier
    w = np.where(np.abs(order).max(axis=1, initial=0.0) > 0, z[2 : 2 + n_o] / units, 0.0)
    return q, p, w, float(z[1 + len(right)]) / unit
