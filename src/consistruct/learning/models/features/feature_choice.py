"""From the `features` argument of an estimator to a fitted feature map."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct._sparse import is_sparse
from consistruct.learning.models.features.feature_maps import (
    FeatureMap,
    KernelCentres,
    KernelFeatures,
    LinearFeatures,
    NystroemFeatures,
    RandomFeatures,
    Scaling,
)
from consistruct.learning.models.features.feature_options import (
    FeatureOptions,
    transformer_features,
)
from consistruct.learning.models.features.kernel_search import (
    FIRST_ROWS,
    SEARCH_ROWS,
    Risks,
    Trial,
    kernel_or_inputs,
)
from consistruct.learning.models.features.kernels import KERNELS, Kernel
from consistruct.learning.models.solvers.score_map import ScoreMap
from consistruct.learning.statistics import Statistic
from consistruct.protocols import FloatArray, LabelArray

__all__ = ["choose_features"]

EXACT_ROWS = 12_288  # "auto" takes the exact kernel up to here: n² numbers, n³ operations


def choose_features(
    options: FeatureOptions,
    X: Any,
    true: LabelArray,
    weight: FloatArray,
    statistic: Statistic,
    *,
    expansions: bool,
    on_landmarks: type[NystroemFeatures | KernelFeatures | KernelCentres] = NystroemFeatures,
    rng: np.random.Generator,
) -> FeatureMap:
    """Fit the feature map.

    ``expansions`` says whether the solver takes kernel expansions over all examples; others get
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
