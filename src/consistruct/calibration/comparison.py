"""Curves of different surrogates on one scale.

H is measured in units of the surrogate: twice the surrogate has twice the H. What does not depend
on units, nor on how scores are parametrized, is H against the noise of estimation. Take the uniform
distribution u of the true label and let q̂ be the frequencies in n draws from it. Acting on q̂
costs, in expected surrogate excess and to first order in 1/n, S/n with

    S = ½ tr(∇²Ω(u) Cov(u)),    Cov(u) = diag(u) − uuᵀ,

Ω(q) = −(least expected surrogate under q): its curvature at the uninformative distribution. Then

    n(ε) = S / H(ε)

is the number of draws after which this cost is down to H(ε), the level that guarantees an excess
task risk below ε; the scale-free curve is H/S = 1/n. It compares worst-case calibration per draw at
the least informative distribution. It states nothing of approximation by a score model, of
optimization, or of distributions that are less noisy than the uniform one.

| surrogate | S |
|---|---|
| log | (m − 1)/2, half the degrees of freedom (Wilks); T parts of s states: T(s − 1)/2 |
| sparsemax | (m − 1)/2m |
| (a, b) | (1/2k) Σ_c G''(ℓ_c) Var_u L(c, y), ℓ_c the mean of row c |
| quadratic | ½ Var_u of the targets in the metric of the scores |
| linear regret | (1/2κ) Σ_c Var_u L(c, y); labels tied under u cost nothing, others are rare |
| hinge, max-min margin | none: Ω has kinks, the cost does not fall like 1/n |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from consistruct.calibration.curve import CalibrationFunction, CurvePoint
from consistruct.calibration.engine import calibration_function
from consistruct.calibration.methods.nonquadratic.ab import ABFamily
from consistruct.calibration.plotting import finite_numbers
from consistruct.calibration.problem.listed import explicit_problem
from consistruct.charts.model import Chart, Numbers, Series
from consistruct.losses.base import Loss, as_loss
from consistruct.structures import Structure
from consistruct.structures.base import ENUMERATION_LIMIT
from consistruct.surrogates import (
    ABSurrogate,
    BaseSurrogate,
    DistributionSurrogate,
    LinearRegretSurrogate,
    make_surrogate,
)
from consistruct.surrogates.registry import SurrogateLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SurrogateComparison", "SurrogateCurve", "compare_surrogates", "noise_scale"]

Choice = SurrogateLike | tuple[SurrogateLike, str]


@dataclass(frozen=True, eq=False)
class SurrogateCurve:
    """One surrogate of a comparison.

    Attributes
    ----------
    noise_log : float or None
        log S; None where the surrogate has no curvature at the uniform distribution.
    """

    name: str
    function: CalibrationFunction
    points: tuple[CurvePoint, ...]
    noise_log: float | None

    @property
    def draws(self) -> list[tuple[float, float] | None]:
        """Bounds on n(ε) = S/H(ε) at each ε, from the bounds on H; inf where H may be 0."""
        if self.noise_log is None:
            return [None] * len(self.points)
        return [
            (_exp(self.noise_log - point.log_upper), _exp(self.noise_log - point.log_lower))
            for point in self.points
        ]

    @property
    def scale_free(self) -> list[tuple[float, float] | None]:
        """Bounds on H(ε)/S."""
        if self.noise_log is None:
            return [None] * len(self.points)
        return [
            (_exp(point.log_lower - self.noise_log), _exp(point.log_upper - self.noise_log))
            for point in self.points
        ]


@dataclass(frozen=True, eq=False)
class SurrogateComparison:
    """Calibration functions of several surrogates for one loss, at the same ε."""

    loss: Loss
    eps: tuple[float, ...]
    curves: tuple[SurrogateCurve, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per surrogate and ε: what a data frame takes."""
        return [
            {
                "surrogate": curve.name,
                "eps": point.eps,
                "lower": point.lower,
                "upper": point.upper,
                "status": point.status,
                "consistency_level": curve.function.consistency_level,
                "draws_least": None if draws is None else draws[0],
                "draws_most": None if draws is None else draws[1],
            }
            for curve in self.curves
            for point, draws in zip(curve.points, curve.draws, strict=True)
        ]

    def plot(self, ax: Axes | None = None, *, scale_free: bool = True) -> Axes:
        """All surrogates on one axis: H/S, or H itself with `scale_free=False`.

        Surrogates without S, and bounds that are infinite, are left out of the scale-free plot; the
        legend states it.
        """
        from consistruct.charts.pictures import draw_chart

        return draw_chart(self.chart(scale_free=scale_free), ax)

    def chart(self, *, scale_free: bool = True) -> Chart:
        """What `plot` draws: a line and a band for each surrogate."""
        eps = finite_numbers(self.eps)
        gap: Numbers = (None,) * len(eps)
        series = []
        for style, curve in enumerate(self.curves):
            if scale_free and curve.noise_log is None:
                name = f"{curve.name} (no scale-free figure)"
                series.append(Series(name, eps, gap, style=style))
                continue
            bounds = (
                [pair for pair in curve.scale_free if pair is not None]
                if scale_free
                else [(point.lower, point.upper) for point in curve.points]
            )
            lower, upper = (finite_numbers(ends) for ends in zip(*bounds, strict=True))
            series.append(Series("", eps, lower, "band", upper=upper, style=style))
            series.append(Series(curve.name, eps, lower, style=style))
        unit = "H(ε)/S = 1/n(ε), scale-free" if scale_free else "H(ε), surrogate's own unit"
        return Chart(
            key="surrogates",
            title="Surrogates compared",
            caption="",
            x_label="ε, excess task risk",
            y_label=unit,
            series=tuple(series),
        )


