"""The certified curve of an explicit loss matrix with full scores: result and entry point."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import (
    check_count,
    check_loss_matrix,
    check_measure,
    check_number,
)
from consistruct.calibration.methods.explicit_full._dual import (
    DualPoints,
    lower_bounds,
)
from consistruct.calibration.methods.explicit_full._exact import IntegerLosses
from consistruct.calibration.methods.explicit_full._search import Search
from consistruct.calibration.proofs.base import up
from consistruct.protocols import FloatArray, IntArray

__all__ = ["ExplicitCurve", "explicit_curve"]

SMALLEST_UNIT = 1e-140  # squares of loss differences and their sums stay normal floats


@dataclass(frozen=True)
class ExplicitCurve:
    """k·H(ε) between two certified ends, with everything that proves them.

    Attributes
    ----------
    eps : (n,) the values of ε, in the order given.
    scaled_lower, scaled_upper : (n,) ends of k·H(ε); +inf above `max_eps`, 0 at ε = 0.
    pair : (n, 2) minimizing pair (i, j): j is predicted although i is better by ε; −1 where the
        value is infinite or ε = 0.
    status : (n,) "certified" where upper − lower ≤ tolerance · upper, else "loose".
    max_eps : largest ε at which H is finite.
    tolerance : the relative width that was requested.
    weights : (k,) reference weights p_c = k·μ_c; ones for the uniform measure.
    distributions : (n, m) the conditional distribution of the primal point up to a factor; zero
    rows where
        there is none. (Lq)_j − (Lq)_i ≥ ε holds exactly, not up to rounding.
    levels : (n,) the score t of j; other labels have f_c = min(−(Lq)_c, t). `scaled_upper` is
        ½ Σ_c p_c (f_c + (Lq)_c)², evaluated exactly and rounded up.
    points : dual points of all pairs that Theorem 7 does not decide; each bounds its pair for
        every ε, so that together they prove `scaled_lower` (see `verify`).
    """

    eps: FloatArray
    scaled_lower: FloatArray
    scaled_upper: FloatArray
    pair: IntArray
    status: tuple[str, ...]
    max_eps: float
    tolerance: float
    weights: FloatArray
    distributions: FloatArray
    levels: FloatArray
    points: DualPoints


def explicit_curve(
    L: ArrayLike,  # (k, m)
    eps: ArrayLike,  # (n,)
    *,
    mu: ArrayLike | None = None,  # (k,)
    tolerance: float = 1e-6,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> ExplicitCurve:
    """Calibration function of the quadratic surrogate with full scores, for any loss matrix.

    H(ε) = min over ordered pairs i ≠ j of H'_ij(ε), the least ½ Σ_c μ_c (f_c + (Lq)_c)² over
    distributions q on true labels and scores f with f_j ≥ f_c for all c and (Lq)_j − (Lq)_i ≥ ε.
    (That i be optimal need not be required: an excess of ε over any i is an excess of ε.)

    Parameters
    ----------
    L : (k, m) losses, rows are predictions, columns are true labels; finite and non-negative.
    eps : (n,) non-negative values, in any order.
    mu : (k,) positive reference weights on predictions; uniform by default.
    tolerance : relative width of [lower, upper] to reach; values that miss it have status "loose".
    jobs : number of threads. The result depends on it only within the certified width.
    progress : called as progress(done, total) over the values of ε.

    Returns
    -------
    ExplicitCurve
        k·H, not H: the factor 1/k is left out. Prove it again with `verify(L, curve)`.

    Notes
    -----
    Time is dominated by the pairs that Theorem 7 does not decide: each is solved a few times, not
    once per ε. Memory: about 350 k² bytes for bounds and short distributions of the pairs, and 16
    bytes for each non-zero of the dual points found.

    Examples
    --------
    The 0-1 loss has H(ε) = ε²/4k.

    >>> import numpy as np
    >>> curve = explicit_curve(1 - np.eye(5), [0.2, 1.0, 1.1])
    >>> curve.scaled_upper.round(9)
    array([0.01, 0.25,  inf])
    >>> curve.status
    ('certified', 'certified', 'certified')
    """
    losses = np.ascontiguousarray(check_loss_matrix(L, "L"))
    values = check_eps(eps)
    tolerance = check_number(tolerance, "tolerance", low=1e-12, high=1.0)
    jobs = check_count(jobs, "jobs")
    k, m = losses.shape
    p = np.ones(k) if mu is None else k * check_measure(mu, k)
    exact = IntegerLosses(losses, p)
    max_eps = exact.max_eps

    # A power of two is exact: the search works on losses of order one, whatever their unit.
    unit = math.ldexp(1.0, math.frexp(max_eps)[1] - 1) if max_eps > 0 else 1.0
    if not SMALLEST_UNIT <= unit <= 1 / SMALLEST_UNIT:
        raise ValueError(
            f"the largest loss difference within a column of L is {max_eps}, whose square is not "
            f"a normal float; multiply L and eps by a constant"
        )
    inside = (values > 0) & (values <= max_eps)
    search = Search(losses / unit, p, tolerance, jobs)
    found = search.run(np.unique(values[inside] / unit), progress)
    points = search.needed_points()

    lower = np.where(values > max_eps, np.inf, 0.0)
    upper = lower.copy()
    pair = np.full((values.size, 2), -1, dtype=np.int64)
    distributions = np.zeros((values.size, m))
    levels = np.zeros(values.size)
    for position in np.flatnonzero(inside):
        point = found[float(values[position] / unit)]
        i, j = divmod(point.pair, k)
        distribution = np.zeros(m)
        distribution[point.columns] = point.distribution
        feasible = exact.feasible(distribution, i, j, float(values[position]))
        if feasible is None:  # max_y (L_j − L_i)_y is ε after rounding, and less before
            i, j, y = exact.widest
            feasible = np.zeros(m)
            feasible[y] = 1.0
        distributions[position] = feasible
        expected = losses @ feasible / feasible.sum()
        levels[position] = best_level(expected, p, j)
        upper[position] = up(exact.value(feasible, j, float(levels[position])))
        pair[position] = i, j
    if inside.any():
        proved = np.full(int(inside.sum()), np.inf)
        for _, bounds in lower_bounds(losses, p, values[inside], points):
            np.minimum(proved, bounds.min(axis=0), out=proved)
        lower[inside] = np.minimum(proved, upper[inside])
    with np.errstate(invalid="ignore"):
        tight = (lower == upper) | (upper - lower <= tolerance * upper)
    return ExplicitCurve(
        eps=values,
        scaled_lower=lower,
        scaled_upper=upper,
        pair=pair,
        status=tuple("certified" if good else "loose" for good in tight),
        max_eps=max_eps,
        tolerance=tolerance,
        weights=p,
        distributions=distributions,
        levels=levels,
        points=points,
    )


def check_eps(eps: ArrayLike) -> FloatArray:
    """Return ε as a one-dimensional float array, finite and non-negative."""
    values = np.asarray(eps)
    if values.dtype.kind not in "iuf":
        raise TypeError(f"eps must contain numbers, got dtype {values.dtype}")
    values = values.astype(np.float64)
    if values.ndim != 1:
        raise ValueError(f"eps must be one-dimensional, got shape {values.shape}")
    if not np.isfinite(values).all() or (values < 0).any():
        bad = values[~(np.isfinite(values) & (values >= 0))][0]
        raise ValueError(f"eps must be finite and non-negative, got {bad}")
    return values


def best_level(
    expected: FloatArray,  # (k,)
    p: FloatArray,  # (k,)
    j: int,
) -> float:
    """The score t of j that minimizes ½ [p_j (t + ℓ_j)² + Σ_{c≠j} p_c (t + ℓ_c)₋²], ℓ = `expected`.

    Any t is feasible, with f_c = min(−ℓ_c, t); rounding costs its square.
    """
    others = np.delete(np.arange(expected.size), j)
    # Stationary: p_j (t + ℓ_j) = Σ over ℓ_c < −t of p_c (−t − ℓ_c); the c come in order of ℓ.
    others = others[np.argsort(expected[others], kind="stable")]
    weight = p[j] + np.concatenate([[0.0], np.cumsum(p[others])])
    total = p[j] * expected[j] + np.concatenate([[0.0], np.cumsum(p[others] * expected[others])])
    thresholds = total / weight  # −t if exactly the first 0, 1, … of them are active
    following = np.concatenate([expected[others], [np.inf]])
    return -float(thresholds[int(np.flatnonzero(thresholds <= following)[0])])
