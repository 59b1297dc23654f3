"""Any classifier, with decisions of least expected loss in place of its own."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from consistruct._frames import as_array
from consistruct.decisions.classes import class_labels, lookup_codes
from consistruct.decisions.decide import decide
from consistruct.decisions.reading import loss_for
from consistruct.decisions.result import Decisions
from consistruct.decisions.uncertain import CostRanges
from consistruct.protocols import FloatArray

__all__ = ["DecideBy"]


def _has_probabilities(wrapper: Any) -> bool:
    return hasattr(getattr(wrapper, "estimator_", wrapper.estimator), "predict_proba")


class DecideBy(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify by argmin_c E[L(c, y)], from the predict_proba of any classifier.

    The classifier is fitted as it is; the loss only decides. So it may be changed after fitting
    (`set_params`), and a search over it costs no fits that a search over thresholds would not.

    Parameters
    ----------
    estimator : classifier
        Anything with `fit` and `predict_proba`: boosting, pipelines, `CalibratedClassifierCV`.
    loss : Loss, spec such as "abstain::0.2", table of costs, or CostRanges
    rows : "pred" or "true", optional
        What the rows of a table of costs stand for.
    limits : dict, optional
        Most rows of each prediction in a call of `predict`, see `decide`.

    Attributes
    ----------
    estimator_ : classifier
        The fitted copy.
    classes_ : array
    over_sets_ : bool
        Whether y was a label matrix.

    See Also
    --------
    consistruct.decide : the decisions of any probabilities.
    consistruct.TaskLossClassifier : a learner that is consistent for the loss.

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> careful = cs.decisions.DecideBy(LogisticRegression(max_iter=1000), "abstain:3:0.1")
    >>> careful.fit(X, y).predict(X[[0, 70]])  # 3 is no answer
    array([0, 3])
    """

    def __init__(
        self, estimator: Any, loss: Any = "zero-one", *, rows: Any = None, limits: Any = None
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.rows = rows
        self.limits = limits

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags  # X is handed over as it is
        return tags

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit the classifier; `fit_params` are its own, such as sample_weight.

        Parameters
        ----------
        X, y
            As the classifier takes them.

        Returns
        -------
        self
        """
        if not _has_probabilities(self):
            raise TypeError(
                f"DecideBy takes a classifier with predict_proba, got {self.estimator!r}; wrap it "
                "in CalibratedClassifierCV"
            )
        self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
        self.classes_ = self.estimator_.classes_
        # of label sets, some classifiers call the labels their classes (networks), others have a
        # list of states for each label (forests): neither names what is decided
        self.over_sets_ = (y if hasattr(y, "ndim") else np.asarray(y)).ndim > 1
        if hasattr(self.estimator_, "n_features_in_"):
            self.n_features_in_ = self.estimator_.n_features_in_
        return self

    def decide(self, X: Any) -> Decisions:
        """Return labels, expected losses and runners-up for X."""
        check_is_fitted(self, "estimator_")
        return decide(
            self.loss,
            self.estimator_.predict_proba(X),
            rows=self.rows,
            classes=None if self.over_sets_ else self.classes_,
            limits=self.limits,
        )

    def predict(self, X: Any) -> Any:
        """Return the label of least expected loss for each row."""
        return self.decide(X).labels

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classifier."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the mean task loss, −Σ_i w_i L(ŷ_i, y_i)/Σ_i w_i; greater is better.

        Of ranges of costs it is that of the costs in the middle, as `expected_loss` is.

        Parameters
        ----------
        X, y
            As in `fit`; a label that was never seen counts as the greatest loss.
        sample_weight : (n,) array, optional

        Returns
        -------
        score : float
        """
        decided = self.predict(X)
        y = np.asarray(as_array(y))
        given = self.loss.middle if isinstance(self.loss, CostRanges) else self.loss
        if y.ndim > 1:
            losses = loss_for(given, self.rows, y)(decided, y)
        else:
            loss = loss_for(given, self.rows, np.empty((0, len(self.classes_))))
            labels = class_labels(loss, self.classes_)
            losses = labels.losses(loss, lookup_codes(decided, labels.predictions), y)
        return -float(np.average(losses, weights=sample_weight))
