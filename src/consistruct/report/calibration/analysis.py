"""From a calibration function to its report: every number that the report shows is found here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_number
from consistruct.calibration import (
    CalibrationFunction,
    LabelOrderWarning,
    calibration_function,
    upper_bound,
)
from consistruct.calibration.bounds import expresses
from consistruct.calibration.curve import CurvePoint
from consistruct.calibration.envelope import Envelope
from consistruct.calibration.methods.nonquadratic.closed import FormulaMethod
from consistruct.calibration.proofs.base import WorstDistribution, distribution_of_numbers
from consistruct.exceptions import ConsistructError
from consistruct.guarantees.constants import (
    Constants,
    DataConstants,
    default_accuracy,
    paper_constants,
    samples_gap,
    sharp_constants,
)
from consistruct.protocols import FloatArray
from consistruct.report.calibration.model import (
    CalibrationReport,
    DistributionEntry,
    ReportPoint,
    Restriction,
    SampleSize,
    SampleSizes,
    WorstCase,
)
from consistruct.report.formats import (
    Label,
    label_text,
    loss_title,
    scores_title,
    shown_label,
)

__all__ = ["calibration_report"]

N_GRID = 21
N_SHOWN = 12  # true labels that a report lists; the rest is one number
NEGLIGIBLE = 1e-9  # probabilities that are rounding of a solver


def calibration_report(
    curve: CalibrationFunction,
    eps: ArrayLike | None = None,
    *,
    points: int = N_GRID,
    at: float | None = None,
    radius: float = 1.0,
    q_bound: float = 1.0,
    warnings: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> CalibrationReport:
    """Evaluate a calibration function on a grid and collect all that its report states.

    Parameters
    ----------
    curve : CalibrationFunction
    eps : array, optional
        Where H is evaluated; if not given, at `points` values from 0 to max_eps.
    points : int
        How many, where `eps` is not given.
    at : float, optional
        The ε that the worst case and the sample size are given for; it joins the grid. If not
        given, a tenth of what the best constant prediction loses
        (`consistruct.guarantees.constants.default_accuracy`), or the value of `eps` nearest to it.
    radius, q_bound : float
        R and Q, as in `sample_complexity`.
    warnings : sequence of str
        Sentences that the report repeats, such as the `LabelOrderWarning` of the curve.
    progress : callable, optional
        Called with (done, total) after each value of H.

    Examples
    --------
    >>> import consistruct as cs
    >>> report = calibration_report(cs.calibration_function(cs.losses.Hamming(10)), at=0.2)
    >>> report.effective_classes, report.consistency_level, len(report.curve)
    (20.0, 0.0, 21)
    >>> round(10 ** report.sample_sizes.at(0.2).log10_sharp)   # 4·ξ(1)²/ε⁴
    10000
    """
    radius = check_number(radius, "radius", low=0.0, open_low=True)
    q_bound = check_number(q_bound, "q_bound", low=0.0, open_low=True)
    grid, at, reason = _grid(curve, eps, points, at)
    found_points = curve.curve(grid, progress=progress)
    expressed = expresses(curve.loss, curve.scores)
    k_eff = curve.effective_classes
    envelope = curve.envelope(() if at is None else at, eps=grid)
    heights = dict(zip(grid.tolist(), np.atleast_1d(envelope.log(grid)).tolist(), strict=True))
    shown = tuple(_point(curve, point, heights[point.eps]) for point in found_points)
    found = next((point for point in shown if point.eps == at), None)
    case = (
        "no excess risk is possible: every prediction costs the same"
        if found is None
        else _worst_case(curve, found)
    )
    sizes = _sample_sizes(curve, envelope, grid, radius, q_bound)
    return CalibrationReport(
        loss=repr(curve.loss),
        scores=repr(curve.scores),
        loss_title=loss_title(curve.loss),
        scores_title=scores_title(curve.scores),
        surrogate=curve.surrogate,
        decoding=curve.decoding,
        measure=curve.measure,
        method=curve.method,
        n_labels=curve.loss.n_labels or curve.scores.predictable().size,
        n_predictable=curve.scores.predictable().size,
        rank=curve.scores.rank,
        own_rank=curve.loss.score_space.rank,
        expresses=expressed,
        effective_classes=None if k_eff is None else float(k_eff),
        effective_classes_log=None if k_eff is None else k_eff.log,
        effective_classes_exact=None if k_eff is None else k_eff.exact,
        rank_tolerance=_rank_tolerance(curve),
        consistency_level=_safe_level(curve),
        approximation_error=_known(curve.approximation_error),
        max_eps=float(curve.max_eps),
        at=at,
        at_reason=reason,
        curve=shown,
        worst_case=None if isinstance(case, str) else case,
        worst_case_reason=case if isinstance(case, str) else None,
        sample_sizes=None if isinstance(sizes, str) else sizes,
        sample_sizes_reason=sizes if isinstance(sizes, str) else None,
        warnings=tuple(str(warning) for warning in warnings),
        restriction=_restriction(curve, at, radius, q_bound),
    )


def _grid(
    curve: CalibrationFunction, eps: ArrayLike | None, points: int, at: float | None
) -> tuple[FloatArray, float | None, str]:
    """Increasing values of ε with `at` among them, and where `at` comes from."""
    given = np.linspace(0.0, curve.max_eps, points) if eps is None else eps
    grid = np.unique(np.atleast_1d(np.asarray(given, dtype=np.float64)).ravel())
    if curve.max_eps == 0:
        return grid, None, "no excess risk is possible"
    if at is None:
        level = _known(curve.consistency_level) or 0.0
        chosen = default_accuracy(curve.loss, max_eps=curve.max_eps, level=level)
        inside = grid[(grid > 0) & (grid <= curve.max_eps)]
        if eps is not None and len(inside):
            near = float(inside[np.abs(np.log(inside / chosen.eps)).argmin()])
            return grid, near, f"the given value closest to {chosen.eps:g}, {chosen.reason}"
        return np.union1d(grid, [chosen.eps]), chosen.eps, chosen.reason
    at = check_number(at, "at", low=0.0, open_low=True)
    if at > curve.max_eps:
        raise ValueError(
            f"at must be at most the largest excess risk, {curve.max_eps:.17g}, got {at:.17g}"
        )
    return np.union1d(grid, [at]), at, "requested"


def _safe_level(curve: CalibrationFunction) -> float | None:
    """Return the upper end of the consistency level, None where the level is not known at all."""
    return None if _known(curve.consistency_level) is None else curve.consistency_interval[1]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _rank_tolerance(curve: CalibrationFunction) -> float | None:
    """At which tolerance the span was found, if it was found numerically."""
    own = getattr(curve.scores, "rank_tolerance", None)
    if own is None and curve.scores == curve.loss.score_space:
        own = getattr(curve.loss, "rank_tolerance", None)
    return None if own is None else float(own)


def _point(curve: CalibrationFunction, point: CurvePoint, log_envelope: float) -> ReportPoint:
    inside = point.eps <= curve.max_eps
    log_eps = math.log(point.eps) if point.eps > 0 else -math.inf
    k_eff = curve.effective_classes
    pair: tuple[Label, Label] | None = None
    if point.pair is not None:
        predictions = curve.loss.predictions
        pair = shown_label(predictions, point.pair[0]), shown_label(predictions, point.pair[1])
    return ReportPoint(
        eps=point.eps,
        lower=point.lower,
        upper=point.upper,
        log_lower=point.log_lower,
        log_upper=point.log_upper,
        log_theorem_7=2 * log_eps - math.log(4) - k_eff.log
        if k_eff is not None and inside and k_eff > 0
        else None,
        log_theorem_8=_theorem_8(curve, point.eps) if inside else None,
        log_envelope=log_envelope if inside else None,
        method=point.method,
        status=point.status,
        pair=pair,
    )


def _theorem_8(curve: CalibrationFunction, eps: float) -> float | None:
    """log of ε²/2k, for full scores under the uniform measure and a pseudometric loss."""
    full = curve.scores.one_per_label and curve.measure == "uniform"
    if curve.surrogate != "quadratic" or not full or curve.distributions is not None:
        return None
    try:
        found = upper_bound(curve.loss, eps=eps)
    except ConsistructError:  # no pseudometric
        return None
    return found.log if found.log < math.inf else None


# --- the worst case ---


def _worst_case(curve: CalibrationFunction, point: ReportPoint) -> WorstCase | str:
    """The distribution at ``point.eps`` in label names, or in one line why there is none."""
    if point.log_upper == math.inf:
        return "only a lower bound on H is known here, and no distribution that attains it"
    try:
        found, note = _worst_distribution(curve, point.eps)
    except ConsistructError as error:
        return str(error)
    loss, distribution = curve.loss, found.distribution
    expected: list[float | None] = [None, None]
    if isinstance(found.true_labels, list):
        i, j = (label_text(shown_label(loss.true_labels, label)) for label in found.pair)
        names = [words.format(i=i, j=j) for words in found.true_labels]
    else:
        names = [
            label_text(shown_label(loss.true_labels, label)) for label in found.true_labels.tolist()
        ]
        expected = [
            float(loss(np.array([label] * len(distribution)), found.true_labels) @ distribution)
            for label in found.pair
        ]
    order = np.argsort(-distribution, kind="stable")
    kept = [int(n) for n in order[:N_SHOWN] if distribution[n] > NEGLIGIBLE]
    better, predicted = (shown_label(loss.predictions, label) for label in found.pair)
    return WorstCase(
        eps=point.eps,
        better=better,
        predicted=predicted,
        distribution=tuple(DistributionEntry(names[n], float(distribution[n])) for n in kept),
        rest=max(float(distribution.sum() - distribution[kept].sum()), 0.0),
        expected_better=expected[0],
        expected_predicted=expected[1],
        log_surrogate_gap=point.log_upper,
        note=note,
    )


def _worst_distribution(curve: CalibrationFunction, eps: float) -> tuple[WorstDistribution, str]:
    """The distribution, and where it comes from."""
    if curve.surrogate != "quadratic" and eps <= curve.consistency_level:
        witness = curve.witness
        assert witness.pair is not None
        assert witness.distribution is not None
        worst = distribution_of_numbers(curve.loss, witness.pair, witness.distribution)
        return worst, "witness of the level"
    if isinstance(curve._method, FormulaMethod) and curve.loss.is_zero_one:
        # two labels share all probability: the proof of the formula
        distribution = np.array([(1 + eps) / 2, (1 - eps) / 2])
        return WorstDistribution((0, 1), np.array([0, 1]), distribution), "closed form"
    note = f"certificate at ε = {eps:g}; other distributions may be just as bad"
    return curve.certificate(eps).worst_distribution(curve.loss), note


# --- how many examples ---


def _sample_sizes(
    curve: CalibrationFunction,
    envelope: Envelope,
    grid: FloatArray,
    radius: float,
    q_bound: float,
) -> SampleSizes | str:
    """N* at every ε of the grid, or why there is none."""
    if curve.surrogate != "quadratic":
        return (
            "the constants of stochastic gradient descent are known only for the quadratic "
            "surrogate"
        )
    if curve.max_eps == 0:
        return "every prediction costs the same: there is nothing to learn"
    loss, space = curve.loss, curve.scores
    try:
        paper = paper_constants(loss, space, radius=radius, q_bound=q_bound)
        sharp = sharp_constants(loss, space, radius=radius, q_bound=q_bound, data=DataConstants())
    except ConsistructError as error:
        return str(error)

    inside = grid[(grid > 0) & (grid <= curve.max_eps)]
    heights = envelope.log(inside).tolist()
    gaps = np.nan_to_num(samples_gap(envelope, inside), nan=math.inf).tolist()

    def log10(constants: Constants, log_height: float) -> float:
        return constants.log_iterations(log_height) / math.log(10)

    return SampleSizes(
        radius=radius,
        q_bound=q_bound,
        points=tuple(
            SampleSize(eps, log10(paper, log), log10(sharp, log), gap)
            for eps, log, gap in zip(inside.tolist(), heights, gaps, strict=True)
        ),
        paper_assumptions=paper.assumptions,
        sharp_assumptions=sharp.assumptions,
    )


def _restriction(
    curve: CalibrationFunction, at: float | None, radius: float, q_bound: float
) -> Restriction | None:
    """What all distributions would give, where the curve is over some of them."""
    if curve.distributions is None or at is None:
        return None
    with catch_warnings():
        simplefilter("ignore", LabelOrderWarning)  # the curve itself has warned
        everything = calibration_function(curve.loss, curve.scores)
    point = everything.curve(at)[0]
    sizes = _sample_sizes(everything, everything.envelope(at), np.array([at]), radius, q_bound)
    return Restriction(
        spec=curve.distributions.spec,
        meaning=curve.distributions.meaning,
        level=everything.consistency_interval[1],
        log_lower=point.log_lower,
        log_upper=point.log_upper,
        log10_sharp=None if isinstance(sizes, str) else sizes.at(at).log10_sharp,
    )
