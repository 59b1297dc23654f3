"""Ridge on few landmarks, its kernel found by comparing whole fits on left-out queries.

With few landmarks a whole fit, every query left out exactly, takes a fraction of a second. So
kernels are compared on all queries and not on a sample: few queries tell them apart badly.
"""

from __future__ import annotations

import logging

import numpy as np

from consistruct.learning.models.features.feature_choice import prefer_first
from consistruct.learning.models.features.feature_maps import NystroemFeatures, Scaling
from consistruct.learning.models.features.kernels import Kernel, median_bandwidth
from consistruct.learning.models.items.feature_search import some_queries
from consistruct.learning.models.items.learners import TrainingQueries
from consistruct.learning.models.items.left_out import LeftOutScores
from consistruct.learning.models.items.ridge import (
    SELECTION_ITEMS,
    JudgedFit,
    RidgeLearner,
    RidgeScores,
)

__all__ = ["LANDMARKS", "LandmarkRidge"]

logger = logging.getLogger(__name__)

LANDMARKS = 512


class LandmarkRidge(RidgeLearner):
    """Ridge on kernel values with random items, for dense items.

    First the kernels are compared at their median distance, then the better one at twice that
    bandwidth, and at half of it if twice is no better. What `options` fixes is not searched.
    """

    def fit_and_leave_out(
        self, queries: TrainingQueries, rng: np.random.Generator
    ) -> tuple[RidgeScores, LeftOutScores]:
        options, problem = self.options, queries.problem
        X = problem.items
        chosen = some_queries(problem.offsets, SELECTION_ITEMS, rng)
        scaling = Scaling.standard(X, problem.item_weight) if options.standardize else Scaling()
        drawn = rng.permutation(X.shape[0])[: options.components()]
        landmarks, sample = X[np.sort(drawn)], scaling(X[drawn[:LANDMARKS]])

        def judged(name: str, width: float) -> JudgedFit:
            kernel = Kernel(name, width, options.degree, options.coef0)  # type: ignore[arg-type]
            found = self._judged(queries, NystroemFeatures(kernel, landmarks, scaling), chosen)
            logger.info("items: %s, left-out task loss %.4f, risk %.3g", kernel, *found.risks[:2])
            return found

        found: dict[tuple[str, float], JudgedFit] = {}
        best: tuple[str, float] | None = None

        def improves(name: str, width: float) -> bool:
            nonlocal best
            found[name, width] = new = judged(name, width)
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
        return found[best].fitted, found[best].left_out
