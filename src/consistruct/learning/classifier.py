"""TaskLossClassifier: a scikit-learn classifier that is trained for the loss it is judged by."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_y, check_consistent_length, column_or_1d

from consistruct._frames import as_array, label_names, labels_by_name, refuse_missing_labels
from consistruct._threads import within_cores
from consistruct._validation import on_host
from consistruct.decisions.classes import UNSEEN, ClassLabels, lookup_codes
from consistruct.exceptions import CapabilityError
from consistruct.learning.encoding.costs import CostLabels, example_costs
from consistruct.learning.encoding.fitted_classes import class_columns, encode_again
from consistruct.learning.encoding.kinds import (
    Examples,
    Rows,
    checked_groups,
    combined_weight,
    table_inputs,
)
from consistruct.learning.encoding.labels import order_of, over_parts, prepare_labels
from consistruct.learning.estimator import TargetEstimator, has_probabilities, lazily, streams
from consistruct.learning.example_costs import ExampleCosts
from consistruct.learning.models.base import TargetModel
from consistruct.learning.rules.deciding import loss_to_fit
from consistruct.learning.rules.estimating import MetricDecisions
from consistruct.losses import CostMatrix
from consistruct.losses.base import Loss
from consistruct.losses.costs.tables import cost_tensor
from consistruct.losses.metrics import Metric, requested_metric
from consistruct.protocols import FloatArray

__all__ = ["TaskLossClassifier"]


class TaskLossClassifier(ClassifierMixin, MetricDecisions, ExampleCosts, TargetEstimator):  # type: ignore[misc]
    """Classifier for any task loss over classes, or over multi-label indicator matrices.

    It estimates the expected target of the loss by any model, and predicts the label of least
    expected loss: consistent for the loss, whatever it is.

    Parameters
    ----------
    loss : Loss, str or table of costs
        What predictions are judged by; a spec may leave out sizes that y tells ("zero_one",
        "hamming", "fbeta", "ordinal", "abstain::0.3", "cost:FILE.csv", "tree:FILE.csv"). Costs may
        be a DataFrame, a dict ``costs[prediction][true]`` (both matched with the classes by name)
        or a (k, k) array in the order of the sorted classes, with `rows` unless it is symmetric.
        Or a non-decomposable metric ("macro-f1", "qwk", "precision-at-recall:0.9",
        …, see `consistruct.losses.parse_metric`): decisions are then chosen on out-of-fold rows.
    model : "auto", str or model
        What estimates the expected target: a model of `consistruct.models` such as
        ``Ridge()``, ``Probabilities(classifier)``, ``Regressor(regressor)`` or ``Stack([…])``, or
        its name. "auto" tries several on out-of-fold rows, see `Stack`.
    cv : int or splitter, optional
        Folds for out-of-fold estimates, which recalibrate the model and, with "auto", choose
        between models. None: exact leave-one-out where the model has it, five folds where "auto" or
        a metric needs them, no recalibration for other models.
    class_weight : dict or "balanced", optional
    time_limit : float, optional
        Seconds that model="auto" may take; its first, fastest model is always fitted.
    random_state : int, RandomState or Generator, optional
    n_jobs : int, optional
        Fits that run at a time; the result does not depend on it.
    verbose : int
        1 shows progress through `logging`, 2 details. Whatever it is, fits of more than two seconds
        show a bar in terminals and notebooks.
    rows : "pred" or "true", optional
        What the rows of a table of costs are, or of ``costs=`` of shape (n, k, k). Required unless
        it is symmetric or states it itself. scikit-learn's confusion matrices have true labels as
        rows.

    Attributes
    ----------
    classes_ : array
        Class labels, sorted, whatever the order of the names of the loss is (for label matrices:
        0..T−1, the columns).
    loss_ : Loss
        With the sizes found in y; its classes are in its own order.
    model_ : fitted model
    statistic_ : Statistic
        What the model estimates the mean of.
    recalibration_ : Recalibration
        What out-of-fold rows corrected.
    path_ : dict
        What was compared on the way.
    portfolio_ : list of dict
        With model="auto": the models that were tried, their out-of-fold losses, weights and
        seconds.
    metric_ : Metric
        With a metric, also what follows; ``loss_`` is then the cost matrix that decides.
    decision_costs_ : (k, k) array
        What each decision costs: rows are predictions, columns true labels, both in the order of
        `classes_`, in units of the metric.
        (T, 2, 2) for label sets, (g, k, k) where a constraint tells groups of rows apart
        or a rule is drawn at random.
    metric_estimate_ : float
        What to expect of new rows: the metric of out-of-fold rows, by costs found on others.
    optimality_gap_ : float or None
        For concave metrics: how far the rule is at most from the best one on out-of-fold rows.
    rule_ : MetricRule
        Confusions before and after, upper bound, slack of constraints.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = cs.losses.CostMatrix([[0, 1, 1], [1, 0, 1], [1, 9, 0]], rows="pred")
    >>> model = cs.TaskLossClassifier(costs, cs.models.Ridge()).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> model.expected_losses(X[:2]).shape
    (2, 3)
    """

    classes_: Any

    def __init__(
        self,
        loss: Any = "zero_one",
        model: Any = "auto",
        *,
        cv: Any = None,
        class_weight: Any = None,
        time_limit: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        rows: str | None = None,
    ) -> None:
        super().__init__(loss, model, cv, time_limit, random_state, n_jobs, verbose)
        self.class_weight = class_weight
        self.rows = rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing()
        tags.classifier_tags.multi_label = over_parts(self.loss)
        tags.target_tags.multi_output = over_parts(self.loss)
        return tags

    @within_cores
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        costs: Any = None,
        groups: Any = None,
    ) -> Self:
        """Learn from inputs and labels.

        Parameters
        ----------
        X : (n, n_features) array, CSR or DataFrame; or a dask array or dataframe
            Partitions of Dask stay where they are: see `fit_stream`, whose models it takes.
        y : (n,) labels of any type, or (n, T) indicator matrix
            With (n, k) `costs` only the names of the classes are taken from y, and it may be None:
            the classes are then the columns of `costs`.
        sample_weight : (n,) array, optional
            How often each row counts.
        costs : (n, k) or (n, k, m) array, or DataFrame, optional
            Costs of each example, in place of the loss. (n, k): what each prediction costs for
            this row (`CostVectors`); columns in the order of the sorted classes, or named by them.
            (n, k, m): what prediction c costs if the true label is t; the model learns
            probabilities, and `predict` takes the costs of new examples.
        groups : (n,) array, optional
            Rows of one group are left out together.

        Returns
        -------
        self
        """
        if self._fit_partitions(X, y, sample_weight, costs=costs, groups=groups):
            return self
        model, examples = self._training(X, y, sample_weight, costs, groups)
        self._fit_model(model, examples, self._metric())
        return self

    def _metric(self) -> Metric | None:
        """The metric that the parameter `loss` names, unless it is a loss."""
        return None if isinstance(self.loss, Loss) else requested_metric(self.loss)

    def _training(
        self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None, groups: Any = None
    ) -> tuple[TargetModel, Examples]:
        """The model to be fitted and what it is fitted on; an earlier fit is forgotten."""
        self._forget()
        model = self._model_for("rows")
        X = table_inputs(self, X, model, reset=True)
        return model, self._examples(X, y, sample_weight, costs, groups)

    def _examples(
        self, X: Any, y: Any, sample_weight: Any, costs: Any, groups: Any = None
    ) -> Examples:
        if costs is not None and np.ndim(costs) != 3:
            return self._cost_vectors(X, y, sample_weight, costs, groups)
        order = order_of(y)
        y = self._checked_labels(X, y)
        loss, metric = self.loss, self._metric()
        if metric is not None:
            loss = loss_to_fit(metric, y)
        elif self.rows is not None and costs is None:
            loss = self.loss_as_given()
        if costs is not None:
            self._refuse_two_losses()
            classes = np.unique(y)
            tensor = cost_tensor(costs, len(y), len(classes), self.rows)
            mean = tensor.mean(axis=0)
            gains_too = mean - mean.min(axis=0)  # gains are negative costs
            loss = CostMatrix(gains_too, rows="pred")
            self.example_costs_ = True
        found, encoding, codes = prepare_labels(
            loss, y, structured=False, order=order, requested=metric
        )
        self.classes_ = encoding.class_names(found)
        weight = combined_weight(sample_weight, self.class_weight, y)
        return Examples(Rows(found, encoding), X, codes, weight, checked_groups(groups, len(codes)))

    @streams  # type: ignore[untyped-decorator]
    @within_cores
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
        if self._metric() is not None:
            raise ValueError(
                f"{self.loss!r} needs out-of-fold rows, and partial_fit has none; use fit"
            )
        first = not hasattr(self, "stream_")
        if first:
            self._forget()
        model = self._model_for("rows") if first else self.model_
        X = table_inputs(self, X, model, reset=first)
        order = order_of(y)
        y = self._checked_labels(X, y)
        if first:
            loss, encoding, codes = prepare_labels(
                self.loss_as_given(),
                y,
                classes=classes if y.ndim == 1 else None,
                structured=False,
                order=order,
            )
            self.classes_ = encoding.class_names(loss)
            self.kind_ = Rows(loss, encoding)
        else:
            codes = encode_again(self.kind_.labels, self.kind_.loss, y)
        weight = combined_weight(sample_weight, self.class_weight, y)
        self._stream(model, Examples(self.kind_, X, codes, weight))
        return self

    def _checked_labels(self, X: Any, y: Any) -> Any:
        if not hasattr(self, "label_columns_"):  # the first batch
            self.label_columns_ = label_names(y)
        y = as_array(on_host(labels_by_name(self, y)))
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        if not hasattr(y, "todense"):
            _refuse_lists(y)
            refuse_missing_labels(y)
            y = _check_y(y, multi_output=True)
        _refuse_odd_labels(y)
        check_classification_targets(y)
        if type_of_target(y).startswith("multilabel"):
            y = np.asarray(y.todense() if hasattr(y, "todense") else y).astype(np.int64)
        else:
            y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        return y

    # --- predicting ---

    @lazily
    def predict(self, X: Any, costs: Any = None) -> Any:
        """The class of least expected loss, or the label set, for each row.

        Parameters
        ----------
        X : (n, n_features) array, CSR or DataFrame
        costs : (n, k, m) array, optional
            What prediction c costs if the true label is t, for each of these rows.

        Returns
        -------
        y : (n,) or (n, T) array
        """
        if costs is None and not getattr(self, "example_costs_", False):
            return super().predict(X)
        return self.classes_[self._prices(X, costs).argmin(axis=1)]

    @available_if(has_probabilities)  # type: ignore[untyped-decorator]
    @lazily
    def predict_proba(self, X: Any) -> FloatArray:
        """P(class | x), (n, classes), recalibrated on out-of-fold rows.

        Parameters
        ----------
        X : (n, n_features) array, CSR or DataFrame

        Returns
        -------
        probabilities : (n, classes) array
            Columns in the order of `classes_`.
        """
        expected = self.recalibration_.for_reports(self.model_.expected(self._read(X)))
        probabilities = self.statistic_.project(expected)
        if not isinstance(self.label_encoding_, ClassLabels):
            return probabilities
        columns = class_columns(self.label_encoding_)
        ordered = np.array_equal(columns, np.arange(len(columns)))
        return probabilities if ordered else probabilities[:, columns]

    def task_losses(self, X: Any, y: Any = None, costs: Any = None) -> FloatArray:
        """Task loss of each row, (n,); a true label never seen in training counts as wrong.

        Parameters
        ----------
        X : (n, n_features) array or CSR
        y : (n,) labels or (n, T) indicator matrix
        costs : (n, k) or (n, k, m) array, optional
            For a model that was fitted with such costs; (n, k) in place of y.

        Returns
        -------
        losses : (n,) array
        """
        self._require_costs(costs, "score or task_losses(X, y, costs=…)")
        if costs is None:
            return super().task_losses(X, y)
        labels = self.label_encoding_
        if np.ndim(costs) == 3:
            chosen = self._prices(X, costs).argmin(axis=1)
            y = np.asarray(as_array(y))
            codes = lookup_codes(y, self.classes_)
            refuse_missing_labels(y)
            tensor = cost_tensor(costs, len(chosen), len(self.classes_), self.rows)
            seen = tensor[np.arange(len(chosen)), chosen, codes]
            return np.where(codes == UNSEEN, tensor.max(axis=(1, 2)), seen)
        if not isinstance(labels, CostLabels):
            raise ValueError("costs= is only for models fitted with costs=; pass y instead")
        return super().task_losses(X, example_costs(costs, None, labels.predictions)[0])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, costs: Any = None) -> float:
        """Minus the mean task loss (not the accuracy), or the metric: greater is better.

        Parameters
        ----------
        X : (n, n_features) array or CSR
        y : (n,) labels or (n, T) indicator matrix
            A class never seen in training counts as wrong.
        sample_weight : (n,) array, optional
        costs : (n, k) or (n, k, m) array, optional
            For a model that was fitted with such costs.

        Returns
        -------
        score : float
        """
        if costs is None and hasattr(self, "metric_"):
            return self._metric_score(X, y, sample_weight)
        return -float(np.average(self.task_losses(X, y, costs), weights=sample_weight))

    @lazily
    def decision_function(self, X: Any) -> FloatArray:
        """Scores that are greatest for the prediction.

        Parameters
        ----------
        X : (n, n_features) array or CSR

        Returns
        -------
        scores : array
            Minus the expected loss as decisions use it: (n, k), one column per class in the order
            of `classes_`; (n,) for two classes, positive for the second; (n, T) for label matrices
            evaluated part by part, positive where the label is predicted.
        """
        inputs = self._read(X)
        self._require_estimates("decision_function")
        self._refuse_several("decision_function")
        expected = self.recalibration_.for_decisions(self.model_.expected(inputs))
        flat = getattr(self.label_encoding_, "flat", False)
        parts = None if flat else self.statistic_.part_scores(expected)
        if parts is not None:
            return parts
        if not flat and self.loss_.predictions.shape != ():
            raise CapabilityError(
                self.loss_,
                "scores per part",
                "decision_function",
                "expected_target returns what its decisions are based on",
            )
        scores = -self._prediction_losses(expected)[:, : len(self.classes_)]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def _refuse_lists(y: Any) -> None:
    """Say how label sets are written, where they are lists of names."""
    if isinstance(y, list | tuple) and len({np.size(row) for row in y}) > 1:
        raise ValueError(
            "y contains lists of different lengths; for label sets pass the 0/1 matrix that "
            "sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y) makes of them"
        )


def _refuse_odd_labels(y: Any) -> None:
    """Say what is wrong with an array of objects that are not all words."""
    if type_of_target(y) != "unknown":
        return
    types = sorted({type(label).__name__ for label in np.ravel(y)})
    raise ValueError(
        f"Unknown label type: y is an array of objects that contains {', '.join(types)}; drop rows "
        "without a label, then convert the labels to one type, as with y.astype(int) or "
        "y.astype(str)"
    )
