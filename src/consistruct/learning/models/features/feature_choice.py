"""From the `features` argument of an estimator to a fitted feature map.

Kernel, bandwidth and scaling of the inputs are compared by risks on rows left out.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._threads import each
from consistruct._validation import is_sparse, to_dense
from consistruct.decisions.statistics import Statistic
from consistruct.learning.models.features.approximations import (
    KernelCenters,
    NystroemFeatures,
    RandomFeatures,
)
from consistruct.learning.models.features.feature_maps import (
    KERNELS,
    FeatureMap,
    FeatureOptions,
    Kernel,
    KernelFeatures,
    LinearFeatures,
    Scaling,
    ScoreMap,
    dense_rows,
    distances,
    median_bandwidth,
    transformer_features,
)
from consistruct.learning.models.ridge.selection import LOSS_SLACK
from consistruct.protocols import FloatArray, LabelArray

__all__ = [
    "EXACT_ROWS",
    "FIRST_ROWS",
    "SEARCH_ROWS",
    "Risks",
    "Trial",
    "choose_features",
    "kernel_or_inputs",
    "prefer_first",
    "search_kernel",
]

logger = logging.getLogger(__name__)

EXACT_ROWS = 12_288  # "auto" takes the exact kernel up to here: n² numbers, n³ operations
SEARCH_ROWS = 1024  # rows on which kernels are compared
FIRST_ROWS = 512  # rows on which all of them are, if there are more
KEPT_SHARE, FEWEST = 0.25, 3  # of the candidates that go on, and for each scaling at least
SAME_RISK = 1e-6  # risks that differ by less, relatively, differ by rounding
BANDWIDTH_FACTORS = (0.25, 0.5, 0.7, 1.0, 2.0, 4.0)  # times the median distance

Risks = tuple[float, float, float]  # task loss, surrogate risk, standard error of the task loss


def choose_features(
    options: FeatureOptions,
    X: Any,
    true: LabelArray,
    weight: FloatArray,
    statistic: Statistic,
    *,
    expansions: bool,
    on_landmarks: type[NystroemFeatures | KernelFeatures | KernelCenters] = NystroemFeatures,
    rng: np.random.Generator,
) -> FeatureMap:
    """Fit the feature map.

    ``expansions`` states whether the solver takes kernel expansions over all examples; others get
    the same functions as Nyström features with every distinct example as a landmark.
    ``on_landmarks`` is what those become: orthonormal functions, or plain values of the kernel.
    """
    if not isinstance(options.features, str):
        return transformer_features(options.features, X, true if true.ndim == 1 else None)
    features = options.name(X)
    if features == "linear":
        return options.linear(X, weight)
    automatic = options.features == "auto" and options.n_components is None
    exact_rows = EXACT_ROWS if automatic else 0
    names = options.kernels(features, X)
    components = options.components()
    distinct = _distinct_rows(X, limit=components)
    kernel, scaling = _choose_kernel(names, options, X, true, weight, statistic, rng)
    if kernel is None:
        return LinearFeatures(X.shape[1], scaling)
    if features == "random":
        return RandomFeatures(kernel, X.shape[1], components, rng, scaling)
    exact = features in KERNELS or X.shape[0] <= max(components, exact_rows)
    if exact and expansions:
        return KernelFeatures(kernel, X, scaling)
    if features in KERNELS:
        return on_landmarks(kernel, X[_first_occurrences(X)], scaling)
    if distinct is None:
        distinct = np.sort(rng.choice(X.shape[0], size=components, replace=False))
    return on_landmarks(kernel, X[distinct], scaling)


def _choose_kernel(
    names: tuple[str, ...],
    options: FeatureOptions,
    X: Any,
    true: LabelArray,
    weight: FloatArray,
    statistic: Statistic,
    rng: np.random.Generator,
) -> tuple[Kernel | None, Scaling]:
    """Kernel, bandwidth and scaling by leave-one-out on at most `SEARCH_ROWS` rows.

    Whatever model is trained, least squares ranks the candidates: its closed form gives the
    leave-one-out risks of all penalties from one decomposition.
    """
    from consistruct.learning.models.ridge.closed_form import ClosedForm

    rows = _distinct_rows(X, limit=SEARCH_ROWS)
    if rows is None:
        rows = used = np.sort(rng.choice(X.shape[0], size=SEARCH_ROWS, replace=False))
    else:  # every copy takes part, so that repeating a row and weighting it agree
        used = np.arange(X.shape[0]) if X.shape[0] <= 2 * SEARCH_ROWS else rows

    def trial(part: Any) -> Trial:
        def risks(features: FeatureMap) -> Risks:
            result = ClosedForm().solve(
                statistic,
                ScoreMap(features, fit_intercept=options.fit_intercept),
                X[part],
                true[part],
                sample_weight=weight[part],
                rng=np.random.default_rng(0),
            )
            path = result.path
            best = int(np.flatnonzero(path["alphas"] == result.alpha)[0])
            return (
                float(path["task_loss"][best]),
                float(path["surrogate_risk"][best]),
                float(path["task_error"][best]),
            )

        return Trial(X[part], risks)

    parts = [used]
    if len(rows) > FIRST_ROWS:
        parts.insert(0, _copies(X, np.sort(rng.choice(rows, FIRST_ROWS, replace=False)), used))
    trials = [trial(part) for part in parts]
    return kernel_or_inputs(names, options, X, weight, X[rows], trials)


def _copies(X: Any, rows: Any, used: Any) -> Any:
    """Positions in `used` whose inputs equal those of one of `rows`."""
    wanted = {_bytes_of(X, row) for row in rows}
    return np.array([row for row in used if _bytes_of(X, row) in wanted])


def _bytes_of(X: Any, row: int) -> bytes:
    if is_sparse(X):
        part = slice(X.indptr[row], X.indptr[row + 1])
        return bytes(X.indices[part].tobytes() + X.data[part].tobytes())
    return bytes(X[row].tobytes())


def _first_occurrences(X: Any) -> Any:
    """Sorted positions of the first copy of every distinct row."""
    if is_sparse(X):
        seen: dict[bytes, int] = {}
        for row in range(X.shape[0]):
            seen.setdefault(_bytes_of(X, row), row)
        return np.array(sorted(seen.values()))
    return np.sort(np.unique(X, axis=0, return_index=True)[1])


def _distinct_rows(X: Any, *, limit: int) -> Any:
    """Positions of the distinct rows if there are at most `limit` of them, else None."""
    if X.shape[0] > 8 * limit:
        return None  # repeats that often are not looked for: sorting all rows would cost more
    first = _first_occurrences(X)
    return first if len(first) <= limit else None


# --- the search, by the rows of an estimator or by those of queries ---


class SampleKernel(KernelFeatures):
    """A kernel between rows whose distances are known: many bandwidths share them."""

    def __init__(self, kernel: Kernel, distances: FloatArray) -> None:
        self.kernel, self.scaling = kernel, Scaling()
        self.n_outputs = len(distances)
        self._distances = distances

    def transform(self, X: Any) -> FloatArray:
        """The (m, m) matrix, whatever X: these are the rows it was made for."""
        return self.kernel.from_distances(self._distances.copy())


@dataclass(frozen=True, eq=False)
class Trial:
    """Rows (m, d) on which kernels are compared, and the risks of one on them.

    The risks are those of rows left out, at the best penalty.
    """

    rows: Any
    risks: Callable[[FeatureMap], Risks]


def search_kernel(
    names: tuple[str, ...],
    options: FeatureOptions,
    X: Any,  # (n, d), what inputs are standardized by
    weight: FloatArray,  # (n,)
    sample: Any,  # (m, d), where the median distance is taken
    trials: Sequence[Trial],  # of growing size: the best of each go on to the next
) -> tuple[Kernel, Scaling, Risks | None]:
    """The best kernel and scaling by the last trial, and its risks there (None: no choice).

    Of the candidates within one standard error of the least task loss, standardized ones come
    first (the units of the columns should not matter unless the data say so), then the least
    surrogate risk, which has the smaller variance. Of risks that are equal up to rounding (on
    columns of 0 and 1 some Laplace kernels are RBF kernels) the first kernel named and its largest
    bandwidth is taken.
    """
    candidates = [
        (kernel, scaling)
        for name, scaling in itertools.product(names, _scalings(options, X, weight))
        for kernel in _kernels(name, options, np.asarray(to_dense(scaling(sample)), np.float64))
    ]
    if len(candidates) == 1:
        return *candidates[0], None
    n_jobs = options.n_jobs or 1
    for trial in trials[:-1]:
        candidates = _best_quarter(candidates, _scores(candidates, trial, n_jobs))
    task, risk, error = np.array(_scores(candidates, trials[-1], n_jobs)).T
    tied = _tied(task, error)
    standard = np.array([scaling.scale is not None for _, scaling in candidates])
    if (tied & standard).any():
        tied &= standard
    risk = np.where(tied, risk, np.inf)
    good = np.flatnonzero(risk <= risk.min() * (1.0 + SAME_RISK))
    first = candidates[good[0]][0].name
    best = int(max(good, key=lambda place: _simplicity(candidates[place][0], first)))
    kernel, scaling = candidates[best]
    logger.info(
        "features: %s, standardized: %s, task loss on out-of-fold rows %.4f",
        kernel,
        scaling.scale is not None,
        task[best],
    )
    return kernel, scaling, (float(task[best]), float(risk[best]), float(error[best]))


def kernel_or_inputs(
    names: tuple[str, ...],
    options: FeatureOptions,
    X: Any,
    weight: FloatArray,
    sample: Any,
    trials: Sequence[Trial],
) -> tuple[Kernel | None, Scaling]:
    """The best kernel and its scaling, by `search_kernel`.

    With features="auto" the inputs themselves, standardized, are a candidate too: None stands for
    no kernel.
    """
    kernel, scaling, found = search_kernel(names, options, X, weight, sample, trials)
    if found is None or options.features != "auto":
        return kernel, scaling
    plain = Scaling.standard(X, weight) if options.standardize in ("auto", True) else Scaling()
    inputs = trials[-1].risks(LinearFeatures(X.shape[1], plain))
    return (None, plain) if prefer_first(inputs, found) else (kernel, scaling)


def prefer_first(first: Risks, second: Risks) -> bool:
    """By the rule of the search: within one standard error of the best, the smaller risk."""
    best = min(first[0], second[0])
    error = first[2] if first[0] <= second[0] else second[2]
    if first[0] > best + error:
        return False
    if second[0] > best + error:
        return True
    return first[1] <= second[1]


def _best_quarter(
    candidates: Sequence[tuple[Kernel, Scaling]], scores: Sequence[Risks]
) -> list[tuple[Kernel, Scaling]]:
    """What goes on: of each scaling its best, by the rule of the last trial."""
    task, risk, error = np.array(scores).T
    tied = _tied(task, error)
    # equal up to rounding is equal: the order of the candidates then decides
    risk = np.rint(risk / (SAME_RISK * (risk.min() or 1.0)))
    order = np.lexsort((np.where(tied, risk, task), ~tied))
    scalings = {id(scaling): scaling for _, scaling in candidates}
    places = max(FEWEST, round(KEPT_SHARE * len(candidates) / len(scalings)))
    kept: list[int] = []
    for scaling in scalings.values():
        kept += [int(place) for place in order if candidates[place][1] is scaling][:places]
    return [candidates[place] for place in sorted(kept)]


def _tied(task: FloatArray, error: FloatArray) -> Any:
    """Which task losses are within one standard error of the least, and of sums in any order."""
    slack = LOSS_SLACK * float(np.abs(task).max())
    least = task <= task.min() + slack
    return task <= task.min() + error[least].max() + slack


def _simplicity(kernel: Kernel, first: str) -> tuple[bool, float]:
    return kernel.name == first, kernel.bandwidth


def _scores(candidates: Sequence[tuple[Kernel, Scaling]], trial: Trial, n_jobs: int) -> list[Risks]:
    """Risks of every candidate; those with the same distances stand together."""

    def risks_of(kernel: Kernel, known: FloatArray) -> Risks:
        return trial.risks(SampleKernel(kernel, known))

    found: list[Risks] = []
    for (name, _), group in itertools.groupby(candidates, lambda pair: (pair[0].name, id(pair[1]))):
        pairs = list(group)
        inputs = pairs[0][1](trial.rows)
        known = distances(name, inputs, dense_rows(inputs))
        found += each(risks_of, [(kernel, known) for kernel, _ in pairs], n_jobs, threads=True)
    return found


def _scalings(options: FeatureOptions, X: Any, weight: FloatArray) -> list[Scaling]:
    if options.standardize == "auto":
        return [Scaling(), Scaling.standard(X, weight)]
    return [Scaling.standard(X, weight) if options.standardize else Scaling()]


def _kernels(name: str, options: FeatureOptions, inputs: FloatArray) -> list[Kernel]:
    """One per bandwidth."""
    if options.bandwidth == "auto":
        center = median_bandwidth(inputs, name)
        widths = [factor * center for factor in BANDWIDTH_FACTORS]
    elif options.bandwidth == "median":
        widths = [median_bandwidth(inputs, name)]
    else:
        widths = [options.bandwidth]
    return [
        Kernel(name, width, options.degree, options.coef0)  # type: ignore[arg-type]
        for width in widths
    ]
