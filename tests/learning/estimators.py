"""Estimators with a quick model whose settings are given beside those of the estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import consistruct as cs
from consistruct.learning.models.linear import Linear
from consistruct.learning.models.ridge.closed_form import ClosedForm, RidgeFit
from consistruct.learning.models.ridge.model import Ridge
from consistruct.learning.statistics import TargetValues
from consistruct.surrogates import QuadraticSurrogate

OF_ESTIMATORS = {"cv", "class_weight", "time_limit", "random_state", "n_jobs", "verbose", "rows"}


def _split(options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    own = {name: value for name, value in options.items() if name in OF_ESTIMATORS}
    settings = {name: value for name, value in options.items() if name not in OF_ESTIMATORS}
    return (Linear if "surrogate" in settings else Ridge)(**settings), own


def classifier(loss: Any = "zero_one", **options: Any) -> cs.TaskLossClassifier:
    """TaskLossClassifier with Ridge, or with Linear if a surrogate is named."""
    model, own = _split(options)
    return cs.TaskLossClassifier(loss, model, **own)


def predictor(loss: Any = "hamming", **options: Any) -> cs.StructuredPredictor:
    """StructuredPredictor with Ridge, or with Linear if a surrogate is named."""
    model, own = _split(options)
    return cs.StructuredPredictor(loss, model, **own)


class ClosedScores:
    """The closed form in terms of scores θ = −E[u], as the paper writes it."""

    def __init__(self, *, alpha: Any = "auto", regularizer: str = "gram", **options: Any) -> None:
        self.settings = {"alpha": alpha, "regularizer": regularizer}
        self.solver = ClosedForm(**options)

    def solve(
        self,
        surrogate: QuadraticSurrogate,
        score_map: Any,
        X: Any,
        true: Any,
        *,
        sample_weight: Any = None,
        rng: Any,
    ) -> RidgeFit:
        """Weights of scores; the path and the penalty as the solver gives them."""
        fit = self.solver.solve(
            TargetValues(surrogate.loss, surrogate.scores),
            score_map,
            X,
            true,
            sample_weight=sample_weight,
            rng=rng,
            **self.settings,
        )
        return replace(fit, weights=-fit.weights)