def compare_surrogates(
    loss: Loss | str,
    surrogates: Sequence[Choice] = ("quadratic", "logistic", ("log", "bayes")),
    eps: ArrayLike | None = None,
    *,
    scores: Any = None,
) -> SurrogateComparison:
    """Calibration functions of several surrogates, and the scale-free figure n(ε) = S/H(ε).

    Parameters
    ----------
    loss : Loss or spec
    surrogates : sequence
        Names, surrogate classes, or pairs (surrogate, decoding).
    eps : array, optional
        Where to compare; ten values up to the largest excess risk if not given.
    scores : None, "full", ScoreSpace or array
        For all of them; None gives each what it is trained with.

    Examples
    --------
    >>> from consistruct.calibration import compare_surrogates
    >>> from consistruct.losses import ZeroOne
    >>> found = compare_surrogates(ZeroOne(10), ("quadratic", "logistic", "log"), eps=[0.5])
    >>> [(curve.name, round(curve.draws[0][1], 1)) for curve in found.curves]
    [('quadratic', 7.2), ('logistic', 19.1), ('log', 34.4)]
    """
    loss = as_loss(loss)
    if not surrogates:
        raise ValueError("surrogates must name at least one surrogate, got none")
    functions: list[tuple[str, SurrogateLike, CalibrationFunction]] = []
    for choice in surrogates:
        surrogate, decoding = choice if isinstance(choice, tuple) else (choice, "argmax")
        function = calibration_function(loss, scores, surrogate, decoding)
        name = function.surrogate + (", Bayes decoding" if decoding == "bayes" else "")
        functions.append((name, surrogate, function))
    if eps is None:
        values = np.linspace(0.0, functions[0][2].max_eps, 11)[1:]
    else:
        values = np.atleast_1d(np.asarray(eps, dtype=np.float64)).ravel()
    curves = tuple(
        SurrogateCurve(name, function, tuple(function.curve(values)), noise_scale(function, which))
        for name, which, function in functions
    )
    return SurrogateComparison(loss, tuple(values.tolist()), curves)


