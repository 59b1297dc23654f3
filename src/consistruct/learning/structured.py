"""StructuredPredictor: the same learning for labels of any fixed shape."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from consistruct.decoding import ChainScores
from consistruct.exceptions import ConsistructError
from consistruct.labels import Classes
from consistruct.learning.base import BasePredictor, can_stream
from consistruct.learning.finite_inputs import known_finite
from consistruct.learning.label_encoding import takes_any_labels
from consistruct.learning.rankings.estimator import (
    fit_queries,
    item_scores,
    query_task_losses,
    rank_items,
    ranks_queries,
)
from consistruct.learning.rankings.relevance import takes_queries
from consistruct.learning.sequences.delegation import (
    fit_sequences,
    refuse_sequence_settings,
    takes_sequences,
)
from consistruct.learning.verbosity import verbosity
from consistruct.learning.weights import check_sample_weight
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray

__all__ = ["StructuredPredictor"]


def _is_chain(estimator: Any) -> bool:
    """Marginals exist for sequences only."""
    return hasattr(estimator, "sequence_predictor_")


def _ranks_items(estimator: Any) -> bool:
    """Scores of items exist for rankings only."""
    return ranks_queries(estimator)


def _refuse_groups(groups: Any) -> None:
    if groups is not None:
        raise ValueError(
            "groups mark the sequences of a Hamming loss without a fixed length (loss='hamming' "
            "or Hamming(None, n_states)) or the queries of a ranking loss (loss='ndcg'); leave "
            "groups out for other losses"
        )


class StructuredPredictor(BasePredictor):
    """Predicts label sets, rankings, orders, matchings, classes or sequences for a task loss.

    It minimises the same risk as `TaskLossClassifier`, over the label set of the loss; `score` is
    minus the mean task loss. Given sequences of different lengths and a Hamming loss ("hamming" or
    the family ``Hamming(None, s)``) it fits a chain, see `consistruct.learning.sequences`. Given
    items of queries and a ranking loss ("ndcg", "precision_at::5", ``NDCG(None)``) it fits one
    score per item, see `consistruct.learning.rankings`.

    Parameters
    ----------
    loss : Loss or str
        A spec ("hamming", "fbeta", "kendall", "ndcg") takes its sizes from y, whose states may
        then be of any type; a Loss object takes labels as its label set writes them. Losses on
        items of queries that need a score per pair (average precision, graded pairs) are refused
        unless scores="items" accepts item scores, which are not consistent for them in general.
    surrogate : "auto", str or class
        "auto": quadratic for labels of fixed shape, log loss for sequences. Sequences also take
        "hinge", "softmax_margin" and "quadratic".
    decoding, scores, features, kernel, bandwidth, degree, coef0, n_components, \
