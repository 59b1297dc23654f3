"""From the `features` argument of an estimator to a fitted feature map."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from consistruct._sparse import is_sparse
from consistruct._validation import check_count
from consistruct.learning.closed_form import ClosedForm
from consistruct.learning.feature_maps import (
    FeatureMap,
    KernelFeatures,
    LinearFeatures,
    NystroemFeatures,
    RandomFeatures,
    Scaling,
    TransformerFeatures,
)
from consistruct.learning.kernels import KERNELS, Kernel, median_bandwidth
from consistruct.learning.score_map import ScoreMap
from consistruct.protocols import FloatArray, LabelArray
from consistruct.surrogates import QuadraticSurrogate

__all__ = ["FEATURES", "FeatureOptions", "choose_features"]

logger = logging.getLogger(__name__)

FEATURES = ("auto", "linear", "rbf", "laplace", "poly", "nystroem", "random")
WIDE = 4096  # more columns than this count as very wide: they are rich enough for linear scores
DEFAULT_COMPONENTS = 3072
EXACT_ROWS = 12_288  # "auto" takes the exact kernel up to here: n² numbers, n³ operations
SEARCH_ROWS = 1024  # rows on which bandwidths are compared
BANDWIDTH_FACTORS = (0.25, 0.5, 0.7, 1.0, 2.0, 4.0)  # times the median distance


@dataclass(frozen=True)
class FeatureOptions:
    """The estimator's arguments about features, unchecked."""

    features: Any = "auto"
    kernel: str = "rbf"
    bandwidth: Any = "auto"
    degree: int = 3
    coef0: float = 1.0
    n_components: int | None = None
    standardize: Any = "auto"
    fit_intercept: bool = True
    n_jobs: int | None = None


def choose_features(
    options: FeatureOptions,
    X: Any,
    true: LabelArray,
    weight: FloatArray,
    surrogate: QuadraticSurrogate,
    *,
    expansions: bool,
    rng: np.random.Generator,
) -> FeatureMap:
    """Fit the feature map.

    ``expansions`` says whether the solver takes kernel expansions over all examples; others get
    the same functions as Nyström features with every distinct example as a landmark.
    """
    features = options.features
    n_features = X.shape[1]
    if not isinstance(features, str):
        return _transformer_features(features, X, true)
    if features not in FEATURES:
        raise ValueError(
            f"features must be one of {', '.join(FEATURES)} or a scikit-learn transformer, "
            f"got {features!r}"
        )
    if options.standardize not in ("auto", True, False):
        raise ValueError(f"standardize must be 'auto', True or False, got {options.standardize!r}")
    exact_rows = 0
    if features == "auto":
        features = "linear" if is_sparse(X) or n_features > WIDE else "nystroem"
        exact_rows = EXACT_ROWS if options.n_components is None else 0
    if features == "linear":
        scaled = options.standardize is True
        return LinearFeatures(n_features, Scaling.standard(X, weight) if scaled else None)
    name = features if features in KERNELS else options.kernel
    components = options.n_components
    components = (
        DEFAULT_COMPONENTS if components is None else check_count(components, "n_components")
    )
    distinct = _distinct_rows(X, limit=components)
    kernel, scaling = _choose_kernel(name, options, X, true, weight, surrogate, rng)
    if features == "random":
        return RandomFeatures(kernel, n_features, components, rng, scaling)
    exact = features in KERNELS or X.shape[0] <= max(components, exact_rows)
    if exact and expansions:
        return KernelFeatures(kernel, X, scaling)
    if features in KERNELS:
        return NystroemFeatures(kernel, X[_first_occurrences(X)], scaling)
    if distinct is None:
        distinct = np.sort(rng.choice(X.shape[0], size=components, replace=False))
    return NystroemFeatures(kernel, X[distinct], scaling)


def _transformer_features(transformer: Any, X: Any, true: LabelArray) -> FeatureMap:
    if not hasattr(transformer, "fit") or not hasattr(transformer, "transform"):
        raise TypeError(
            f"features must be one of {', '.join(FEATURES)} or a scikit-learn transformer, "
            f"got {type(transformer).__name__}"
        )
    fitted = clone(transformer).fit(X, true if true.ndim == 1 else None)
    return TransformerFeatures(fitted, fitted.transform(X[:1]).shape[1])


