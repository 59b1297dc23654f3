"""Ridge from the moments of a pass: penalty, weights, and estimates of some rows left out."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._members import frozen_array
from consistruct._validation import check_alpha
from consistruct.decisions.statistics import Statistic
from consistruct.learning.models.features.feature_maps import FeatureMap, Scaling
from consistruct.learning.models.ridge.gcv_path import TridiagonalPath
from consistruct.learning.models.ridge.moments import Moments
from consistruct.learning.models.ridge.selection import (
    Choice,
    OutputPenalty,
    PathScores,
    ValidationRows,
    score_path,
)
from consistruct.protocols import FloatArray

__all__ = ["Examined", "MomentsFit", "solve_moments", "standardized"]

logger = logging.getLogger(__name__)

GCV_SLACK = 1e-6  # relative: closer scores are alike, whatever the order of the sums
CONSTANT = 1e-10  # a deviation below this share of the mean is rounding


@dataclass(frozen=True, eq=False)
class Examined:
    """Rows that were looked at more closely: inputs (n, d), true labels as codes, weights (n,)."""

    inputs: Any
    codes: Any
    weight: FloatArray


@dataclass(frozen=True, eq=False)
class MomentsFit:
    """Weights (m, width), intercept (width,), penalty and out-of-fold rows of the moments."""

    coef: FloatArray
    intercept: FloatArray
    choice: Choice
    out_of_fold: FloatArray | None


def standardized(moments: Moments) -> tuple[Moments, Scaling]:
    """Moments of the features divided by their deviation, and the scaling that makes them.

    Nothing has to be known before the pass: a change of units is one of the sums.
    """
    scale = moments.deviation
    scale[scale <= CONSTANT * np.abs(moments.mean_feature)] = 1.0
    scale[scale == 0.0] = 1.0
    shift = moments.mean_feature
    centered = dataclasses.replace(moments, mean_feature=np.zeros_like(shift))
    return centered.mapped(1.0 / scale), Scaling(shift, scale)


def solve_moments(
    moments: Moments,
    features: FeatureMap,
    statistic: Statistic,
    *,
    alpha: Any,
    penalty: OutputPenalty,
    fit_intercept: bool,
    sample: Examined | None = None,
    held_out: Iterable[Examined] | None = None,
) -> MomentsFit:
    """Weights for one penalty, or for the best of several.

    Of several, that of least task loss on `held_out` where it is given, else of least generalized
    cross-validation, which needs nothing but the moments; scores that are alike go to the larger
    penalty. All of them cost one pass.
    """
    sums = moments if fit_intercept else moments.about_zero()
    problem = TridiagonalPath(
        np.array(sums.second_moment),
        sums.cross_moment,
        sums.total_weight,
        sums.target_squares,
        fit_intercept,
        penalty,
        sums.precision,
    )

    def intercept(coef: FloatArray) -> FloatArray:
        return sums.mean_target - sums.mean_feature @ coef

    alphas = check_alpha(alpha)
    if isinstance(alphas, float):
        choice = Choice(alphas, {})
    else:
        alphas = problem.grid() if alphas is None else np.asarray(alphas)
        if held_out is None:
            choice = _by_gcv(problem, alphas)
        else:
            coefs = [problem.coefficients(float(each)) for each in alphas]
            weights = [(coef, intercept(coef)) for coef in coefs]
            choice = _by_held_out(weights, features, statistic, alphas, held_out)
    coef = problem.coefficients(choice.alpha)
    out_of_fold = None
    if sample is not None and len(sample.weight):
        left = ValidationRows.of(statistic, sample.codes, sample.weight)
        rows = _dense(features.transform(sample.inputs)) - sums.mean_feature
        y = left.target(slice(None)) - sums.mean_target
        estimates = problem.leave_one_out(rows, left.weight, left.share, y, choice.alpha)
        out_of_fold = sums.mean_target + estimates
    return MomentsFit(coef, intercept(coef), choice, out_of_fold)


def _by_gcv(problem: TridiagonalPath, alphas: FloatArray) -> Choice:
    scores = np.array([problem.generalized_cross_validation(float(alpha)) for alpha in alphas])
    good = scores <= scores.min() + GCV_SLACK * abs(scores.min())
    best = float(alphas[good].max())
    logger.info("moments: alpha %.3g of %d by GCV", best, len(scores))
    return Choice(best, {"alphas": frozen_array(alphas), "gcv": scores})


def _by_held_out(
    weights: list[tuple[FloatArray, FloatArray]],
    features: FeatureMap,
    statistic: Statistic,
    alphas: FloatArray,
    held_out: Iterable[Examined],
) -> Choice:
    """One pass over rows that took no part in the moments compares every penalty."""
    parts: list[tuple[float, PathScores]] = []
    for rows in held_out:
        if not len(rows.weight):
            continue
        transformed = features.transform(rows.inputs)
        estimates = [np.asarray(transformed @ coef) + constant for coef, constant in weights]
        validation = ValidationRows.of(statistic, rows.codes, rows.weight)

        def one_by_one(
            part: slice, _y: FloatArray, estimates: list[FloatArray] = estimates
        ) -> Iterable[FloatArray]:
            return (each[part] for each in estimates)

        parts.append((float(rows.weight.sum()), score_path(one_by_one, validation, alphas)))
    if not parts:
        raise ValueError("held_out has no rows to choose a penalty by; omit it to use GCV")
    shares = np.array([weight for weight, _ in parts]) / sum(weight for weight, _ in parts)

    def mean(name: str) -> Any:
        return sum(s * getattr(p, name) for s, (_, p) in zip(shares, parts, strict=True))

    errors = [s * p.task_error for s, (_, p) in zip(shares, parts, strict=True)]
    found = PathScores(
        alphas,
        mean("task_loss"),
        mean("surrogate_risk"),
        np.sqrt(sum(error**2 for error in errors)),
        float(mean("loss_scale")),
        float(mean("null_risk")),
    )
    best = found.best("task_loss")
    logger.info("moments: alpha %.3g, held-out task loss %.4f", alphas[best], found.task_loss[best])
    return Choice(float(alphas[best]), found.as_dict())


def _dense(rows: Any) -> FloatArray:
    dense: FloatArray = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
    return dense
