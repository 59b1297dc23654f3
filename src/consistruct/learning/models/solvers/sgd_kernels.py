"""The compiled loop: least-squares SGD on CSR inputs and a CSR statistic in O(non-zeros × width).

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
LANES = 16  # float32 numbers in the widest SIMD register


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
def fold_pairs(pairs: FloatArray, scale: float, averaged: float) -> None:
    """`fold` for V and U side by side, (m, 2, width)."""
    for row in range(pairs.shape[0]):
        for column in range(pairs.shape[2]):
            pairs[row, 1, column] -= averaged * pairs[row, 0, column]
            pairs[row, 0, column] *= scale


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
    """One epoch in place; returns Σ_i w_i ½‖θ_i − τ_i‖² before each update.

    The loop is bound by the traffic of V and U. It works on float32 copies of V and of this
    epoch's part of U, side by side and with rows of whole SIMD registers; what a step rounds away
    is far below what it jumps. Sums over epochs, the intercept and all scalars are float64.
    """
    size, width = V.shape
    padded = (width + LANES - 1) // LANES * LANES
    pairs = np.zeros((size, 2, padded), dtype=np.float32)  # V and this epoch's U
    for row in range(size):
        for column in range(width):
            pairs[row, 0, column] = V[row, column]
    residual = np.zeros((batch_size, padded), dtype=np.float32)
    scale, averaged, n_averaged = scalars[SCALE], scalars[AVERAGED_SCALE], scalars[N_AVERAGED]
    total = 0.0
    for start in range(0, len(order), batch_size):
        count = min(batch_size, len(order) - start)
        for b in range(count):
            row = order[start + b]
            r = residual[b]
            for column in range(padded):
                r[column] = 0.0
            for position in range(indptr[row], indptr[row + 1]):
                value = np.float32(data[position] * scale)
                v = pairs[indices[position], 0]
                for column in range(padded):
                    r[column] += value * v[column]
            for column in range(width):
                r[column] += intercept[column]
            for position in range(target_indptr[row], target_indptr[row + 1]):
                r[target_indices[position]] -= target_data[position]
            square = 0.0
            for column in range(width):
                square += r[column] * r[column]
            total += 0.5 * weight[row] * square
        scale *= 1.0 - step * alpha
        if scale < SMALLEST_SCALE:
            fold_pairs(pairs, scale, averaged)
            scale, averaged = 1.0, 0.0
        for b in range(count):
            row = order[start + b]
            r = residual[b]
            factor = -step * weight[row] / count
            for position in range(indptr[row], indptr[row + 1]):
                exact = factor * data[position] / scale
                change = np.float32(exact)
                v = pairs[indices[position], 0]
                if averaging:
                    lagged = np.float32(exact * averaged)
                    u = pairs[indices[position], 1]
                    for column in range(padded):
                        v[column] += change * r[column]
                        u[column] += lagged * r[column]
                else:
                    for column in range(padded):
                        v[column] += change * r[column]
            if fit_intercept:
                for column in range(width):
                    intercept[column] += factor * r[column]
        if averaging:
            averaged += scale
            n_averaged += 1.0
            for column in range(width):
                intercept_sum[column] += intercept[column]
    for row in range(size):
        for column in range(width):
            V[row, column] = pairs[row, 0, column]
            U[row, column] += pairs[row, 1, column]
    scalars[SCALE], scalars[AVERAGED_SCALE], scalars[N_AVERAGED] = scale, averaged, n_averaged
    return total
