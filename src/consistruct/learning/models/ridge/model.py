"""Ridge: least squares on the statistic, linear or kernel, with exact leave-one-out."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from consistruct._validation import check_unused_params, is_tensor, on_host
from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import CapabilityError
from consistruct.learning.models.base import OutOfFold, TargetModel
from consistruct.learning.models.features.approximations import KernelCenters, NystroemFeatures
from consistruct.learning.models.features.feature_choice import EXACT_ROWS, choose_features
from consistruct.learning.models.features.feature_maps import (
    DEFAULT_COMPONENTS,
    FeatureMap,
    FeatureOptions,
    KernelFeatures,
    ScoreMap,
    check_unused_feature_params,
)
from consistruct.learning.models.ridge.closed_form import ClosedForm
from consistruct.learning.models.ridge.device import DeviceClosedForm, predict_on, some_rows
from consistruct.learning.models.ridge.kernel_cg import KernelCG
from consistruct.learning.models.ridge.streaming import FitsMoments
from consistruct.learning.models.solvers.averaged_sgd import AveragedSGD
from consistruct.learning.models.solvers.paper_sgd import PaperSGD
from consistruct.learning.models.solvers.sgd_state import SGDState
from consistruct.learning.statistics import TargetValues
from consistruct.protocols import FloatArray

__all__ = ["Ridge"]

FACTORIZATION_LIMIT = 8192  # rows of the largest matrix that "auto" decomposes
SOLVERS = {"closed_form": ClosedForm, "cg": KernelCG, "sgd": AveragedSGD, "paper_sgd": PaperSGD}
MOMENTS = "moments"
CHOICE_ROWS = 2**15  # of a tensor, from which features are chosen


class Ridge(FitsMoments, TargetModel):
    """Least squares on the statistic: the quadratic surrogate of the paper, in closed form.

        min_W (1/N) Σ_i w_i ‖Wᵀφ(x_i) − τ(y_i)‖² + α‖W‖²

    Its estimate of E[τ(y) | x] is consistent for every loss. The defaults need no tuning: features,
    kernel, bandwidth and penalty are chosen by exact leave-one-out. Choose it for label sets,
    trees, grades and small noisy tables; trees and boosting are ahead on tables with thresholds.

    Parameters
    ----------
    features : {"auto", "linear", "rbf", "laplace", "poly", "nystroem", "random"} or transformer
        "auto": linear for very wide inputs (over 4096 columns, 1024 if sparse), else the better of
        the standardized inputs and a kernel, exact up to 12,288 rows (`n_components` rows if given)
        and by Nyström above. "rbf", "laplace" and "poly" are exact whatever the number of rows;
        "nystroem" and "random" approximate `kernel`.
    kernel : {"auto", "rbf", "laplace", "poly"}
        For "auto", "nystroem" and "random". "auto" compares RBF and Laplace (exp(−‖x−z‖₁/h)) by
        leave-one-out; it is RBF for sparse inputs and where `bandwidth` is a number.
    bandwidth : "auto", "median" or float
        "auto" compares six around the median distance by leave-one-out on at most 1024 rows.
    degree : int
        Degree of the polynomial kernel.
    coef0 : float
        Constant of the polynomial kernel.
    n_components : int, optional
        Landmarks or random features; 3072 if not given.
    standardize : "auto" or bool
        Whether inputs are standardized first; "auto" compares both for kernels and leaves
        features="linear" as they are.
    alpha : "auto", float or list of float
        Penalty, relative to the mean over the rows. Of several the best one by out-of-fold rows.
    solver : {"auto", "closed_form", "moments", "cg", "sgd", "paper_sgd"} or solver object
        "auto": the closed form while a factorization is affordable, averaged SGD beyond.
        "moments": the closed form from sums that merge, with the penalty by generalized
        cross-validation; `partial_fit` and `fit_stream` then give the model of one fit to all rows,
        whatever their order. For linear, Nyström and random features. "cg": conjugate gradients
        for features="nystroem" with many thousand landmarks; no sums of landmarks are formed.
    regularizer : {"gram", "weights"}
        The penalty in an orthonormal basis of the scores, tr(WᵀḠW), or the paper's ‖W‖².
    scores : ScoreSpace, optional
        The score space of the model; the loss's own if not given. Smaller ones are in general
        inconsistent.
    fit_intercept : bool
    n_jobs : int, optional
        Kernels that are compared at a time, one thread each.
    device : str, optional
        Solve and predict on a device of PyTorch ("cuda"): the closed form only, with a penalty
        chosen by generalized cross-validation. X may then be a tensor, which does not leave its
        device; scales, bandwidth and landmarks come from 32,768 of its rows.
    precision : {"auto", "double", "single"}
        Of the products on the device; "single" is TF32 where the GPU has it. "auto" takes it where
        a trial on some rows finds no worse task loss (`precision_` states which it was).

    Attributes
    ----------
    feature_map_ : FeatureMap
    coef_, intercept_ : (width, n_features_out) and (width,) arrays
    alpha_ : float
    path_ : dict
        Out-of-fold risks of every penalty that was compared.
    n_iter_ : int
    moments_ : Moments
        With solver="moments": the sums of all rows so far, of the inputs for linear features.

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = cs.TaskLossClassifier("zero_one", cs.models.Ridge(features="linear"))
    >>> model.fit(X, y).predict(X[:2])
    array([0, 0])
    """

    shrinks = True

    def __init__(
        self,
        features: Any = "auto",
        *,
        kernel: str = "auto",
        bandwidth: Any = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int | None = None,
        standardize: Any = "auto",
        alpha: Any = "auto",
        solver: Any = "auto",
        regularizer: str = "gram",
        scores: Any = None,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        device: str | None = None,
        precision: str = "auto",
    ) -> None:
        self.features = features
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.standardize = standardize
        self.alpha = alpha
        self.solver = solver
        self.regularizer = regularizer
        self.scores = scores
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.device = device
        self.precision = precision

    feature_map_: FeatureMap
    coef_: FloatArray
    intercept_: FloatArray
    alpha_: float
    path_: dict[str, FloatArray]
    n_iter_: int
    precision_: str  # of the products on a device
    sgd_state_: SGDState  # of partial_fit

    @property
    def takes_tensors(self) -> bool:  # type: ignore[override]
        return self.device is not None

    @property
    def can_stream(self) -> bool:  # type: ignore[override]
        return self.solver in ("sgd", MOMENTS) or isinstance(self.solver, AveragedSGD)

    @property
    def by_sums(self) -> bool:  # type: ignore[override]
        return self.solver == MOMENTS

    def fit(
        self,
        X: Any,
        codes: Any,
        statistic: Statistic,
        *,
        sample_weight: FloatArray | None = None,
        groups: Any = None,
        rng: np.random.Generator,
    ) -> Self:
        """Choose features and penalty, solve."""
        weight = np.ones(len(codes)) if sample_weight is None else sample_weight
        if self.solver == MOMENTS:
            if self.device is not None:
                raise ValueError(
                    f"solver='moments' adds up batches on the CPU, got device={self.device!r}; "
                    "omit one of them"
                )
            return self._fit_by_moments(X, codes, statistic, weight, groups, rng)
        solver = self._make_solver(X.shape)
        self.statistic_ = self._own_statistic(statistic, solver)
        self.feature_map_ = self._choose_features(X, codes, weight, solver, rng)
        score_map = ScoreMap(self.feature_map_, fit_intercept=self.fit_intercept)
        settings = {"alpha": self.alpha, "sample_weight": weight, "rng": rng}
        if isinstance(solver, DeviceClosedForm):
            found, self.precision_ = solver.solve(self.statistic_, score_map, X, codes, **settings)
            self._out_of_fold = found.out_of_fold if groups is None else None
            self._store(score_map, found.weights, found.alpha, found.path, 1)
            return self
        if isinstance(solver, KernelCG):
            return self._fit_by_steps(solver, X, codes, settings)
        if isinstance(solver, ClosedForm):
            fit = solver.solve(
                self.statistic_, score_map, X, codes, regularizer=self.regularizer, **settings
            )
            self._out_of_fold = fit.out_of_fold if groups is None else None
            self._store(score_map, fit.weights, fit.alpha, fit.path, 1)
            return self
        self._refuse_regularizer()
        result = solver.solve(self.statistic_, score_map, X, codes, **settings)
        self._out_of_fold = None
        self._store(score_map, result.weights, result.alpha, result.path, result.n_iter)
        return self

    def _fit_by_steps(self, solver: KernelCG, X: Any, codes: Any, settings: Any) -> Self:
        """Conjugate gradients on the kernel values of the landmarks."""
        self._refuse_regularizer()
        if not isinstance(self.feature_map_, KernelFeatures):
            raise ValueError(
                f"solver='cg' is for kernels on landmarks, features='nystroem', got "
                f"features={self.features!r}"
            )
        expansion, self.intercept_, self.alpha_, self.n_iter_ = solver.solve(
            self.statistic_, self.feature_map_, X, codes,
            fit_intercept=self.fit_intercept, **settings,
        )  # fmt: skip
        self.coef_, self.path_ = np.ascontiguousarray(expansion.T), {}
        self._out_of_fold = None
        return self

    def partial_fit(
        self,
        X: Any,
        codes: Any,
        statistic: Statistic,
        *,
        sample_weight: FloatArray,
        rng: np.random.Generator,
    ) -> Self:
        """More rows: exactly, with solver="moments"; else one epoch of averaged SGD over them."""
        from consistruct.learning.models.solvers.sgd_run import SGDRun

        if self.solver == MOMENTS:
            return self._add_to_moments(X, codes, statistic, sample_weight, rng)
        solver = self.solver if isinstance(self.solver, AveragedSGD) else AveragedSGD()
        self._refuse_regularizer()
        first = not hasattr(self, "sgd_state_")
        if first:
            self.statistic_ = self._own_statistic(statistic, solver)
            self.feature_map_ = self._choose_features(X, codes, sample_weight, solver, rng)
        score_map = ScoreMap(self.feature_map_, fit_intercept=self.fit_intercept)
        run = SGDRun(
            solver,
            self.statistic_,
            score_map,
            X,
            codes,
            sample_weight,
            rng,
            alpha=self.alpha,
            state=None if first else self.sgd_state_,
        )
        run.epoch(rng)
        self.sgd_state_ = run.state
        self._out_of_fold = None
        self._store(score_map, run.weights(), run.state.alpha, {}, run.state.epoch)
        return self

    def _own_statistic(self, statistic: Statistic, solver: Any) -> Statistic:
        """The one requested, unless a setting refers to the scores of the loss."""
        of_scores = self.regularizer == "weights" or isinstance(solver, PaperSGD)
        if self.scores is None and not of_scores:
            return statistic
        return TargetValues(statistic.loss, self.scores)

    def _choose_features(
        self, X: Any, codes: Any, weight: FloatArray, solver: Any, rng: np.random.Generator
    ) -> FeatureMap:
        check_unused_feature_params(self)
        check_unused_params(self, "device", self.device is not None, ("precision",))
        if is_tensor(X):  # scales, bandwidths and landmarks from some rows, on the host
            size = min(X.shape[0], max(CHOICE_ROWS, self.n_components or 0))
            rows = np.sort(rng.choice(X.shape[0], size=size, replace=False))
            X, codes, weight = on_host(some_rows(X, rows)), codes[rows], weight[rows]
        return choose_features(
            FeatureOptions(
                features=self.features,
                kernel=self.kernel,
                bandwidth=self.bandwidth,
                degree=self.degree,
                coef0=self.coef0,
                n_components=self.n_components,
                standardize=self.standardize,
                fit_intercept=self.fit_intercept,
                n_jobs=self.n_jobs,
            ),
            X,
            codes,
            weight,
            self.statistic_,
            expansions=isinstance(solver, ClosedForm | PaperSGD),
            on_landmarks=_landmark_features(solver),
            rng=rng,
        )

    def _make_solver(self, shape: tuple[int, int]) -> Any:
        solver = self.solver
        if self.device is not None:
            return self._on_device()
        if isinstance(solver, ClosedForm | KernelCG | AveragedSGD | PaperSGD):
            return solver
        if solver == "auto":
            solver = self._affordable(shape)
        if not isinstance(solver, str) or solver not in SOLVERS:
            raise ValueError(
                f"solver must be 'auto', 'moments', one of {', '.join(SOLVERS)} or an object of "
                f"these, got {self.solver!r}"
            )
        return SOLVERS[solver]()

    def _on_device(self) -> DeviceClosedForm:
        allowed = self.solver in ("auto", "closed_form") or isinstance(self.solver, ClosedForm)
        if not allowed or self.regularizer != "gram":
            raise ValueError(
                f"device={self.device!r} supports only the closed form with regularizer='gram', "
                f"got solver={self.solver!r} and regularizer={self.regularizer!r}"
            )
        chosen = self.solver.selection if isinstance(self.solver, ClosedForm) else "auto"
        selection: Any = "gcv" if chosen == "auto" else chosen
        assert self.device is not None
        return DeviceClosedForm(self.device, self.precision, selection)  # type: ignore[arg-type]

    def _affordable(self, shape: tuple[int, int]) -> str:
        n, n_features = shape
        if self.features in ("rbf", "laplace", "poly"):
            return "closed_form" if n <= EXACT_ROWS else "sgd"
        if self.features in ("nystroem", "random"):
            size = min(n, self.n_components or DEFAULT_COMPONENTS)
        else:
            size = min(n, n_features)
        return "closed_form" if size <= FACTORIZATION_LIMIT else "sgd"

    def _refuse_regularizer(self) -> None:
        if self.regularizer != "gram":
            raise ValueError(
                f"regularizer={self.regularizer!r} needs solver='closed_form'; stochastic solvers "
                f"penalize tr(WᵀḠW)"
            )

    def _store(
        self,
        score_map: ScoreMap,
        weights: FloatArray,
        alpha: float,
        path: dict[str, FloatArray],
        n_iter: int,
    ) -> None:
        coef, self.intercept_ = score_map.split(weights)
        self.coef_ = np.ascontiguousarray(coef.T)
        self.alpha_, self.path_, self.n_iter_ = alpha, path, n_iter

    def expected(self, X: Any) -> FloatArray:
        """Wᵀφ(x) + b, (n, width)."""
        check_is_fitted(self, "coef_")
        weights = np.vstack([self.coef_.T, self.intercept_])
        if self.device is not None:
            whole = ScoreMap(self.feature_map_, fit_intercept=True)
            return predict_on(self.device, self.precision_, whole, weights, X)
        return ScoreMap(self.feature_map_, fit_intercept=True).apply(weights, X)

    def out_of_fold(self) -> OutOfFold:
        """Exact leave-one-out estimates, of all rows or of a random sample of at least 2048."""
        if self._out_of_fold is None:
            raise CapabilityError(
                self,
                "out_of_fold",
                "out-of-fold estimates",
                "only the closed form without groups has them exactly; pass cv=",
            )
        return self._out_of_fold

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_out_of_fold": None}  # training estimates are not part of the model


def _landmark_features(solver: Any) -> Any:
    """What a solver wants of landmarks: orthonormal functions, or plain values of the kernel."""
    if isinstance(solver, DeviceClosedForm):
        return KernelCenters
    return KernelFeatures if isinstance(solver, KernelCG) else NystroemFeatures
