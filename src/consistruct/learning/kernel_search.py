"""Bandwidth of a kernel and scaling of its inputs, compared by risks on rows left out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from consistruct._sparse import to_dense
from consistruct.learning.feature_maps import Scaling
from consistruct.learning.feature_options import FeatureOptions
from consistruct.learning.kernels import Kernel, median_bandwidth
from consistruct.protocols import FloatArray

__all__ = ["SEARCH_ROWS", "search_kernel"]

logger = logging.getLogger(__name__)

SEARCH_ROWS = 1024  # rows on which bandwidths are compared
BANDWIDTH_FACTORS = (0.25, 0.5, 0.7, 1.0, 2.0, 4.0)  # times the median distance

Risks = tuple[float, float, float]  # task loss, surrogate risk, standard error of the task loss


def search_kernel(
    name: str,
    options: FeatureOptions,
    X: Any,  # (n, d), what inputs are standardised by
    weight: FloatArray,  # (n,)
    sample: Any,  # (m, d), where the median distance is taken
    risks: Callable[[Kernel, Scaling], Risks],
) -> tuple[Kernel, Scaling]:
    """The best kernel and scaling by `risks`, those of rows left out at the best penalty.

    Of the candidates within one standard error of the least task loss, standardised ones come
    first (the units of the columns should not matter unless the data say so), then the least
    surrogate risk, which has the smaller variance.
    """
    candidates = _candidates(name, options, X, weight, sample)
    if len(candidates) == 1:
        return candidates[0]
    n_jobs = options.n_jobs or 1

    def judge(kernel: Kernel, scaling: Scaling) -> Risks:
        with threadpool_limits(1 if n_jobs != 1 else None):
            return risks(kernel, scaling)

    scores = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(judge)(kernel, scaling) for kernel, scaling in candidates
    )
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


def _candidates(
    name: str, options: FeatureOptions, X: Any, weight: FloatArray, sample: Any
) -> list[tuple[Kernel, Scaling]]:
    scalings = {
        "auto": [Scaling(), Scaling.standard(X, weight)],
        True: [Scaling.standard(X, weight)],
        False: [Scaling()],
    }[options.standardize]
    candidates = []
    for scaling in scalings:
        inputs = np.asarray(to_dense(scaling(sample)), dtype=np.float64)
        if options.bandwidth == "auto":
            centre = median_bandwidth(inputs, name)
            widths = [factor * centre for factor in BANDWIDTH_FACTORS]
        elif options.bandwidth == "median":
            widths = [median_bandwidth(inputs, name)]
        else:
            widths = [options.bandwidth]
        candidates += [
            (Kernel(name, width, options.degree, options.coef0), scaling)  # type: ignore[arg-type]
            for width in widths
        ]
    return candidates
