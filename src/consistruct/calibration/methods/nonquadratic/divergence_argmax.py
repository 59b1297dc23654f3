"""Log loss with argmax decoding: one multiplier per pair, no solver.

The distributions p with p_j ≥ p_c for all c are the mixtures of uniform distributions on sets S
that contain j. With the minimum over q taken (a log-partition function) and d = gap − ε,

    H_ij(ε) = max_{ν ≥ 0} −log max_S mean_S exp(ν d),

concave in ν; the best S for given ν takes the largest gaps. Dual point: X the largest mean, and
w_c = (exp(ν d_c)/X − 1)₊ for c in S.
"""

from __future__ import annotations

import numpy as np

from consistruct.calibration.methods.nonquadratic.pairs import distribution_with_gap
from consistruct.protocols import FloatArray, IntArray

__all__ = ["largest_mean", "tilted_argmax"]

BISECTIONS = 200
NEGLIGIBLE_LOG = 36.0  # e^−36 of a term is rounding


def largest_mean(values: FloatArray, j: int) -> tuple[float, IntArray]:
    """The largest mean over a set that contains j, and the smallest such set.

    >>> import numpy as np
    >>> largest_mean(np.array([0.0, 3.0, 1.0, 2.0]), 0)
    (1.6666666666666667, array([0, 1, 3]))
    """
    others = np.delete(np.arange(len(values)), j)
    others = others[np.argsort(-values[others], kind="stable")]
    ordered = np.append(j, others)
    means = np.cumsum(values[ordered]) / np.arange(1, len(values) + 1)
    size = int(np.argmax(means)) + 1
    return float(means[size - 1]), ordered[:size]


def tilted_argmax(
    gap: FloatArray,  # (m,) L_j − L_i
    j: int,
    eps: float,
) -> tuple[FloatArray, FloatArray, FloatArray, float, float]:
    """Distributions q and p, multipliers w (of e_c − e_j, c ≠ j) and ν, and X."""
    d = gap - eps

    def slope(nu: float) -> tuple[float, IntArray]:
        """d/dν of log mean_S exp(νd) at the best S."""
        tilted = np.exp(nu * (d - d.max()))
        chosen = largest_mean(tilted, j)[1]
        return float(tilted[chosen] @ d[chosen]), chosen

    low, high = 0.0, 1.0 / max(float(np.ptp(gap)), 1e-300)
    top = d.max()
    below = d[d < top]
    # at the largest ε only the true labels of largest gap remain: the multiplier that states it is
    # finite
    most = NEGLIGIBLE_LOG / max(float(top - below.max()), 1e-9) if len(below) else 0.0
    tight = eps >= gap.max() * (1 - 1e-12)
    if tight:
        low = high = most
    else:
        while slope(high)[0] < 0 and high < 1e12:
            high *= 2
    for _ in range(0 if tight else BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle)[0] < 0 else (low, middle)
        if high - low <= 1e-16 * high:
            break
    # p mixes the best sets on both sides of the kink so that the tilted distribution has gap·q = ε
    first, second = slope(low)[1], slope(high)[1]
    tilted = np.exp(high * (d - d.max()))
    one, other = np.zeros(len(gap)), np.zeros(len(gap))
    one[first], other[second] = 1 / len(first), 1 / len(second)
    pulls = float(one @ (tilted * d)), float(other @ (tilted * d))
    share = 1.0 if tight or pulls[0] == pulls[1] else pulls[1] / (pulls[1] - pulls[0])
    p = min(max(share, 0.0), 1.0) * one + (1 - min(max(share, 0.0), 1.0)) * other
    p[j] = p.max()
    p /= p.sum()
    q = distribution_with_gap(np.where(d == top, p, 0.0) if tight else p * tilted, gap, eps, p > 0)
    X = largest_mean(np.exp(np.minimum(high * d, 700.0)), j)[0]
    w = np.maximum(np.exp(np.minimum(high * d, 700.0)) / X - 1.0, 0.0)
    return q, p, np.delete(w, j), high, X
