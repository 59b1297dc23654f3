"""What a model should beat: the best constant, and what people use.

Logistic regression for classes and label sets; for classes also a random forest and boosting.

"argmax" (of label sets: each label at ½) predicts the likeliest label, "Bayes decisions" the one
of least expected loss under the estimated probabilities; of label sets as if labels were
independent.

All work on label codes, of which the loss is a function; none sees the examples held out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._sparse import is_sparse, to_dense
from consistruct.labels import Classes
from consistruct.losses import Decision, Hamming
from consistruct.losses.base import Loss, dense_target
from consistruct.protocols import FloatArray, LabelArray

__all__ = ["Baseline", "LogisticLaw", "constant_decision", "fit_baselines", "label_kind"]

N_DRAWS = 64  # label sets drawn per example for decisions under independent labels
PART_LIMIT = 64  # logistic regressions of one baseline
CHUNK = 256  # rows decoded at a time


@dataclass(frozen=True)
class Baseline:
    """Predictions (codes) for the examples held out."""

    name: str
    codes: LabelArray
    seconds: float


def label_kind(loss: Loss, codes: LabelArray) -> str:
    """ "classes", "sets" (0/1 for each of T labels) or "other"."""
    if isinstance(loss.truths, Classes):
        return "classes"
    if codes.ndim == 2 and codes.size and set(np.unique(codes).tolist()) <= {-1, 0, 1}:
        return "sets"
    return "other"


def fit_baselines(
    loss: Loss,
    X_train: Any,
    train: LabelArray,
    X_test: Any,
    *,
    seed: int,
    done: Callable[[], None],
) -> tuple[list[Baseline], str | None]:
    """All baselines that make sense for these labels, and why the others do not."""
    found = [_timed("best constant", lambda: constant_decision(loss, train, X_test.shape[0]))]
    done()
    if isinstance(loss, Decision):
        found.append(
            _timed(
                "linear regression, then the oracle",
                lambda: _two_stage(loss, X_train, train, X_test),
            )
        )
        done()
        return found, "logistic regression is for classes and label sets; these are decisions"
    kind = label_kind(loss, train)
    if kind == "other":
        return found, "logistic regression is for classes and label sets; these labels are neither"
    if kind == "sets" and train.shape[1] > PART_LIMIT:
        return found, (
            f"logistic regression of {train.shape[1]} labels was left out; the limit is "
            f"{PART_LIMIT}"
        )
    start = time.perf_counter()
    law = LogisticLaw(X_train, train, kind)
    probabilities = law.probabilities(X_test)
    fitting = time.perf_counter() - start
    usual = "argmax" if kind == "classes" else "each label at ½"
    found.append(Baseline(f"logistic, {usual}", law.likeliest(loss, probabilities), fitting))
    done()
    if kind == "sets" and isinstance(loss, Hamming):
        return found, "for the Hamming loss Bayes decisions are those of each label at ½"
    start = time.perf_counter()
    codes = law.bayes(loss, probabilities, np.random.default_rng(seed))
    deciding = time.perf_counter() - start
    found.append(Baseline("logistic, Bayes decisions", codes, fitting + deciding))
    done()
    if kind == "classes":
        for name, make in (("forest", _forest), ("boosting", _boosting)):
            start = time.perf_counter()
            other = LogisticLaw(X_train, train, kind, make)
            codes = other.bayes(loss, other.probabilities(X_test), np.random.default_rng(seed))
            seconds = time.perf_counter() - start
            found.append(Baseline(f"{name}, Bayes decisions", codes, seconds))
            done()
    return found, None


def _timed(name: str, predict: Callable[[], LabelArray]) -> Baseline:
    start = time.perf_counter()
    codes = predict()
    return Baseline(name, codes, time.perf_counter() - start)


def _two_stage(loss: Decision, X_train: Any, train: LabelArray, X_test: Any) -> LabelArray:
    """Costs by least squares, then decisions: what people do first."""
    from sklearn.linear_model import LinearRegression

    costs = LinearRegression().fit(X_train, loss.target(train)).predict(X_test)
    return loss.score_space.decoder()(-costs)


def constant_decision(loss: Loss, train: LabelArray, n: int) -> LabelArray:
    """The prediction with the least mean loss on the training part, n times."""
    mean = np.asarray(loss.target(train).mean(axis=0), dtype=np.float64).reshape(1, -1)
    return np.repeat(loss.score_space.decoder()(-mean), n, axis=0)


class LogisticLaw:
    """P(y | x) by logistic regression on standardised features, scikit-learn's defaults.

    Classes: multinomial. Label sets: one regression per label, independent given x. `make` gives
    another classifier its pipeline.
    """

    def __init__(
        self,
        X: Any,
        codes: LabelArray,
        kind: str,
        make: Callable[[Any], Any] | None = None,
    ) -> None:
        self.kind = kind
        columns = codes[:, None] if kind == "classes" else codes
        self._models = [_fitted(X, column, make or _logistic) for column in columns.T]

    def probabilities(self, X: Any) -> FloatArray:
        """(n, largest code + 1) for classes, (n, T) chances of each label for sets."""
        if self.kind == "sets":
            return np.column_stack([_chance(model, X, 1) for model in self._models])
        model = self._models[0]
        known = [model] if isinstance(model, int) else model.classes_.tolist()
        return np.column_stack([_chance(model, X, code) for code in range(max(known) + 1)])

    def likeliest(self, loss: Loss, probabilities: FloatArray) -> LabelArray:
        """The usual prediction."""
        if self.kind == "sets":
            return (probabilities >= 0.5).astype(np.int64)
        best = probabilities.argmax(axis=1)
        # a truth may be no prediction (rectangular costs): then the cheapest one for it
        if loss.truths.size == loss.n_labels or type(loss).__name__ == "Abstain":
            return best
        return loss.score_space.decoder()(-dense_target(loss.target(best)))

    def bayes(self, loss: Loss, probabilities: FloatArray, rng: np.random.Generator) -> LabelArray:
        """The prediction of least expected loss under these probabilities."""
        decoder = loss.score_space.decoder()
        if self.kind == "classes":
            targets = dense_target(loss.target(np.arange(probabilities.shape[1])))
            return decoder(-(probabilities @ targets))
        parts = []
        for start in range(0, len(probabilities), CHUNK):
            rows = probabilities[start : start + CHUNK]
            drawn = (rng.random((len(rows), N_DRAWS, rows.shape[1])) < rows[:, None]).astype(
                np.int64
            )
            targets = dense_target(loss.target(drawn.reshape(-1, rows.shape[1])))
            parts.append(decoder(-targets.reshape(len(rows), N_DRAWS, -1).mean(axis=1)))
        return np.concatenate(parts)


def _fitted(X: Any, codes: LabelArray, make: Callable[[Any], Any]) -> Any:
    """A fitted pipeline, or the only code that there is."""
    from sklearn.exceptions import ConvergenceWarning

    if len(np.unique(codes)) == 1:
        return int(codes[0])
    with warnings.catch_warnings():
        # after 1000 iterations the last digits do not matter for a baseline
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make(X).fit(X, codes)


def _logistic(X: Any) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from consistruct.learning.selection.columns import Columns

    # numbers are standardised, categories one-hot, missing cells filled in
    scaler = StandardScaler(with_mean=False) if is_sparse(X) else Columns.of(X).for_linear()
    return make_pipeline(scaler, LogisticRegression(max_iter=1000))


def _forest(X: Any) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return _of_trees(X, RandomForestClassifier(random_state=0))


def _boosting(X: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return _of_trees(X, HistGradientBoostingClassifier(early_stopping=True, random_state=0))


def _of_trees(X: Any, model: Any) -> Any:
    """Trees on codes of categories; sparse inputs made dense, which boosting needs."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from consistruct.learning.selection.columns import Columns

    if is_sparse(X):
        return make_pipeline(FunctionTransformer(to_dense, accept_sparse=True), model)
    columns = Columns.of(X).for_trees()
    return model if columns is None else make_pipeline(columns, model)


def _chance(model: Any, X: Any, code: int) -> FloatArray:
    if isinstance(model, int):
        return np.full(X.shape[0], float(model == code))
    column = np.flatnonzero(model.classes_ == code)
    if not len(column):
        return np.zeros(X.shape[0])
    return np.asarray(model.predict_proba(X)[:, column[0]])