def noise_scale(function: CalibrationFunction, surrogate: SurrogateLike) -> float | None:
    """log S of a surrogate for its loss and scores; None where it is not defined or known."""
    loss, n_true_labels = function.loss, function.loss.true_labels.size
    built = make_surrogate(surrogate, loss)
    if n_true_labels is None or n_true_labels < 2 or built.excess in ("hinge", "max-min"):
        return None
    if built.excess == "square":
        return _quadratic_noise(function)
    return _noise(built, function.scores)


@singledispatch
def _noise(surrogate: BaseSurrogate, scores: Structure) -> float | None:
    raise AssertionError(f"the noise scale of {surrogate.name} is not known")


@_noise.register(DistributionSurrogate)
def _(surrogate: DistributionSurrogate, scores: Structure) -> float | None:
    n_true_labels, parts = surrogate.loss.true_labels.size, surrogate.loss.hamming_shape
    assert n_true_labels is not None
    if surrogate.divergence == "squares":
        return math.log((n_true_labels - 1) / (2 * n_true_labels))
    if parts is not None and scores.separate_states is not None:
        T, s = parts
        assert T is not None
        return math.log(T * (s - 1) / 2)
    return math.log(n_true_labels - 1) - math.log(2)


@_noise.register(LinearRegretSurrogate)
def _(surrogate: LinearRegretSurrogate, scores: Structure) -> float | None:
    loss = surrogate.loss
    if loss.n_labels is None or loss.n_labels > ENUMERATION_LIMIT:
        return None
    noise = float(loss.matrix().var(axis=1).sum()) / (2 * surrogate.kappa)
    return math.log(noise) if noise > 0 else None


@_noise.register(ABSurrogate)
def _(surrogate: ABSurrogate, scores: Structure) -> float | None:
    loss = surrogate.loss
    if loss.n_labels is None or loss.n_labels > ENUMERATION_LIMIT:
        return _zero_one_noise(surrogate) if loss.is_zero_one else None
    L = loss.matrix()
    return _ab_noise(L.mean(axis=1), L.var(axis=1), surrogate)


def _ab_noise(means: np.ndarray, variances: np.ndarray, surrogate: ABSurrogate) -> float | None:
    varying = variances > 0  # a row without variance costs nothing, whatever the curvature
    if not varying.any():
        return None
    curvature = ABFamily(surrogate).curvature(means[varying])
    return math.log(float((curvature * variances[varying]).sum()) / (2 * len(means)))


def _zero_one_noise(surrogate: ABSurrogate) -> float | None:
    k = surrogate.loss.n_labels
    assert k is not None
    if k > 10**12:
        return None  # 1 − 1/k is not distinguished from 1
    mean = np.array([(k - 1) / k])
    return _ab_noise(mean, mean * (1 - mean), surrogate)


def _quadratic_noise(function: CalibrationFunction) -> float | None:
    """½ E_c Var_u P(c, y) with P the loss projected on the scores."""
    loss = function.loss
    if loss.hamming_shape is not None and function.scores == loss.score_space:
        # L = (1/T) Σ_t 1[c_t ≠ y_t], independent parts of variance (s − 1)/s²
        T, s = loss.hamming_shape
        assert T is not None
        return math.log((s - 1) / (2 * s**2)) - math.log(T)
    if loss.is_zero_one and loss.n_labels is not None:
        k = loss.n_labels
        return math.log(k - 1) - 2 * math.log(k) - math.log(2)
    if loss.n_labels is None or loss.n_labels > ENUMERATION_LIMIT:
        return None
    problem = explicit_problem(loss, function.scores)
    noise = 0.5 * float(problem.targets.var(axis=1).sum())
    return math.log(noise) + problem.log_scale if noise > 0 else None


def _exp(value: float) -> float:
    return math.exp(value) if value < 709 else math.inf