def _choose_kernel(
    name: str,
    options: FeatureOptions,
    X: Any,
    true: LabelArray,
    weight: FloatArray,
    surrogate: QuadraticSurrogate,
    rng: np.random.Generator,
) -> tuple[Kernel, Scaling]:
    """Bandwidth and scaling by leave-one-out on at most `SEARCH_ROWS` rows.

    Of the candidates within one standard error of the least task loss, standardised ones come
    first (the units of the columns should not matter unless the data say so), then the least
    surrogate risk, which has the smaller variance.

    Whatever surrogate is trained, the quadratic one ranks the candidates: its closed form gives
    the leave-one-out risks of all penalties from one decomposition.
    """
    rows = _distinct_rows(X, limit=SEARCH_ROWS)
    if rows is None:
        rows = used = np.sort(rng.choice(X.shape[0], size=SEARCH_ROWS, replace=False))
    else:  # every copy takes part, so that repeating a row and weighting it agree
        used = np.arange(X.shape[0]) if X.shape[0] <= 2 * SEARCH_ROWS else rows
    scalings = {
        "auto": [Scaling(), Scaling.standard(X, weight)],
        True: [Scaling.standard(X, weight)],
        False: [Scaling()],
    }[options.standardize]
    candidates = []
    for scaling in scalings:
        sample = scaling(X[rows])
        sample = sample.toarray() if is_sparse(sample) else np.asarray(sample, np.float64)
        if options.bandwidth == "auto":
            centre = median_bandwidth(sample, name)
            widths = [factor * centre for factor in BANDWIDTH_FACTORS]
        elif options.bandwidth == "median":
            widths = [median_bandwidth(sample, name)]
        else:
            widths = [options.bandwidth]
        candidates += [
            (Kernel(name, width, options.degree, options.coef0), scaling)  # type: ignore[arg-type]
            for width in widths
        ]
    if len(candidates) == 1:
        return candidates[0]
    n_jobs = options.n_jobs or 1
    scores = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_candidate_risks)(
            kernel,
            scaling,
            X[used],
            true[used],
            weight[used],
            surrogate,
            options.fit_intercept,
            n_jobs != 1,
        )
        for kernel, scaling in candidates
    )
    task, risk, error = np.array(scores).T
    tied = task <= task.min() + error[task.argmin()]
    standard = np.array([scaling.scale is not None for _, scaling in candidates])
    if (tied & standard).any():
        tied &= standard
    best = int(np.argmin(np.where(tied, risk, np.inf)))
    kernel, scaling = candidates[best]
    logger.info(
        "features: %s, standardised: %s, leave-one-out task loss %.4f",
        kernel,
        scaling.scale is not None,
        scores[best][0],
    )
    return kernel, scaling


def _candidate_risks(
    kernel: Kernel,
    scaling: Scaling,
    X: Any,
    true: LabelArray,
    weight: FloatArray,
    surrogate: QuadraticSurrogate,
    fit_intercept: bool,
    single_thread: bool,
) -> tuple[float, float, float]:
    """Leave-one-out task loss and surrogate risk at the best penalty, and the loss's error."""
    score_map = ScoreMap(KernelFeatures(kernel, X, scaling), fit_intercept=fit_intercept)
    with threadpool_limits(1 if single_thread else None):
        result = ClosedForm().solve(
            surrogate, score_map, X, true, sample_weight=weight, rng=np.random.default_rng(0)
        )
    best = int(np.flatnonzero(result.path["alphas"] == result.alpha)[0])
    path = result.path
    return (
        float(path["task_loss"][best]),
        float(path["surrogate_risk"][best]),
        float(path["task_error"][best]),
    )


def _first_occurrences(X: Any) -> Any:
    """Sorted positions of the first copy of every distinct row."""
    if is_sparse(X):
        seen: dict[bytes, int] = {}
        for row in range(X.shape[0]):
            part = slice(X.indptr[row], X.indptr[row + 1])
            seen.setdefault(X.indices[part].tobytes() + X.data[part].tobytes(), row)
        return np.array(sorted(seen.values()))
    return np.sort(np.unique(X, axis=0, return_index=True)[1])


def _distinct_rows(X: Any, *, limit: int) -> Any:
    """Positions of the distinct rows if there are at most `limit` of them, else None."""
    if X.shape[0] > 8 * limit:
        return None  # repeats that often are not looked for: sorting all rows would cost more
    first = _first_occurrences(X)
    return first if len(first) <= limit else None
