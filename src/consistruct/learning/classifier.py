"""TaskLossClassifier: a scikit-learn classifier that is trained for the loss it is judged by."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from consistruct.labels import Classes, Product, Subsets
from consistruct.labels.base import ENUMERATION_LIMIT
from consistruct.learning.base import BasePredictor, can_stream
from consistruct.learning.encoding.costs import example_costs
from consistruct.learning.encoding.finite_inputs import known_finite
from consistruct.learning.encoding.labels import (
    ClassLabels,
    CostLabels,
    PartLabels,
    loss_class,
)
from consistruct.learning.encoding.weights import check_sample_weight, combined_weight
from consistruct.losses import CostVectors, ZeroOne
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.scores import Separable

__all__ = ["TaskLossClassifier"]


class TaskLossClassifier(ClassifierMixin, BasePredictor):  # type: ignore[misc]
    """Classifier for any task loss over classes, or over multi-label indicator matrices.

    With the quadratic surrogate it regresses minus the loss target u_y on features of x,

        min_W (1/N) Σ_i w_i ½‖Wᵀφ(x_i) + u_{y_i}‖²_Ḡ + (α/2) tr(WᵀḠW),

    and predicts the label with the best score: consistent for the loss, whatever it is. The
    defaults need no tuning: kernel, bandwidth and penalty are chosen by exact leave-one-out.

    Parameters
    ----------
    loss : Loss, str or table of costs
        What predictions are judged by; a spec may leave out sizes that y tells ("zero_one",
        "hamming", "fbeta", "ordinal", "abstain::0.3", "cost:FILE.csv", "tree:FILE.csv"). Costs may
        be a DataFrame, a dict ``costs[prediction][truth]`` (both matched with the classes by name)
        or a (k, k) array whose rows are predictions, in the order of the sorted classes.
    surrogate : {"quadratic", "logistic", "exponential", "square", "log"} or class
        "quadratic" has a closed form; the others sum over listed labels.
    decoding : {"argmax", "bayes"}
        Best score, or least expected loss (they differ for "log").
    scores : ScoreSpace, optional
        The loss's own scores if not given.
    features : {"auto", "linear", "rbf", "laplace", "poly", "nystroem", "random"} or transformer
        "auto": linear for sparse or very wide (over 4096 columns) inputs, else kernel features,
        exact up to 12,288 rows (`n_components` rows if given) and by Nyström above; solvers other
        than the closed form get Nyström features. "rbf", "laplace" and "poly" are
        exact whatever the number of rows; "nystroem" and "random" approximate `kernel`.
    kernel : {"auto", "rbf", "laplace", "poly"}
        For "auto", "nystroem" and "random". "auto" compares RBF and Laplace (exp(−‖x−z‖₁/h)) by
        leave-one-out; it is RBF for sparse inputs and where `bandwidth` is a number.
    bandwidth : "auto", "median" or float
        "auto" compares six around the median distance by leave-one-out on at most 1024 rows.
    degree, coef0 : int and float
        Of the polynomial kernel.
    n_components : int, optional
        Landmarks or random features; 3072 if not given.
    standardize : "auto", bool
        Whether features are standardised first; "auto" compares both for kernels and leaves
        linear features as they are.
    solver : {"auto", "closed_form", "sgd", "paper_sgd", "lbfgs"} or solver object
        "auto": closed form for the quadratic surrogate while a factorisation is affordable, SGD
        beyond; L-BFGS for other surrogates.
    alpha : "auto", float or list of float
        Penalty. The closed form chooses among several by leave-one-out.
    regularizer : {"gram", "weights"}
        tr(WᵀḠW) or the paper's ‖W‖².
    fit_intercept : bool
    class_weight : dict or "balanced", optional
    random_state : int, RandomState or Generator, optional
    n_jobs : int, optional
        Candidates for the bandwidth that are compared at a time, one thread each. Nothing else
        uses it: products and factorisations take the threads of the linear algebra library, which
        OMP_NUM_THREADS limits, and sparse SGD takes one.
    verbose : int
        1 shows progress through `logging`, 2 details.

    Attributes
    ----------
    classes_ : array
        Class labels (for label matrices: 0..T−1, the columns).
    loss_, surrogate_ : Loss, Surrogate
        With the sizes found in y.
    coef_, intercept_ : (width, n_features_out) and (width,) arrays
    alpha_ : float
    path_ : dict
        Leave-one-out risks of every penalty and contrast that was compared.
    contrast_ : float
        Scores are θ̄ + c(θ − θ̄), which undoes shrinkage; the closed form chooses c.
    centre_ : (width,) array or None
        θ̄, the mean target.
    n_iter_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = cs.TaskLossClassifier(loss=cs.losses.CostMatrix([[0, 1, 1], [1, 0, 1], [1, 9, 0]]))
    >>> model.fit(X, y).predict(X[:2])
    array([0, 0])
    """

    classes_: Any

    def __init__(
        self,
        loss: Any = "zero_one",
        *,
        surrogate: Any = "quadratic",
        decoding: str = "argmax",
        scores: Any = None,
        features: Any = "auto",
        kernel: str = "auto",
        bandwidth: Any = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int | None = None,
        standardize: Any = "auto",
        solver: Any = "auto",
        alpha: Any = "auto",
        regularizer: str = "gram",
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            loss,
            surrogate,
            decoding,
            scores,
            features,
            kernel,
            bandwidth,
            degree,
            coef0,
            n_components,
            standardize,
            solver,
            alpha,
            regularizer,
            fit_intercept,
            random_state,
            n_jobs,
            verbose,
        )
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        over_parts = (
            isinstance(self.loss.truths, Product | Subsets)
            if isinstance(self.loss, Loss)
            else isinstance(self.loss, str) and self.loss.partition(":")[0] in ("hamming", "fbeta")
        )
        tags.classifier_tags.multi_label = over_parts
        tags.target_tags.multi_output = over_parts
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, costs: Any = None) -> Self:
        """Learn from inputs and labels.

        Parameters
        ----------
        X : (n, n_features) array, CSR or DataFrame
        y : (n,) labels of any type, or (n, T) indicator matrix
            With `costs` only the names of the classes are taken from y, and it may be None: the
            classes are then the columns of `costs`.
        sample_weight : (n,) array, optional
            How often each row counts.
        costs : (n, k) array or DataFrame, optional
            What each class would cost as the prediction of each row (`CostVectors`), in place of
            the loss; columns in the order of the sorted classes, or named by them.

        Returns
        -------
        self
        """
        if costs is not None:
            return self._fit_costs(X, y, sample_weight, costs)
        X, y = self._validated(X, y, reset=True)
        codes = self._prepare(y, None, structured=False)
        self._set_classes()
        weight = combined_weight(sample_weight, self.class_weight, y)
        self._fit_weights(X, codes, weight)
        return self

    def _fit_costs(self, X: Any, y: Any, sample_weight: Any, costs: Any) -> Self:
        if loss_class(self.loss) not in (ZeroOne, CostVectors):
            raise ValueError(
                f"costs= take the place of the loss, but loss is {self.loss!r}; leave one out"
            )
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=not known_finite(X),
        )
        if y is not None:
            y = column_or_1d(y, warn=True)
            check_consistent_length(X, y)
        elif self.class_weight is not None:
            raise ValueError("class_weight needs y, the classes of the rows, got y=None")
        values, classes = example_costs(costs, y)
        check_consistent_length(X, values)
        self.loss_ = CostVectors(len(classes), float(values.max(initial=0.0)) or 1.0)
        self.label_encoding_ = CostLabels(classes)
        codes = self.label_encoding_.encode(values, self.loss_)
        self._settle_surrogate()
        self._set_classes()
        if y is None:
            weight = check_sample_weight(sample_weight, len(codes))
        else:
            weight = combined_weight(sample_weight, self.class_weight, y)
        self._fit_weights(X, codes, weight)
        return self

    @available_if(can_stream)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """One pass of averaged SGD over a batch; features are chosen on the first batch.

        Parameters
        ----------
        X : (n, n_features) array, CSR or DataFrame
        y : (n,) labels or (n, T) indicator matrix
        classes : array, optional
            All classes; needed on the first call unless y holds all or the loss names them.
        sample_weight : (n,) array, optional

        Returns
        -------
        self
        """
        first = not hasattr(self, "sgd_state_")
        X, y = self._validated(X, y, reset=first)
        if first:
            codes = self._prepare(y, classes if y.ndim == 1 else None, structured=False)
            self._set_classes()
        else:
            codes = self._encode_again(y)
        self._partial_fit_weights(X, codes, combined_weight(sample_weight, self.class_weight, y))
        return self

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=not known_finite(X),
            multi_output=True,
        )
        check_classification_targets(y)
        if type_of_target(y).startswith("multilabel"):
            return X, np.asarray(y.todense() if hasattr(y, "todense") else y).astype(np.int64)
        return X, column_or_1d(y, warn=True)

    def _set_classes(self) -> None:
        encoding = self.label_encoding_
        if isinstance(encoding, ClassLabels):
            self.classes_ = encoding.classes
        elif isinstance(encoding, CostLabels):
            self.classes_ = encoding.predictions
        elif isinstance(encoding, PartLabels) and encoding.flat:
            self.classes_ = np.unique(encoding.states)
        else:
            self.classes_ = np.arange(self.loss_.truths.shape[0])

    def task_losses(self, X: Any, y: Any = None, costs: Any = None) -> FloatArray:
        """Task loss of each row, (n,); a truth never seen in training counts as wrong.

        Parameters
        ----------
        X : (n, n_features) array or CSR
        y : (n,) labels or (n, T) indicator matrix
        costs : (n, k) array or DataFrame, optional
            For a model that was fitted with costs, in place of y.

        Returns
        -------
        losses : (n,) array
        """
        if costs is not None:
            if not isinstance(self.label_encoding_, CostLabels):
                raise ValueError("costs= judge a model that was fitted with costs=; give y instead")
            y = example_costs(costs, None, self.label_encoding_.predictions)[0]
        return BasePredictor.task_losses(self, X, y)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, costs: Any = None) -> float:
        """Minus the mean task loss (not the accuracy): greater is better, 0 is perfect.

        Parameters
        ----------
        X : (n, n_features) array or CSR
        y : (n,) labels or (n, T) indicator matrix
            A class never seen in training counts as wrong.
        sample_weight : (n,) array, optional
        costs : (n, k) array or DataFrame, optional
            For a model that was fitted with costs, in place of y.

        Returns
        -------
        score : float
        """
        return -float(np.average(self.task_losses(X, y, costs), weights=sample_weight))

    def decision_function(self, X: Any) -> FloatArray:
        """Scores that are greatest for the prediction.

        Parameters
        ----------
        X : (n, n_features) array or CSR

        Returns
        -------
        scores : array
            (n, k), one column per prediction; (n,) for two classes, positive for the second;
            (n, T) for label matrices, positive where the label is predicted. With
            ``decoding="bayes"`` minus the expected loss (by the scores with their contrast).
        """
        theta = self.score_parameters(X)
        space = self.surrogate_.score_space
        if self.decoding == "bayes":
            space, theta = self.loss_.score_space, -self.surrogate_.expected_target(theta)
        one_part = isinstance(self.label_encoding_, PartLabels) and self.label_encoding_.flat
        if isinstance(space.predictions, Classes) or one_part:
            scores = theta @ space.matrix(limit=max(space.width, ENUMERATION_LIMIT)).T
            scores = scores[:, : len(self.classes_)] if one_part else scores
            return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
        if isinstance(space, Separable) and space.n_states == 2:
            parts = theta.reshape(len(theta), -1, 2)
            return np.asarray(parts[:, :, 1] - parts[:, :, 0])
        raise ValueError(f"{space!r} has no score per label; score_parameters gives its parameters")
