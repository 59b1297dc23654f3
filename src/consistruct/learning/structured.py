"""StructuredPredictor: the same learning for labels of any fixed shape."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from consistruct.labels import Classes
from consistruct.learning.base import BasePredictor
from consistruct.learning.weights import check_sample_weight

__all__ = ["StructuredPredictor"]


class StructuredPredictor(BasePredictor):
    """Predicts bit vectors, state vectors, orders, matchings or classes for any task loss.

    It minimises the same risk as `TaskLossClassifier`, over the label set of the loss; `score` is
    minus the mean task loss.

    Parameters
    ----------
    loss : Loss or str
        A spec ("hamming", "zero_one") takes its sizes from y, whose states may then be of any
        type; a Loss object takes labels as its label set writes them.
    surrogate, decoding, scores, features, kernel, bandwidth, degree, coef0, n_components, \
standardize, solver, alpha, regularizer, fit_intercept, random_state, n_jobs, verbose
        As in `TaskLossClassifier`.

    Attributes
    ----------
    loss_, surrogate_, coef_, intercept_, alpha_, path_, n_iter_, n_features_in_
        As in `TaskLossClassifier`.

    Examples
    --------
    >>> import numpy as np, consistruct as cs
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.column_stack([X[:, 0] > 0.3, X[:, 0] > 0.6]).astype(int)
    >>> cs.StructuredPredictor(loss="hamming").fit(X, y).predict([[0.1], [0.45], [0.9]])
    array([[0, 0],
           [1, 0],
           [1, 1]])
    """

    def __init__(
        self,
        loss: Any = "hamming",
        *,
        surrogate: Any = "quadratic",
        decoding: str = "argmax",
        scores: Any = None,
        features: Any = "auto",
        kernel: str = "rbf",
        bandwidth: Any = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int | None = None,
        standardize: Any = "auto",
        solver: Any = "auto",
        alpha: Any = "auto",
        regularizer: str = "gram",
        fit_intercept: bool = True,
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from inputs and structured labels.

        Parameters
        ----------
        X : (n, n_features) array, CSR or DataFrame
        y : (n, …) array
        sample_weight : (n,) array, optional
            How often each row counts.

        Returns
        -------
        self
        """
        X, y = self._validated(X, y, reset=True)
        codes = self._prepare(y, None, structured=True)
        self._fit_weights(X, codes, check_sample_weight(sample_weight, len(y)))
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """One pass of averaged SGD over a batch; features are chosen on the first batch.

        Parameters
        ----------
        X : (n, n_features) array, CSR or DataFrame
        y : (n, …) array
            With a loss spec the first batch tells the sizes; give a Loss object to fix them.
        sample_weight : (n,) array, optional

        Returns
        -------
        self
        """
        first = not hasattr(self, "sgd_state_")
        X, y = self._validated(X, y, reset=first)
        codes = self._prepare(y, None, structured=True) if first else self._encode_again(y)
        self._partial_fit_weights(X, codes, check_sample_weight(sample_weight, len(y)))
        return self

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        y = check_array(
            y, ensure_2d=False, allow_nd=True, dtype=None, ensure_min_samples=1, input_name="y"
        )
        check_consistent_length(X, y)
        if isinstance(getattr(self.loss, "truths", None), Classes) and y.shape[1:] == (1,):
            y = y[:, 0]
        return X, y