standardize, solver, alpha, regularizer, fit_intercept, random_state, n_jobs, verbose
        As in `TaskLossClassifier`. For sequences decoding="argmax" is Viterbi and "bayes" takes the
        state of largest marginal; features are "auto" (linear), "linear" or "random".
    window, transitions, tag_scheme, forbidden_transitions
        For sequences, as in `SequencePredictor`: features of so many neighbours on each side;
        transitions "shared" or "features"; "bio" or "iobes"; pairs of tags never seen in a row.

    Attributes
    ----------
    loss_, surrogate_, coef_, intercept_, alpha_, path_, contrast_, centre_, n_iter_, n_features_in_
        As in `TaskLossClassifier`.
    sequence_predictor_ : SequencePredictor
        The chain, where sequences were given.

    Examples
    --------
    >>> import numpy as np, consistruct as cs
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.column_stack([X[:, 0] > 0.3, X[:, 0] > 0.6]).astype(int)
    >>> cs.StructuredPredictor(loss="hamming").fit(X, y).predict([[0.1], [0.45], [0.9]])
    array([[0, 0],
           [1, 0],
           [1, 1]])
    >>> relevance = (4 * X[:, 0]).astype(int)
    >>> ranker = cs.StructuredPredictor("ndcg").fit(X, relevance, groups=np.arange(40) % 8)
    >>> ranker.predict([[0.2], [0.9], [0.5]])  # ranks of the items of one query
    array([3, 1, 2])
    """

    def __init__(
        self,
        loss: Any = "hamming",
        *,
        surrogate: Any = "auto",
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
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        window: int = 0,
        transitions: str = "shared",
        tag_scheme: str | None = None,
        forbidden_transitions: Any = None,
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
        self.window = window
        self.transitions = transitions
        self.tag_scheme = tag_scheme
        self.forbidden_transitions = forbidden_transitions

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

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
            For queries also their sizes in turn.

        Returns
        -------
        self
        """
        self.__dict__.pop("sequence_predictor_", None)
        if takes_sequences(self.loss, X, groups):
            return fit_sequences(self, X, y, groups, sample_weight)
        refuse_sequence_settings(self)
        if takes_queries(self.loss, X, y, groups):
            with verbosity(self.verbose):
                fit_queries(self, X, y, groups, sample_weight)
            return self
        _refuse_groups(groups)
        X, y = self._validated(X, y, reset=True)
        codes = self._prepare(y, None, structured=True)
        self._fit_weights(X, codes, check_sample_weight(sample_weight, len(codes)))
        return self

    @available_if(can_stream)  # type: ignore[untyped-decorator]
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

    def predict(self, X: Any, groups: Any = None) -> Any:
        """Predictions written like the labels of `fit`; for sequences a list, flat with `groups`.

        For items of queries the rank of each item, 1 is best: in the order of the rows of X, or a
        list with an array per query. Without `groups` the rows of X are the items of one query.

        Parameters
        ----------
        X, groups
            As in `fit`.
        """
        if hasattr(self, "sequence_predictor_"):
            return self.sequence_predictor_.predict(X, groups)
        if ranks_queries(self):
            return rank_items(self, X, groups)
        _refuse_groups(groups)
        return super().predict(X)

    def score_parameters(self, X: Any, groups: Any = None) -> Any:
        """θ(x), (n, width); for sequences `ChainScores`: unary scores, transitions, offsets.

        For items of queries one score per item, packed by query (`Ragged`).

        Parameters
        ----------
        X, groups
            As in `fit`.
        """
        if hasattr(self, "sequence_predictor_"):
            scores: ChainScores = self.sequence_predictor_.score_parameters(X, groups)
            return scores
        if ranks_queries(self):
            return item_scores(self, X, groups)[1]
        _refuse_groups(groups)
        return super().score_parameters(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Minus the mean task loss: greater is better, 0 is perfect.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `fit`.
        """
        if hasattr(self, "sequence_predictor_"):
            return float(self.sequence_predictor_.score(X, y, groups, sample_weight))
        if ranks_queries(self):
            losses = query_task_losses(self, X, y, groups)
            return -float(np.average(losses, weights=sample_weight))
        _refuse_groups(groups)
        return super().score(X, y, sample_weight)

    def task_losses(self, X: Any, y: Any, groups: Any = None) -> FloatArray:
        """Task loss of each row or query, (n,); a truth never seen in training counts as wrong.

        Parameters
        ----------
        X, y, groups
            As in `fit`.

        Returns
        -------
        losses : (n,) array
        """
        if ranks_queries(self):
            return query_task_losses(self, X, y, groups)
        _refuse_groups(groups)
        return super().task_losses(X, y)

    def predict_expected_loss(self, X: Any) -> FloatArray:
        """Estimated loss E[L(ŷ, y) | x] of each prediction, (n,); not for items of queries.

        Parameters
        ----------
        X : (n, n_features) array or CSR
        """
        if ranks_queries(self):
            raise ConsistructError(
                "scores of items are comparable within a query only, so they do not tell the "
                "expected loss of a query; decision_function gives the scores"
            )
        return super().predict_expected_loss(X)

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
        batch, scores = item_scores(self, X, groups)
        return batch.unpack(scores)

    @available_if(_is_chain)  # type: ignore[untyped-decorator]
    def predict_marginals(self, X: Any, groups: Any = None) -> Any:
        """P(tag of each token), a list of (T_i, s) arrays; flat with `groups`. Needs log loss.

        Parameters
        ----------
        X, groups
            As in `fit`.
        """
        return self.sequence_predictor_.predict_marginals(X, groups)

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=not known_finite(X),
        )
        if not takes_any_labels(self.loss):
            y = check_array(
                y, ensure_2d=False, allow_nd=True, dtype=None, ensure_min_samples=1, input_name="y"
            )
        check_consistent_length(X, y)
        over_classes = isinstance(self.loss, Loss) and isinstance(self.loss.truths, Classes)
        if over_classes and y.shape[1:] == (1,):
            y = y[:, 0]
        return X, y
