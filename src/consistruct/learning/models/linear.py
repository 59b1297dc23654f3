"""Linear: scores that are linear in features, trained by any surrogate of `surrogates/`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from consistruct._validation import single_alpha
from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import CapabilityError
from consistruct.learning.models.base import TargetModel
from consistruct.learning.models.features.feature_choice import choose_features
from consistruct.learning.models.features.feature_maps import (
    FeatureOptions,
    ScoreMap,
    check_unused_feature_params,
)
from consistruct.learning.models.solvers.averaged_sgd import AveragedSGD
from consistruct.learning.models.solvers.choice import make_solver
from consistruct.learning.models.solvers.sgd_run import SGDRun
from consistruct.learning.models.solvers.sgd_state import SGDState
from consistruct.learning.statistics import TargetValues
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, LabelArray
from consistruct.structures import Dense, Full, Structure
from consistruct.surrogates import BaseSurrogate, make_surrogate

__all__ = ["Linear"]


class Linear(TargetModel):
    """θ(x) = Wᵀφ(x) + b, with W of least (1/N) Σ_i w_i Φ(θ(x_i), y_i) + (α/2)‖W‖².

    Choose it where probabilities should come from a convex fit on few or sparse features: with
    ``surrogate="log"`` it is multinomial logistic regression. Kernels and closed forms: `Ridge`.

    Parameters
    ----------
    surrogate : str or surrogate class
        Φ: any of `consistruct.surrogates.SURROGATES` that can be trained: "log", "logistic",
        "exponential", "quadratic", "square", "sparsemax", and "hinge", "softmax-margin",
        "max-min-margin", which only rank.
    decoding : {"bayes", "argmax"}
        "bayes" decides by the expected losses that the surrogate's link tells; "argmax" by the
        scores themselves, as surrogates that only rank must.
    features : {"linear", "auto", "rbf", "laplace", "poly", "nystroem", "random"} or transformer
        φ. "auto" is linear for sparse or very wide inputs and Nyström features otherwise.
    kernel, bandwidth, degree, coef0, n_components
        Of the features, as in `Ridge`.
    solver : {"lbfgs", "sgd", "paper_sgd"} or solver object
    alpha : "auto" or float
        α, on one scale for tables, sequences and rankings: against the mean over examples. "auto"
        is c·E‖φ‖²/N, with the c of 1, 0.1, 0.01, 0.001 that is best on held-out rows.
    scores : None, "full", ScoreSpace or (k, r) array
        Where θ lives; None is the loss's own score space.
    fit_intercept : bool
    standardize : "auto" or bool
        Whether features are standardized first; "auto" leaves linear features as they are.

    Attributes
    ----------
    surrogate_ : BaseSurrogate
    coef_, intercept_ : (width, n_features_out) and (width,) arrays
    alpha_ : float
    path_ : dict
    n_iter_ : int

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = cs.TaskLossClassifier(model=cs.models.Linear("log")).fit(X, y)
    >>> model.predict(X[:2]), bool(model.predict_proba(X[:1])[0, 0] > 0.9)
    (array([0, 0]), True)
    """

    statistic_: Statistic

    def __init__(
        self,
        surrogate: Any = "log",
        *,
        decoding: str = "bayes",
        features: Any = "linear",
        kernel: str = "auto",
        bandwidth: Any = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int | None = None,
        solver: Any = "lbfgs",
        alpha: Any = "auto",
        scores: Any = None,
        fit_intercept: bool = True,
        standardize: Any = "auto",
    ) -> None:
        self.surrogate = surrogate
        self.decoding = decoding
        self.features = features
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.solver = solver
        self.alpha = alpha
        self.scores = scores
        self.fit_intercept = fit_intercept
        self.standardize = standardize

    # --- learning ---

    def fit(
        self,
        X: Any,
        codes: LabelArray,
        statistic: Statistic,
        *,
        sample_weight: FloatArray | None = None,
        groups: Any = None,
        rng: np.random.Generator,
    ) -> Self:
        solver = make_solver(self.solver)
        single_alpha(self.alpha)
        self._prepare(statistic)
        weight = np.ones(len(codes)) if sample_weight is None else sample_weight
        self.score_map_ = self._score_map(X, codes, weight, rng)
        found = solver.solve(
            self.surrogate_,
            self.score_map_,
            X,
            codes,
            alpha=self.alpha,
            sample_weight=weight,
            rng=rng,
        )
        self.weights_ = found.weights
        self.alpha_, self.n_iter_, self.path_ = found.alpha, found.n_iter, found.path
        self.__dict__.pop("sgd_state_", None)
        return self

    @property
    def can_stream(self) -> bool:  # type: ignore[override]
        return self.solver == "sgd" or isinstance(self.solver, AveragedSGD)

    def partial_fit(
        self,
        X: Any,
        codes: LabelArray,
        statistic: Statistic,
        *,
        sample_weight: FloatArray | None = None,
        rng: np.random.Generator,
    ) -> Self:
        """One epoch of SGD over a batch; features and step are chosen on the first one."""
        solver = make_solver(self.solver)
        if not isinstance(solver, AveragedSGD):
            raise ValueError(f"partial_fit needs solver='sgd', got {self.solver!r}")
        weight = np.ones(len(codes)) if sample_weight is None else sample_weight
        state: SGDState | None = getattr(self, "sgd_state_", None)
        if state is None:
            self._prepare(statistic)
            self.score_map_ = self._score_map(X, codes, weight, rng)
        problem = SGDRun(
            solver,
            self.surrogate_,
            self.score_map_,
            X,
            codes,
            weight,
            rng,
            alpha=self.alpha,
            state=state,
        )
        problem.epoch(rng)
        self.sgd_state_ = problem.state
        self.weights_ = problem.weights()
        self.alpha_, self.n_iter_, self.path_ = problem.state.alpha, problem.state.epoch, {}
        return self

    def _prepare(self, statistic: Statistic) -> None:
        """The surrogate for the loss of the statistic, and the statistic that its link gives."""
        loss = statistic.loss
        if self.decoding not in ("bayes", "argmax"):
            raise ValueError(f"decoding must be 'bayes' or 'argmax', got {self.decoding!r}")
        self.surrogate_: BaseSurrogate = make_surrogate(
            self.surrogate, loss, _score_space(self.scores, loss)
        )
        probabilities = hasattr(self.surrogate_, "probabilities")
        classes = probabilities and statistic.of_classes
        self.statistic_ = statistic if classes else TargetValues(loss)
        if self.decoding == "bayes" and not self.estimates:
            raise ValueError(
                "decoding='bayes' needs a surrogate that estimates expected losses, but for "
                f"{loss!r}, {self.surrogate!r} only ranks predictions; use decoding='argmax'"
            )

    def _score_map(
        self, X: Any, codes: LabelArray, weight: FloatArray, rng: np.random.Generator
    ) -> ScoreMap:
        check_unused_feature_params(self)
        options = FeatureOptions(
            self.features,
            self.kernel,
            self.bandwidth,
            self.degree,
            self.coef0,
            self.n_components,
            self.standardize,
            self.fit_intercept,
        )
        features = choose_features(
            options,
            X,
            codes,
            weight,
            self.statistic_,  # least squares on it rank kernels, whatever is trained
            expansions=False,
            rng=rng,
        )
        return ScoreMap(features, fit_intercept=self.fit_intercept)

    # --- predicting ---

    @property
    def estimates(self) -> bool:  # type: ignore[override]
        """Whether the surrogate's link tells expected targets."""
        surrogate: BaseSurrogate | None = getattr(self, "surrogate_", None)
        if surrogate is None:
            return True
        # where the offset depends on the true label, only a distribution of the true labels tells
        # its mean
        known = hasattr(surrogate, "probabilities") or (
            TargetValues(surrogate.loss).constant_offset is not None
        )
        return surrogate.has_link and known

    @property
    def decides(self) -> bool:  # type: ignore[override]
        """Whether predictions have the highest score, rather than the least expected loss."""
        return self.decoding == "argmax"

    def scores_of(self, X: Any) -> FloatArray:
        """θ(x), (n, width of the surrogate's score space)."""
        check_is_fitted(self, "weights_")
        return self.score_map_.apply(self.weights_, X)

    def expected(self, X: Any) -> FloatArray:
        """E[τ(y) | x] through the surrogate's link, (n, width)."""
        theta = self.scores_of(X)
        if not self.estimates:
            raise CapabilityError(
                self,
                "expected",
                "expected losses",
                f"surrogate={self.surrogate!r} only ranks predictions; use 'log' or Ridge",
            )
        if self.statistic_.of_classes:
            distribution: FloatArray = self.surrogate_.probabilities(theta)  # type: ignore[attr-defined]
            return distribution
        target = self.surrogate_.expected_target(theta)
        if self.statistic_.open_offset:
            return np.column_stack([target, self.surrogate_.expected_offset(theta)])
        return target

    def decisions(self, X: Any) -> LabelArray:
        """Codes of the predictions: the highest score, or the least expected loss ("bayes")."""
        if self.decides:
            return self.surrogate_.decode(self.scores_of(X))
        return self.statistic_.decode(self.expected(X))

    @property
    def coef_(self) -> FloatArray:
        """Weights of the features, (width, n_features_out)."""
        check_is_fitted(self, "weights_")
        return self.score_map_.split(self.weights_)[0].T

    @property
    def intercept_(self) -> FloatArray:
        """(width,)."""
        check_is_fitted(self, "weights_")
        return self.score_map_.split(self.weights_)[1]


def _score_space(scores: Any, loss: Loss) -> Structure | None:
    if scores is None or isinstance(scores, Structure):
        return scores
    if isinstance(scores, str):
        if scores != "full":
            raise ValueError(
                f"scores must be None, 'full', a score space or an array, got {scores!r}"
            )
        return Full(loss)
    return Dense(np.asarray(scores), over=loss.predictions)
