"""Check a curve from its own data: no solver is called, and no tolerance is granted.

Upper ends are recomputed over the integers. Lower ends are recomputed in floats, each moved to the
safe side of its rounding errors; the few that this leaves open go to the integers too.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_loss_matrix
from consistruct.calibration.methods.explicit_full._dual import DualPoints, lower_bounds
from consistruct.calibration.methods.explicit_full._exact import IntegerLosses
from consistruct.calibration.methods.explicit_full.curve import ExplicitCurve
from consistruct.certificates.listed import Problem, bound
from consistruct.exceptions import CertificateError
from consistruct.protocols import FloatArray

__all__ = ["verify"]


def verify(
    L: ArrayLike,  # (k, m)
    curve: ExplicitCurve,
) -> None:
    """Raise `CertificateError` unless the curve proves every value it claims.

    Lower ends: for every ordered pair and every ε the pair is infeasible (max_y(L_jy − L_iy) < ε),
    or Theorem 7's line or a stored dual point puts it above `scaled_lower`. Upper ends: q ≥ 0,
    (Lq)_j − (Lq)_i ≥ ε Σq, and the scores of `levels` have a value of at most `scaled_upper`.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from consistruct.calibration.methods.explicit_full import explicit_curve
    >>> L = [[0, 1, 2], [2, 0, 1], [3, 3, 0]]
    >>> curve = explicit_curve(L, [0.5, 2.0])
    >>> verify(L, curve)
    >>> verify(L, replace(curve, scaled_lower=1.01 * curve.scaled_upper))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    consistruct...CertificateError: a lower end is above its upper end
    """
    losses = check_loss_matrix(L, "L")
    k, m = losses.shape
    n = curve.eps.size
    fits = (
        curve.levels.shape == (n,)
        and curve.distributions.shape == (n, m)
        and curve.pair.shape == (n, 2)
    )
    if not fits or curve.scaled_lower.shape != (n,) or curve.scaled_upper.shape != (n,):
        raise CertificateError(
            f"the curve has distributions of shape {curve.distributions.shape}, which do not fit "
            f"{n} values "
            f"of eps "
            f"and L of shape {losses.shape}"
        )
    if curve.weights.shape != (k,) or not (curve.weights > 0).all():
        raise CertificateError("the reference weights must be positive, one per prediction")
    numbers = (curve.eps, curve.distributions, curve.levels, curve.weights, curve.points.nu)
    if not all(np.isfinite(values).all() for values in (*numbers, curve.points.weights)):
        raise CertificateError("the curve has a number that is not finite")
    exact = IntegerLosses(losses, curve.weights)
    if curve.max_eps != exact.max_eps:
        raise CertificateError(f"max_eps is {exact.max_eps}, the curve states {curve.max_eps}")
    for position in range(n):
        _verify_upper(exact, curve, position)
    _verify_lower(losses, curve)


def _verify_upper(exact: IntegerLosses, curve: ExplicitCurve, position: int) -> None:
    eps = float(curve.eps[position])
    upper = float(curve.scaled_upper[position])
    at = f"at eps = {eps}"
    if eps == 0 or upper == np.inf:
        if eps > 0 or upper != 0:  # H(0) = 0 and H = +inf need no point
            _require(eps > curve.max_eps, f"the upper end is {upper} {at}: it needs a primal point")
        return
    i, j = (int(label) for label in curve.pair[position])
    k = exact.n_labels
    _require(0 <= i < k and 0 <= j < k and i != j, f"({i}, {j}) is no pair of predictions {at}")
    q = curve.distributions[position]
    _require(bool((q >= 0).all() and q.any()), f"q is no probability distribution {at}")
    gap = [column[j] - column[i] for column in exact.columns]
    excess = sum(
        (Fraction(float(q[y])) * (gap[y] - Fraction(eps) * exact.unit) for y in np.flatnonzero(q)),
        Fraction(0),
    )
    _require(excess >= 0, f"q does not give the pair ({i}, {j}) an excess of eps {at}")
    value = exact.value(q, j, float(curve.levels[position]))
    _require(
        not np.isnan(upper) and value <= upper,
        f"the primal point has the value {float(value)}, not {upper} {at}",
    )


def _verify_lower(L: FloatArray, curve: ExplicitCurve) -> None:
    positive = curve.eps > 0
    _require(bool((curve.scaled_lower[~positive] == 0).all()), "the lower end must be 0 at eps = 0")
    ordered = bool((curve.scaled_lower <= curve.scaled_upper).all())
    _require(ordered, "a lower end is above its upper end")
    _check_points(curve.points, len(L))
    claimed = curve.scaled_lower[positive]
    eps = curve.eps[positive]
    problem: Problem | None = None
    for j, bounds in lower_bounds(L, curve.weights, eps, curve.points):
        for i, at in np.argwhere(bounds < claimed).tolist():
            if problem is None:
                problem = Problem(L.tolist(), None, curve.weights.tolist())
            found = _exact_bound(problem, curve.points, i, j, Fraction(float(eps[at])))
            if found is not None and found < Fraction(float(claimed[at])):
                raise CertificateError(
                    f"pair ({i}, {j}) is bounded below by {float(found)} only at "
                    f"eps = {eps[at]}, the curve claims {claimed[at]}"
                )
    finite = np.isfinite(curve.scaled_upper)
    width = np.subtract(
        curve.scaled_upper, curve.scaled_lower, where=finite, out=np.zeros_like(curve.eps)
    )
    for position in np.flatnonzero(finite & (width > curve.tolerance * curve.scaled_upper)):
        _require(
            curve.status[position] == "loose",
            f"the interval at eps = {curve.eps[position]} is wider than the tolerance, "
            f"but its status is {curve.status[position]!r}",
        )


def _check_points(points: DualPoints, k: int) -> None:
    inside = all(((x >= 0) & (x < k)).all() for x in (points.i, points.j, points.rows))
    _require(inside, "a dual point is about a label that does not exist")
    good = (points.nu >= 0).all() and (points.weights >= 0).all()
    _require(bool(good), "a dual point must be non-negative: w >= 0 and nu >= 0")


def _exact_bound(
    problem: Problem, points: DualPoints, i: int, j: int, eps: Fraction
) -> Fraction | None:
    """The best bound on k·H_ij over the integers; the problem has the weights k·μ as measure."""
    one = Fraction(1)
    if max(problem.gap(i, j)) < eps * problem.unit:
        return None
    best = bound(problem, i, j, {i: one}, one, eps)
    for t in points.of_pair(i, j).tolist():
        part = slice(points.indptr[t], points.indptr[t + 1])
        weights = map(Fraction, points.weights[part].tolist())
        w = dict(zip(points.rows[part].tolist(), weights, strict=True))
        found = bound(problem, i, j, w, Fraction(float(points.nu[t])), eps)
        if best is None or found is None:
            return None
        best = max(best, found)
    return best


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise CertificateError(message)
