"""Check a curve from its certificate alone, in plain NumPy: no solver is trusted or called."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_loss_matrix
from consistruct.calibration.explicit._dual import lower_bounds
from consistruct.calibration.explicit.curve import ExplicitCurve
from consistruct.exceptions import CertificateError
from consistruct.protocols import FloatArray

__all__ = ["verify"]

ROUNDING = 1e-12  # relative; what sums of a few hundred products may lose


def verify(
    L: ArrayLike,  # (k, m)
    curve: ExplicitCurve,
) -> None:
    """Raise `CertificateError` unless the certificate proves every value of the curve.

    Lower ends: for every ordered pair and every ε the pair is infeasible (max_y(L_jy − L_iy) < ε),
    or Theorem 7's line or a stored dual point puts it above `scaled_lower`. Upper ends: q is a law,
    (Lq)_j − (Lq)_i ≥ ε, f_j ≥ f_c for all c, and ½ Σ p_c (f_c + (Lq)_c)² is `scaled_upper`.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from consistruct.calibration.explicit import explicit_curve
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
    if curve.scores.shape != (curve.eps.size, k) or curve.laws.shape != (curve.eps.size, m):
        raise CertificateError(
            f"the curve has scores of shape {curve.scores.shape} and laws of shape "
            f"{curve.laws.shape}, which do not fit L of shape {losses.shape}"
        )
    if curve.weights.shape != (k,) or not (curve.weights > 0).all():
        raise CertificateError("the reference weights must be positive, one per prediction")
    max_eps = float((losses.max(axis=0) - losses.min(axis=0)).max())
    if curve.max_eps != max_eps:
        raise CertificateError(f"max_eps is {max_eps}, the curve says {curve.max_eps}")
    for position in range(curve.eps.size):
        _verify_upper(losses, curve, position)
    _verify_lower(losses, curve)


def _verify_upper(L: FloatArray, curve: ExplicitCurve, position: int) -> None:
    eps = curve.eps[position]
    upper = curve.scaled_upper[position]
    at = f"at eps = {eps}"
    if eps == 0 or upper == np.inf:
        if eps > 0 or upper != 0:  # H(0) = 0 and H = +inf need no point
            _require(eps > curve.max_eps, f"the upper end is {upper} {at}: it needs a primal point")
        return
    i, j = (int(label) for label in curve.pair[position])
    k = L.shape[0]
    _require(0 <= i < k and 0 <= j < k and i != j, f"({i}, {j}) is no pair of predictions {at}")
    q = curve.laws[position]
    f = curve.scores[position]
    _require((q >= 0).all() and abs(q.sum() - 1) <= ROUNDING, f"q is no probability vector {at}")
    difference = (L[j] - L[i]) @ q
    _require(
        difference >= eps - ROUNDING * curve.max_eps,
        f"q gives the pair ({i}, {j}) an excess of {difference} only {at}",
    )
    _require((f <= f[j]).all(), f"prediction {j} has not the largest score {at}")
    residual = np.abs(f + L @ q)
    value = 0.5 * (curve.weights * residual**2).sum()
    rounding = (L.shape[1] + 8) * np.finfo(np.float64).eps * np.abs(L).max()
    _require(
        abs(value - upper) <= ROUNDING * upper + rounding * (curve.weights * residual).sum(),
        f"the primal point has the value {value}, not {upper} {at}",
    )


def _verify_lower(L: FloatArray, curve: ExplicitCurve) -> None:
    positive = curve.eps > 0
    _require((curve.scaled_lower[~positive] == 0).all(), "the lower end must be 0 at eps = 0")
    _require((curve.scaled_lower <= curve.scaled_upper).all(), "a lower end is above its upper end")
    claimed = curve.scaled_lower[positive]
    eps = curve.eps[positive]
    for j, bounds in lower_bounds(L, curve.weights, eps, curve.points):
        if (bounds < claimed).any():
            i, at = np.argwhere(bounds < claimed)[0]
            raise CertificateError(
                f"pair ({i}, {j}) is bounded below by {bounds[i, at]} only at "
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


def _require(condition: bool | np.bool_, message: str) -> None:
    if not condition:
        raise CertificateError(message)
