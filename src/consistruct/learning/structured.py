"""StructuredPredictor: the same learning for sequences, rankings and labels of any shape."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_consistent_length

from consistruct._frames import as_array, label_names, labels_by_name, refuse_missing_labels
from consistruct._threads import within_cores
from consistruct._validation import on_host
from consistruct.learning.encoding.fitted_classes import encode_again
from consistruct.learning.encoding.kinds import (
    Examples,
    Rows,
    check_sample_weight,
    checked_groups,
    refuse_groups,
    table_inputs,
)
from consistruct.learning.encoding.labels import (
    order_of,
    over_classes,
    prepare_labels,
    takes_any_labels,
)
from consistruct.learning.encoding.rankings import read_queries, takes_queries
from consistruct.learning.encoding.sequences import (
    read_batch,
    read_sequences,
    takes_sequences,
)
from consistruct.learning.estimator import TargetEstimator, streams
from consistruct.learning.models.base import TargetModel

__all__ = ["StructuredPredictor"]


def _has_marginals(estimator: Any) -> bool:
    """Marginals exist for chains that were trained by the log loss."""
    return hasattr(getattr(estimator, "model_", None), "marginals")


def _ranks_items(estimator: Any) -> bool:
    """Scores of items exist for rankings only."""
    return getattr(getattr(estimator, "kind_", None), "name", "") == "queries"


class StructuredPredictor(TargetEstimator):
    """Predicts label sets, rankings, orders, matchings, classes or sequences for a task loss.

    It estimates the expected target of the loss by any model, and predicts the label of least
    expected loss; `score` is minus the mean task loss. What the examples are follows from loss and
    data: *sequences* of different lengths with a Hamming loss ("hamming" or the family
    ``Hamming(None, s)``), *items of queries* with a ranking loss ("ndcg", "precision_at::5",
    ``NDCG(None)``), *rows* with one label of fixed shape each otherwise. With the loss `Decision`
    (or "path:5x5") y holds the costs that came true, and predictions are decisions.

    Parameters
    ----------
    loss : Loss or str
        A spec ("hamming", "fbeta", "kendall", "ndcg") takes its sizes from y, whose states may
        then be of any type; a Loss object takes labels as its label set writes them.
    model : "auto", str or model
        What estimates the expected target. "auto": `Stack` for rows, `Chain` for sequences,
        `Items` for items of queries, `Costs` for decisions.
    cv, time_limit, random_state, n_jobs, verbose
        As in `TaskLossClassifier`.

    Attributes
    ----------
    loss_, model_, statistic_, recalibration_, path_, portfolio_, n_features_in_
        As in `TaskLossClassifier`.
    kind_ : Kind
        What the examples are.

    Examples
    --------
    >>> import numpy as np, consistruct as cs
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.column_stack([X[:, 0] > 0.3, X[:, 0] > 0.6]).astype(int)
    >>> model = cs.StructuredPredictor("hamming", cs.models.Ridge()).fit(X, y)
    >>> model.predict([[0.1], [0.45], [0.9]])
    array([[0, 0],
           [1, 0],
           [1, 1]])
    >>> relevance = (4 * X[:, 0]).astype(int)
    >>> ranker = cs.StructuredPredictor("ndcg", cs.models.Items("ridge"))
    >>> ranker = ranker.fit(X, relevance, groups=np.arange(40) % 8)
    >>> ranker.predict([[0.2], [0.9], [0.5]])  # ranks of the items of one query
    array([3, 1, 2])
    """

    def __init__(
        self,
        loss: Any = "hamming",
        model: Any = "auto",
        *,
        cv: Any = None,
        time_limit: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(loss, model, cv, time_limit, random_state, n_jobs, verbose)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    @within_cores
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn from inputs and structured labels.

        Parameters
        ----------
        X : (n, n_features) array, CSR or DataFrame; or sequences; or items of queries
            Sequences: a list of (T_i, d) arrays, of lists of feature dicts or strings per token,
            packed tokens, or all tokens as rows with `groups`. Items of queries: a list of
            (n_i, d) arrays, or all items as rows with `groups`.
        y : (n, …) array; the tags of each sequence; the relevance of each item
            Orders list labels best first and may end early (−1, NaN, None). Candidate sets are a
            list of sets or a 0/1 matrix.
        sample_weight : (n,) array, optional
            How often each row, sequence or query counts.
        groups : (N,) array, optional
            The sequence or query that each row of X belongs to; rows of a sequence stand together.
            For queries also their sizes in turn. With single rows: rows of one group are left out
            together.

        Returns
        -------
        self
        """
        if self._fit_partitions(X, y, sample_weight, groups=groups):
            return self
        model, examples = self._training(X, y, sample_weight, groups=groups)
        self._fit_model(model, examples)
        return self

    def _training(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
    ) -> tuple[TargetModel, Examples]:
        """The model to be fitted and what it is fitted on; an earlier fit is forgotten."""
        self._forget()
        if takes_sequences(self.loss, X, groups):
            model = self._model_for("sequences")
            return model, read_sequences(self, model, X, y, groups, sample_weight)
        if takes_queries(self.loss, X, y, groups):
            model = self._model_for("queries")
            return model, read_queries(self, model, X, y, groups, sample_weight)
        model = self._model_for(self._row_kind())
        return model, self._rows(model, X, y, sample_weight, groups)

    def _rows(self, model: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> Examples:
        X = table_inputs(self, X, model, reset=True)
        order = order_of(y)
        y = self._checked_labels(X, y)
        loss, encoding, codes = prepare_labels(self.loss, y, structured=True, order=order)
        weight = check_sample_weight(sample_weight, len(codes))
        groups = checked_groups(groups, len(codes))
        return Examples(Rows(loss, encoding), X, codes, weight, groups)

    @streams  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        classes: Any = None,
    ) -> Self:
        """One pass of averaged SGD over a batch; features are chosen on the first batch.

        Parameters
        ----------
        X : (n, n_features) array, CSR or DataFrame; or sequences
        y : (n, …) array; or the tags of each sequence
            With a loss spec the first batch tells the sizes; give a Loss object to fix them.
        sample_weight : (n,) array, optional
        groups : (N,) array, optional
            The sequence of each row of X, for sequences.
        classes : list, optional
            All tags; the first batch of sequences needs them.

        Returns
        -------
        self
        """
        first = not hasattr(self, "stream_")
        if first:
            self._forget()
        if takes_sequences(self.loss, X, groups):
            model = self._model_for("sequences") if first else self.model_
            kind: Any = None if first else self.kind_
            examples = read_batch(self, model, X, y, groups, sample_weight, kind, classes)
            self.kind_ = examples.kind
            self._stream(model, examples)
            return self
        refuse_groups(groups)
        model = self._model_for(self._row_kind()) if first else self.model_
        X = table_inputs(self, X, model, reset=first)
        order = order_of(y)
        y = self._checked_labels(X, y)
        if first:
            loss, encoding, codes = prepare_labels(self.loss, y, structured=True, order=order)
            self.kind_ = Rows(loss, encoding)
        else:
            codes = encode_again(self.kind_.labels, self.kind_.loss, y)
        self._stream(
            model, Examples(self.kind_, X, codes, check_sample_weight(sample_weight, len(y)))
        )
        return self

    @available_if(_ranks_items)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any, groups: Any = None) -> Any:
        """Score of each item, greatest first; comparable within a query. For rankings only.

        Parameters
        ----------
        X, groups
            As in `fit`.

        Returns
        -------
        scores : (N,) array in the order of the items, or a list of arrays
        """
        inputs = self._read(X, groups)
        expected = self.model_.expected(inputs)
        return inputs.unpack(expected.with_values(-np.asarray(expected.values).ravel()))

    @available_if(_has_marginals)  # type: ignore[untyped-decorator]
    def predict_marginals(self, X: Any, groups: Any = None) -> Any:
        """P(tag of each token), a list of (T_i, s) arrays; flat with `groups`. Needs log loss.

        Recalibrated on out-of-fold sequences.

        Parameters
        ----------
        X, groups
            As in `fit`.
        """
        inputs = self._read(X, groups)
        marginals = self.recalibration_.for_reports(self.model_.marginals(inputs))
        return marginals.values if groups is not None else list(marginals)

    def _checked_labels(self, X: Any, y: Any) -> Any:
        if not hasattr(self, "label_columns_"):  # the first batch
            self.label_columns_ = label_names(y)
        y = as_array(on_host(labels_by_name(self, y)), complete=not takes_any_labels(self.loss))
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        if not takes_any_labels(self.loss):
            refuse_missing_labels(y)
            y = check_array(
                y, ensure_2d=False, allow_nd=True, dtype=None, ensure_min_samples=1, input_name="y"
            )
            if over_classes(self.loss) and y.shape[1:] == (1,):
                y = y[:, 0]
        check_consistent_length(X, y)
        return y
