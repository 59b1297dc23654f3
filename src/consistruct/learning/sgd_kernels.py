"""The compiled loop: least-squares SGD on CSR inputs and CSR targets in O(non-zeros × width).

Weights are W = s·V with one scalar s, so the penalty's decay costs O(1) a step. The average of the
iterates is kept lazily: with c_t = Σ_{τ≤t} s_τ over the averaged steps and δ_t the change of V,

    Σ_t W_t = Σ_t s_t V_t = c_T V_T − Σ_t c_{t−1} δ_t,

so a second matrix U = Σ_t c_{t−1} δ_t with the same sparse updates is all that is needed. When s
gets small, `fold` puts it into V and the sum so far into U, before digits are lost.
"""

from __future__ import annotations

import numpy as np

from consistruct._compile import compiled
from consistruct.protocols import FloatArray, IntArray

__all__ = ["fold", "sparse_epoch"]

# positions in the array of scalars
SCALE, AVERAGED_SCALE, N_AVERAGED = 0, 1, 2
SMALLEST_SCALE = 1e-2


@compiled
def fold(V: FloatArray, U: FloatArray, scalars: FloatArray) -> None:
    """s -> 1 and c -> 0 without changing W = s·V or the sum c·V − U."""
    scale, averaged = scalars[SCALE], scalars[AVERAGED_SCALE]
    for row in range(V.shape[0]):
        for column in range(V.shape[1]):
            U[row, column] -= averaged * V[row, column]
            V[row, column] *= scale
    scalars[SCALE] = 1.0
    scalars[AVERAGED_SCALE] = 0.0


@compiled
def sparse_epoch(
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    target_indptr: IntArray,
    target_indices: IntArray,
    target_data: FloatArray,
    weight: FloatArray,  # (n,), mean one
    order: IntArray,  # rows in the order of this epoch
    V: FloatArray,  # (m, width)
    U: FloatArray,  # (m, width)
    intercept: FloatArray,  # (width,)
    intercept_sum: FloatArray,  # (width,)
    scalars: FloatArray,  # (3,)
    step: float,
    alpha: float,
    batch_size: int,
    fit_intercept: bool,
    averaging: bool,
) -> float:
    """One epoch in place; returns Σ_i w_i ½‖θ_i + u_i‖² before each update."""
    width = V.shape[1]
    residual = np.empty((batch_size, width))
    total = 0.0
    for start in range(0, len(order), batch_size):
        stop = min(start + batch_size, len(order))
        size = stop - start
        scale = scalars[SCALE]
        for b in range(size):
            row = order[start + b]
            r = residual[b]
            r[:] = 0.0
            for position in range(indptr[row], indptr[row + 1]):
                value = data[position] * scale
                v = V[indices[position]]
                for column in range(width):
                    r[column] += value * v[column]
            for column in range(width):
                r[column] += intercept[column]
            for position in range(target_indptr[row], target_indptr[row + 1]):
                r[target_indices[position]] += target_data[position]
            square = 0.0
            for column in range(width):
                square += r[column] * r[column]
            total += 0.5 * weight[row] * square
        scale *= 1.0 - step * alpha
        scalars[SCALE] = scale
        if scale < SMALLEST_SCALE:
            fold(V, U, scalars)
            scale = 1.0
        averaged = scalars[AVERAGED_SCALE]
        for b in range(size):
            row = order[start + b]
            r = residual[b]
            factor = -step * weight[row] / size
            for position in range(indptr[row], indptr[row + 1]):
                change = factor * data[position] / scale
                v = V[indices[position]]
                if averaging:
                    u = U[indices[position]]
                    lagged = change * averaged
                    for column in range(width):
                        v[column] += change * r[column]
                        u[column] += lagged * r[column]
                else:
                    for column in range(width):
                        v[column] += change * r[column]
            if fit_intercept:
                for column in range(width):
                    intercept[column] += factor * r[column]
        if averaging:
            scalars[AVERAGED_SCALE] += scale
            scalars[N_AVERAGED] += 1.0
            for column in range(width):
                intercept_sum[column] += intercept[column]
    return total
