"""Ridge on few landmarks, its kernel found by comparing whole fits on out-of-fold queries.

With few landmarks a whole fit, every query left out exactly, takes a fraction of a second. So
kernels are compared on all queries and not on a sample: few queries tell them apart badly.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from consistruct.learning.models.features.approximations import NystroemFeatures
from consistruct.learning.models.features.feature_choice import prefer_first
from consistruct.learning.models.features.feature_maps import (
    FeatureMap,
    Kernel,
    Scaling,
    distances,
    median_bandwidth,
)
from consistruct.learning.models.items.learners import TrainingQueries
from consistruct.learning.models.items.out_of_fold import OutOfFoldScores
from consistruct.learning.models.items.ridge import (
    SELECTION_ITEMS,
    BestFit,
    RidgeLearner,
    RidgeScores,
    some_queries,
)
from consistruct.protocols import FloatArray

__all__ = ["LANDMARKS", "LandmarkRidge"]

LANDMARKS = 384
KNOWN_BYTES = 256 * 2**20  # distances that are kept for the next bandwidth


class _OfDistances(FeatureMap):
    """φ(x) of landmarks from the distances between x and them: many bandwidths share these."""

    def __init__(self, features: NystroemFeatures) -> None:
        self.kernel, self.whitening = features.kernel, features.whitening
        self.n_outputs = features.n_outputs

    def transform(self, X: Any) -> FloatArray:
        return self.kernel.from_distances(np.array(X)) @ self.whitening


class LandmarkRidge(RidgeLearner):
    """Ridge on kernel values with random items, for dense items.

    First the kernels are compared at their median distance, then the better one at twice that
    bandwidth, and at half of it if twice is no better. What `options` fixes is not searched.
    """

    def fit_and_leave_out(
        self, queries: TrainingQueries, rng: np.random.Generator
    ) -> tuple[RidgeScores, OutOfFoldScores]:
        queries = queries.toward_grades(self.grade_share)
        options, problem = self.options, queries.problem
        X = problem.items
        chosen = some_queries(problem.offsets, SELECTION_ITEMS, rng)
        scaling = Scaling.standard(X, problem.item_weight) if options.standardize else Scaling()
        drawn = rng.permutation(X.shape[0])[: options.components()]
        landmarks, sample = X[np.sort(drawn)], scaling(X[drawn[:LANDMARKS]])

        small = 8 * X.shape[0] * len(landmarks) <= KNOWN_BYTES
        known: dict[str, TrainingQueries] = {}

        def best_fit(name: str, width: float) -> BestFit:
            kernel = Kernel(name, width, options.degree, options.coef0)  # type: ignore[arg-type]
            features = NystroemFeatures(kernel, landmarks, scaling)
            if not small:
                return self._best_fit(queries, features, chosen)
            if name not in known:
                items = distances(name, scaling(X), features.landmarks)
                known[name] = replace(queries, problem=replace(problem, items=items))
            found = self._best_fit(known[name], _OfDistances(features), chosen)
            found.fitted.feature_map = features
            return found

        found: dict[tuple[str, float], BestFit] = {}
        best: tuple[str, float] | None = None

        def improves(name: str, width: float) -> bool:
            nonlocal best
            found[name, width] = new = best_fit(name, width)
            if best is not None and prefer_first(found[best].risks, new.risks):
                return False
            best = name, width
            return True

        for name in options.kernels("nystroem", X):
            fixed = not isinstance(options.bandwidth, str)
            improves(name, options.bandwidth if fixed else median_bandwidth(sample, name))
        assert best is not None
        name, width = best
        if options.bandwidth == "auto" and not improves(name, 2.0 * width):
            improves(name, 0.5 * width)
        return found[best].fitted, found[best].out_of_fold
