"""Any classifier with `predict_proba` as a model of the expected target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from consistruct.decisions.statistics import ClassProbabilities, Statistic
from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.learning.models.base import TargetModel
from consistruct.learning.models.wrapped import (
    check_weights,
    fit_each,
    fit_wrapped,
    holds_search,
    n_rows,
    prepared,
    takes_missing,
    takes_several_outputs,
    wants_matrix,
)
from consistruct.learning.statistics import TargetValues
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, IntArray, Target
from consistruct.structures.base import ENUMERATION_LIMIT

__all__ = ["Probabilities", "Question"]


@dataclass(frozen=True, eq=False)
class Question:
    """One thing that a classifier predicts: the class, the state of a part, a member and the size.

    Attributes
    ----------
    columns : (c,) int array
        Columns of the statistic that the answer determines.
    answers : (a, c) CSR
        What the columns hold for each answer that occurs in training.
    codes : (n,) int array or None
        Answer of each training row; None once the classifier is fitted.
    """

    columns: IntArray
    answers: sp.csr_array
    codes: IntArray | None = None

    @property
    def open(self) -> bool:
        """Whether there is anything to learn: more than one answer occurs."""
        return bool(self.answers.shape[0] > 1)


class Probabilities(TargetModel):
    """Estimate probabilities with a classifier and take the expected target from them.

    Of classes (cost matrices, ordinal grades, trees, the right to abstain) the classifier is
    requested for the class. Of label sets it predicts what the loss needs to know: the state of
    each part for the Hamming loss, for F-beta each label together with the size of the set. Of
    candidate sets with ``reduce="average"`` each candidate counts as a row with its share of the
    weight.

    Choose it for losses over classes: boosting or a calibrated classifier here, followed by the
    decision of least expected cost, is the recipe that practitioners trust.

    Parameters
    ----------
    estimator : classifier, optional
        Anything with `fit` and `predict_proba`: boosting, forests, logistic regression,
        `CalibratedClassifierCV`, pipelines. A classifier that answers several questions at once
        (forests, neighbors) is fitted once, any other once per question. Extra trees if None.
    n_jobs : int, optional
        Questions fitted at a time; workers of a classifier that is fitted once, asks joblib for
        them and has ``n_jobs=None``. Estimates do not depend on it.

    Attributes
    ----------
    statistic_ : Statistic
        `ClassProbabilities` where true labels are classes, the target otherwise.
    estimators_ : list
        Fitted classifiers: a single one for all questions, or one per question that has more than
        one answer in training.
    questions_ : list of Question

    Notes
    -----
    Rankings, matchings, cost vectors and candidate sets judged by the best or worst candidate are
    no questions about probabilities of few answers; `Regressor` takes them.

    X is handed over as it is: DataFrames with categorical columns and missing values go to
    classifiers that take them. A class that does not occur in training has probability 0.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from consistruct.learning.models.probabilities import Probabilities
    >>> from consistruct.learning.statistics import finest_statistic
    >>> from consistruct.losses import CostMatrix
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> statistic = finest_statistic(CostMatrix([[0, 10], [1, 0]], rows="pred"))
    >>> model = Probabilities(LogisticRegression())
    >>> model = model.fit(X, y, statistic, rng=np.random.default_rng(0))
    >>> model.expected([[1.0]]).round(2), statistic.decode(model.expected([[1.0]]))
    (array([[0.62, 0.38]]), array([1]))
    """

    raw_inputs = True
    wants_frames = True

    estimators_: list[Any]
    questions_: list[Question]

    def __init__(self, estimator: Any = None, *, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        """Whether NaN in X is welcome: as the classifier states."""
        return takes_missing(self._unfitted())

    def _unfitted(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        # larger leaves than the default of one row: a leaf is an estimate of probabilities
        return ExtraTreesClassifier(n_estimators=200, min_samples_leaf=2, max_features=0.5)

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
        estimator = self._unfitted()
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"Probabilities takes a classifier with predict_proba, got {estimator!r}; wrap a "
                "classifier without it in CalibratedClassifierCV, and a regressor in Regressor"
            )
        own = self._statistic(statistic)
        codes, rows, share = own.loss.single_true_labels(codes)
        if rows is not None and share is not None:
            X = _safe_indexing(X, rows)
            base = np.ones(int(rows[-1]) + 1) if sample_weight is None else sample_weight
            sample_weight = base[rows] * share
        check_weights(estimator, sample_weight, self)
        values = own.values(codes)
        questions = _questions(own, values)
        self.statistic_ = own
        self.constant_ = _constant(values, questions, own.loss)
        self.estimators_ = self._fitted(estimator, X, questions, sample_weight, rng)
        self.questions_ = [Question(question.columns, question.answers) for question in questions]
        return self

    def _statistic(self, requested: Statistic) -> Statistic:
        """What the classifier can tell: the class itself, else the target by its questions."""
        loss, size = requested.loss, requested.loss.true_labels.size
        if loss.true_labels.shape == () and size is not None and size <= ENUMERATION_LIMIT:
            return ClassProbabilities(loss)
        if loss.target_groups() is None:
            raise CapabilityError(
                loss,
                "target_groups",
                "Probabilities",
                "use Regressor, which fits the target of any loss",
            )
        return TargetValues(loss)

    def _fitted(
        self,
        estimator: Any,
        X: Any,
        questions: list[Question],
        weight: FloatArray | None,
        rng: np.random.Generator,
    ) -> list[Any]:
        codes: list[Any] = [question.codes for question in questions if question.open]
        if not codes:
            return []
        several = takes_several_outputs(estimator) and not holds_search(estimator)
        if several and (len(codes) > 1 or wants_matrix(estimator)):
            copy = prepared(estimator, rng)
            fitted = fit_wrapped(copy, X, np.column_stack(codes), weight, self.n_jobs)
            # some answer with the share of "yes" only, which is no probability of every answer
            if isinstance(fitted.predict_proba(_safe_indexing(X, [0])), list):
                return [fitted]
        if len(codes) == 1:
            return [fit_wrapped(prepared(estimator, rng), X, codes[0], weight, self.n_jobs)]
        return fit_each(estimator, X, codes, weight, rng, self.n_jobs)

    def expected(self, X: Any) -> FloatArray:
        check_is_fitted(self, "questions_")
        n = n_rows(X)
        found = iter(self._probabilities(X))
        expected = np.tile(self.constant_, (n, 1))
        for question in self.questions_:
            if not question.open:
                expected[:, question.columns] = question.answers.toarray()
                continue
            probabilities = np.asarray(next(found), dtype=np.float64)
            if probabilities.shape != (n, question.answers.shape[0]):
                raise ValueError(
                    f"predict_proba of {type(self.estimators_[0]).__name__} has shape "
                    f"{probabilities.shape}, but {(n, question.answers.shape[0])} is needed"
                )
            expected[:, question.columns] = probabilities @ question.answers
        return expected

    def _probabilities(self, X: Any) -> Iterator[Any]:
        """Of every answer to every open question, (n, answers) each."""
        for estimator in self.estimators_:
            found = estimator.predict_proba(X)
            yield from found if isinstance(found, list) else [found]


def _questions(statistic: Statistic, values: Target) -> list[Question]:
    """What is requested of each row, from the values of the statistic."""
    if statistic.of_classes:
        present, codes = np.unique(values.indices, return_inverse=True)
        every = np.arange(statistic.width)
        return [Question(every, sp.csr_array(sp.eye_array(statistic.width))[present], codes)]
    groups = statistic.loss.target_groups()
    assert groups is not None
    n_scores = statistic.loss.score_space.width
    if len(groups) == 1:  # an offset that depends on the true label goes with the only question
        groups = (np.append(groups[0], np.arange(n_scores, statistic.width)),)
    by_column = sp.csc_array(values)
    questions = []
    for columns in groups:
        answers, codes = np.unique(by_column[:, columns].toarray(), axis=0, return_inverse=True)
        questions.append(Question(np.asarray(columns), sp.csr_array(answers), codes.ravel()))
    return questions


def _constant(values: Target, questions: list[Question], loss: Loss) -> FloatArray:
    """What columns hold that no question is about, (width,)."""
    by_column = sp.csc_array(values)
    constant = np.zeros(values.shape[1])
    requested = np.concatenate([question.columns for question in questions])
    for column in np.setdiff1d(np.arange(len(constant)), requested):
        held = by_column[:, [column]].toarray()
        if np.ptp(held) > 0:
            raise ConsistructError(
                f"target_groups of {loss!r} leave out column {column} of the target, which "
                f"depends on the true label"
            )
        constant[column] = held[0, 0]
    return constant
