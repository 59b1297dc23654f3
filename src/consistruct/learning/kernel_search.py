"""Kernel, bandwidth and scaling of inputs, compared by risks on rows left out."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from consistruct._sparse import to_dense
from consistruct.learning.feature_maps import KernelFeatures, Scaling, dense_rows
from consistruct.learning.feature_options import FeatureOptions
from consistruct.learning.kernels import Kernel, distances, median_bandwidth
from consistruct.protocols import FloatArray

__all__ = ["SEARCH_ROWS", "Risks", "SampleKernel", "search_kernel"]

logger = logging.getLogger(__name__)

SEARCH_ROWS = 1024  # rows on which bandwidths are compared
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


def search_kernel(
    names: tuple[str, ...],
    options: FeatureOptions,
    X: Any,  # (n, d), what inputs are standardised by
    weight: FloatArray,  # (n,)
    sample: Any,  # (m, d), where the median distance is taken
    rows: Any,  # (m, d), on which candidates are compared
    risks: Callable[[KernelFeatures], Risks],
) -> tuple[Kernel, Scaling]:
    """The best kernel and scaling by `risks`, those of rows left out at the best penalty.

    Of the candidates within one standard error of the least task loss, standardised ones come
    first (the units of the columns should not matter unless the data say so), then the least
    surrogate risk, which has the smaller variance.
    """
    groups = [
        (scaling, _kernels(name, options, np.asarray(to_dense(scaling(sample)), np.float64)))
        for name, scaling in itertools.product(names, _scalings(options, X, weight))
    ]
    if len(groups) == 1 and len(groups[0][1]) == 1:
        scaling, (kernel,) = groups[0]
        return kernel, scaling
    n_jobs = options.n_jobs or 1

    def judge(kernel: Kernel, known: FloatArray) -> Risks:
        with threadpool_limits(1 if n_jobs != 1 else None):
            return risks(SampleKernel(kernel, known))

    candidates, scores = [], []
    for scaling, kernels in groups:
        inputs = scaling(rows)
        known = distances(kernels[0].name, inputs, dense_rows(inputs))
        scores += Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(judge)(kernel, known) for kernel in kernels
        )
        candidates += [(kernel, scaling) for kernel in kernels]
    task, risk, error = np.array(scores).T
    tied = task <= task.min() + error[task.argmin()]
    standard = np.array([scaling.scale is not None for _, scaling in candidates])
    if (tied & standard).any():
        tied &= standard
    best = int(np.argmin(np.where(tied, risk, np.inf)))
    kernel, scaling = candidates[best]
    logger.info(
        "features: %s, standardised: %s, task loss of rows left out %.4f",
        kernel,
        scaling.scale is not None,
        task[best],
    )
    return kernel, scaling


def _scalings(options: FeatureOptions, X: Any, weight: FloatArray) -> list[Scaling]:
    if options.standardize is False:
        return [Scaling()]
    standard = Scaling.standard(X, weight)
    return [standard] if options.standardize is True else [Scaling(), standard]


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
