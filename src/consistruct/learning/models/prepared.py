"""A transformer in front of a model: imputing, encoding, scaling."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from consistruct._validation import is_sparse
from consistruct.decisions.statistics import Statistic
from consistruct.learning.models.base import OutOfFold, TargetModel
from consistruct.protocols import FloatArray

__all__ = ["Prepared"]


class Prepared(TargetModel):
    """Any model of this package on inputs that a scikit-learn transformer prepares.

    `Regressor` and `Probabilities` take pipelines as they are; this is for the other models, which
    want finite numbers: missing values, categories and units are the transformer's business.

    Parameters
    ----------
    transformer : scikit-learn transformer
        Fitted on the training inputs; it never sees the labels.
    model : model of `consistruct.models`

    Attributes
    ----------
    transformer_, model_ : fitted

    Examples
    --------
    >>> import numpy as np, consistruct as cs
    >>> from sklearn.impute import SimpleImputer
    >>> X = np.array([[0.0], [1.0], [np.nan], [3.0]] * 10)
    >>> model = cs.models.Prepared(SimpleImputer(), cs.models.Ridge(features="linear"))
    >>> cs.TaskLossClassifier(model=model).fit(X, [0, 0, 1, 1] * 10).predict([[np.nan]]).shape
    (1,)
    """

    raw_inputs = True
    wants_frames = True
    takes_missing = True

    def __init__(self, transformer: Any, model: TargetModel) -> None:
        self.transformer = transformer
        self.model = model

    @property
    def shrinks(self) -> bool:  # type: ignore[override]
        return self.model.shrinks

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
        """Fit the transformer, then the model."""
        self.transformer_ = clone(self.transformer).fit(X)
        self.model_ = clone(self.model).fit(
            self._transform(X),
            codes,
            statistic,
            sample_weight=sample_weight,
            groups=groups,
            rng=rng,
        )
        self.statistic_ = self.model_.statistic_
        self.path_ = getattr(self.model_, "path_", {})
        return self

    def _transform(self, X: Any) -> Any:
        values = self.transformer_.transform(X)
        if is_sparse(values):
            return sp.csr_array(values)
        return np.ascontiguousarray(values, dtype=np.float64)

    @property
    def estimates(self) -> bool:  # type: ignore[override]
        return self.model_.estimates

    @property
    def decides(self) -> bool:  # type: ignore[override]
        return self.model_.decides

    def expected(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        return self.model_.expected(self._transform(X))

    def decisions(self, X: Any) -> Any:
        return self.model_.decisions(self._transform(X))

    def out_of_fold(self) -> OutOfFold:
        """The model's own; what the transformer learned (means, scales) knows no labels."""
        return self.model_.out_of_fold()
