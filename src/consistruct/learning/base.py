"""What the estimators share: parameters that reach into losses, fitting, scores, decisions."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from consistruct._members import Member
from consistruct._validation import check_cost_scale
from consistruct.learning.averaged_sgd import AveragedSGD
from consistruct.learning.contrast import without_contrast
from consistruct.learning.cost_tables import cost_table, is_cost_table
from consistruct.learning.feature_choice import choose_features
from consistruct.learning.feature_options import FeatureOptions
from consistruct.learning.label_encoding import (
    ClassLabels,
    LabelEncoding,
    PartLabels,
    prepare_labels,
)
from consistruct.learning.magnitudes import input_scale, scaled_inputs
from consistruct.learning.score_map import ScoreMap
from consistruct.learning.sgd_run import SGDRun
from consistruct.learning.sgd_state import SGDState
from consistruct.learning.solver import BaseSolver, SolverResult
from consistruct.learning.solvers import make_solver, takes_expansions
from consistruct.learning.verbosity import verbosity
from consistruct.learning.weights import generator
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, LabelArray
from consistruct.surrogates import BaseSurrogate, QuadraticSurrogate, make_surrogate

__all__ = ["BasePredictor", "can_stream"]

logger = logging.getLogger(__name__)

THETA_BYTES = 64 * 2**20  # scores that are decoded at a time


class BasePredictor(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Shared by `TaskLossClassifier` and `StructuredPredictor`, which state the parameters."""

    # learned; the annotations are for readers and type checkers
    loss_: Loss
    surrogate_: BaseSurrogate
    label_encoding_: LabelEncoding
    feature_map_: Any
    coef_: FloatArray  # (width, n_features_out)
    intercept_: FloatArray  # (width,)
    alpha_: float
    n_iter_: int
    path_: dict[str, FloatArray]
    contrast_: float
    input_scale_: float = 1.0  # what extreme inputs are divided by
    centre_: FloatArray | None = None  # (width,); rankings and sequences have none
    sgd_state_: SGDState  # of partial_fit only
    _stream: np.random.Generator

    def __init__(
        self,
        loss: Any,
        surrogate: Any,
        decoding: str,
        scores: Any,
        features: Any,
        kernel: str,
        bandwidth: Any,
        degree: int,
        coef0: float,
        n_components: int | None,
        standardize: Any,
        solver: Any,
        alpha: Any,
        regularizer: str,
        fit_intercept: bool,
        random_state: Any,
        n_jobs: int | None,
        verbose: int,
    ) -> None:
        self.loss = loss
        self.surrogate = surrogate
        self.decoding = decoding
        self.scores = scores
        self.features = features
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.standardize = standardize
        self.solver = solver
        self.alpha = alpha
        self.regularizer = regularizer
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # --- parameters that reach into frozen members: loss__eta, solver__batch_size ---

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with `deep`, also the fields of a loss or solver object."""
        params: dict[str, Any] = super().get_params(deep)
        if deep:
            for name in ("loss", "solver", "scores"):
                member = getattr(self, name)
                if isinstance(member, Member):
                    for field in dataclasses.fields(member):  # type: ignore[arg-type]
                        params[f"{name}__{field.name}"] = getattr(member, field.name)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``loss__eta=0.3`` replaces the frozen loss by one with that field."""
        plain: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, field = key.partition("__")
            if field and name in ("loss", "solver", "scores"):
                nested.setdefault(name, {})[field] = value
            else:
                plain[key] = value
        super().set_params(**plain)
        for name, changes in nested.items():
            member = getattr(self, name)
            if not isinstance(member, Member):
                raise ValueError(
                    f"{name}__{next(iter(changes))} changes a field of a {name} object, but {name} "
                    f"is {member!r}; give an object first"
                )
            known = [field.name for field in dataclasses.fields(member)]  # type: ignore[arg-type]
            unknown = [field for field in changes if field not in known]
            if unknown:
                raise ValueError(
                    f"{type(member).__name__} has no field {unknown[0]!r}; "
                    f"its fields are {', '.join(known)}"
                )
            setattr(self, name, dataclasses.replace(member, **changes))  # type: ignore[type-var]
        return self

    def stored_parameters(self) -> dict[str, Any]:
        """Parameters as a model file keeps them: a table of costs becomes a loss."""
        params: dict[str, Any] = super().get_params(deep=False)
        if is_cost_table(params["loss"]):
            params["loss"] = cost_table(params["loss"])
        return params

    # --- fitting ---

    def _prepare(self, y: Any, classes: Any, structured: bool) -> LabelArray:
        """Settle loss, surrogate and label encoding; the codes of y."""
        if self.decoding not in ("argmax", "bayes"):
            raise ValueError(f"decoding must be 'argmax' or 'bayes', got {self.decoding!r}")
        self.loss_, self.label_encoding_, codes = prepare_labels(
            self.loss, y, classes=classes, structured=structured
        )
        self._settle_surrogate()
        return codes

    def _settle_surrogate(self) -> None:
        name = "quadratic" if self.surrogate == "auto" else self.surrogate
        check_cost_scale(self.loss_.max_value)
        self.surrogate_ = make_surrogate(name, self.loss_, self.scores)

    def _encode_again(self, y: Any) -> LabelArray:
        """Codes of a later batch; labels that the first call did not announce are refused."""
        codes = self.label_encoding_.encode(y, self.loss_)
        if isinstance(self.label_encoding_, ClassLabels | PartLabels) and (codes < 0).any():
            unseen = np.asarray(y)[codes.reshape(np.shape(y)) < 0].tolist()[0]
            raise ValueError(
                f"y holds {unseen!r}, which the first call of partial_fit did not announce; "
                f"give all classes there"
            )
        return codes

    def _feature_options(self) -> FeatureOptions:
        return FeatureOptions(
            features=self.features,
            kernel=self.kernel,
            bandwidth=self.bandwidth,
            degree=self.degree,
            coef0=self.coef0,
            n_components=self.n_components,
            standardize=self.standardize,
            fit_intercept=self.fit_intercept,
            n_jobs=self.n_jobs,
        )

    def _fit_weights(self, X: Any, codes: LabelArray, weight: FloatArray) -> None:
        """Choose features, solve, and store what was learned."""
        rng = generator(self.random_state)
        with verbosity(self.verbose):
            positive = weight > 0
            if not positive.all():
                X, codes, weight = X[positive], codes[positive], weight[positive]
            self.input_scale_ = input_scale(X)
            X = scaled_inputs(X, self.input_scale_)
            solver = self._make_solver(X)
            self.feature_map_ = choose_features(
                self._feature_options(),
                X,
                codes,
                weight,
                QuadraticSurrogate(self.loss_, self.scores),
                expansions=takes_expansions(solver),
                rng=rng,
            )
            score_map = ScoreMap(self.feature_map_, fit_intercept=self.fit_intercept)
            result = solver.solve(
                self.surrogate_, score_map, X, codes, sample_weight=weight, rng=rng
            )
        self._store(score_map, result)
        for leftover in ("sgd_state_", "_stream"):  # of an earlier partial_fit
            if hasattr(self, leftover):
                delattr(self, leftover)

    def _partial_fit_weights(self, X: Any, codes: LabelArray, weight: FloatArray) -> None:
        """One epoch of averaged SGD over these rows, from where the last call stopped."""
        solver = AveragedSGD(alpha=self.alpha) if isinstance(self.solver, str) else self.solver
        positive = weight > 0
        X, codes, weight = X[positive], codes[positive], weight[positive]
        first = not hasattr(self, "sgd_state_")
        if first:
            self.input_scale_ = input_scale(X)
        X = scaled_inputs(X, self.input_scale_)
        if first:
            rng = generator(self.random_state)
            self.feature_map_ = choose_features(
                self._feature_options(),
                X,
                codes,
                weight,
                QuadraticSurrogate(self.loss_, self.scores),
                expansions=False,
                rng=rng,
            )
        else:
            rng = self._stream
        score_map = ScoreMap(self.feature_map_, fit_intercept=self.fit_intercept)
        state = None if first else self.sgd_state_
        run = SGDRun(solver, self.surrogate_, score_map, X, codes, weight, rng, state)
        with verbosity(self.verbose):
            risk = run.epoch(rng)
            logger.info("SGD batch %d: risk %.6g", run.state.epoch, risk)
        self.sgd_state_ = run.state
        self._stream = rng
        self._store(score_map, SolverResult(run.weights(), run.state.alpha, run.state.epoch))

    def _store(self, score_map: ScoreMap, result: SolverResult) -> None:
        coef, self.intercept_ = score_map.split(result.weights)
        self.coef_ = np.ascontiguousarray(coef.T)
        self.alpha_ = result.alpha
        self.n_iter_ = result.n_iter
        self.path_ = result.path
        self.contrast_ = result.contrast
        self.centre_ = result.centre

    def _make_solver(self, X: Any) -> BaseSolver:
        return make_solver(
            self.solver,
            self.surrogate_,
            X.shape,
            features=self.features,
            n_components=self.n_components,
            alpha=self.alpha,
            regularizer=self.regularizer,
        )

    # --- predicting ---

    def _inputs(self, X: Any) -> Any:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        return scaled_inputs(X, self.input_scale_)

    def score_parameters(self, X: Any) -> FloatArray:
        """θ(x), (n, width): the parameters of the score of every prediction, with their contrast.

        Parameters
        ----------
        X : (n, n_features) array or CSR

        Returns
        -------
        theta : (n, width) array
        """
        return self._score(self._inputs(X), self._weights())

    def _weights(self) -> FloatArray:
        return np.vstack([self.coef_.T, self.intercept_])

    def _score(self, inputs: Any, weights: FloatArray) -> FloatArray:
        return ScoreMap(self.feature_map_, fit_intercept=True).apply(weights, inputs)

    def _by_chunks(self, X: Any, answer: Callable[[FloatArray], LabelArray]) -> LabelArray:
        """`answer` of θ for all rows; θ itself, which may be wide, is held for few at a time."""
        inputs, weights = self._inputs(X), self._weights()
        size = max(1, THETA_BYTES // (8 * weights.shape[1]))
        parts = [
            answer(self._score(inputs[start : start + size], weights))
            for start in range(0, inputs.shape[0], size)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _predict_codes(self, theta: FloatArray) -> LabelArray:
        return self.surrogate_.decode(theta, self.decoding)

    def predict(self, X: Any) -> Any:
        """Predictions for the rows of X, written like the labels of `fit`.

        Parameters
        ----------
        X : (n, n_features) array or CSR

        Returns
        -------
        y : (n,) or (n, …) array
        """
        codes = self._by_chunks(X, self._predict_codes)
        return self.label_encoding_.decode(codes)

    def predict_expected_loss(self, X: Any) -> FloatArray:
        """Estimated loss E[L(ŷ, y) | x] of each prediction, (n,): how sure the model is.

        Parameters
        ----------
        X : (n, n_features) array or CSR

        Returns
        -------
        expected : (n,) array
            Not clipped to the range of the loss: the estimate is linear in the scores.
        """

        def expected(theta: FloatArray) -> FloatArray:
            codes = self._predict_codes(theta)
            if self.centre_ is not None:
                theta = without_contrast(theta, self.centre_, self.contrast_)
            return self.surrogate_.expected_loss(theta, codes)

        return self._by_chunks(X, expected)

    def task_losses(self, X: Any, y: Any) -> FloatArray:
        """Task loss of each row, (n,); a truth never seen in training counts as wrong.

        Parameters
        ----------
        X : (n, n_features) array or CSR
        y : (n,) or (n, …) array
            True labels.

        Returns
        -------
        losses : (n,) array
        """
        codes = self._by_chunks(X, self._predict_codes)
        return self.label_encoding_.losses(self.loss_, codes, y)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the mean task loss: greater is better, 0 is perfect.

        Parameters
        ----------
        X : (n, n_features) array or CSR
        y : (n,) or (n, …) array
            True labels.
        sample_weight : (n,) array, optional

        Returns
        -------
        score : float
        """
        return -float(np.average(self.task_losses(X, y), weights=sample_weight))


def can_stream(estimator: BasePredictor) -> bool:
    """Whether partial_fit exists: the solver is averaged SGD, or may be."""
    if estimator.solver in ("auto", "sgd") or isinstance(estimator.solver, AveragedSGD):
        return True
    raise AttributeError(f"partial_fit needs solver='sgd' or 'auto', got {estimator.solver!r}")
