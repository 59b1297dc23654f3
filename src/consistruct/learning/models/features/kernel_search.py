"""Kernel, bandwidth and scaling of inputs, compared by risks on rows left out."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from consistruct._sparse import to_dense
from consistruct.learning.models.features.feature_maps import (
    FeatureMap,
    KernelFeatures,
    LinearFeatures,
    Scaling,
    dense_rows,
)
from consistruct.learning.models.features.feature_options import FeatureOptions
from consistruct.learning.models.features.kernels import Kernel, distances, median_bandwidth
from consistruct.learning.models.ridge.ridge_path import LOSS_SLACK
from consistruct.protocols import FloatArray

__all__ = [
    "FIRST_ROWS",
    "SEARCH_ROWS",
    "Risks",
    "Trial",
    "kernel_or_inputs",
    "prefer_first",
    "search_kernel",
]

logger = logging.getLogger(__name__)

SEARCH_ROWS = 1024  # rows on which kernels are compared
FIRST_ROWS = 512  # rows on which all of them are, if there are more
KEPT_SHARE, FEWEST = 0.25, 3  # of the candidates that go on, and for each scaling at least
SAME_RISK = 1e-6  # risks that differ by less, relatively, differ by rounding
BANDWIDTH_FACTORS = (0.25, 0.5, 0.7, 1.0, 2.0, 4.0)  # times the median distance

Risks = tuple[float, float, float]  # task loss, surrogate risk, standard error of the task loss


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
    X: Any,  # (n, d), what inputs are standardised by
    weight: FloatArray,  # (n,)
    sample: Any,  # (m, d), where the median distance is taken
    trials: Sequence[Trial],  # of growing size: the best of each go on to the next
) -> tuple[Kernel, Scaling, Risks | None]:
    """The best kernel and scaling by the last trial, and its risks there (None: no choice).

    Of the candidates within one standard error of the least task loss, standardised ones come
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
        "features: %s, standardised: %s, task loss on held-out rows %.4f",
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

    With features="auto" the inputs themselves, standardised, are a candidate too: None stands for
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

    def judge(kernel: Kernel, known: FloatArray) -> Risks:
        with threadpool_limits(1 if n_jobs != 1 else None):
            return trial.risks(SampleKernel(kernel, known))

    found: list[Risks] = []
    for (name, _), group in itertools.groupby(candidates, lambda pair: (pair[0].name, id(pair[1]))):
        pairs = list(group)
        inputs = pairs[0][1](trial.rows)
        known = distances(name, inputs, dense_rows(inputs))
        found += Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(judge)(kernel, known) for kernel, _ in pairs
        )
    return found


def _scalings(options: FeatureOptions, X: Any, weight: FloatArray) -> list[Scaling]:
    if options.standardize == "auto":
        return [Scaling(), Scaling.standard(X, weight)]
    return [Scaling.standard(X, weight) if options.standardize else Scaling()]


def _kernels(name: str, options: FeatureOptions, inputs: FloatArray) -> list[Kernel]:
    """One per bandwidth."""
    if options.bandwidth == "auto":
        centre = median_bandwidth(inputs, name)
        widths = [factor * centre for factor in BANDWIDTH_FACTORS]
    elif options.bandwidth == "median":
        widths = [median_bandwidth(inputs, name)]
    else:
        widths = [options.bandwidth]
    return [
        Kernel(name, width, options.degree, options.coef0)  # type: ignore[arg-type]
        for width in widths
    ]
