"""What a model should beat: the best constant, and what people use.

Logistic regression for classes and label sets; for classes also a random forest and boosting.

"argmax" (of label sets: each label at ½) predicts the likeliest label, "Bayes decisions" the one
of least expected loss under the estimated probabilities; of label sets as if labels were
independent.

All work on label codes, of which the loss is a function; none sees the examples held out.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._validation import is_sparse, to_dense
from consistruct.losses import FBeta
from consistruct.losses.base import Loss, dense_target
from consistruct.protocols import FloatArray, LabelArray
from consistruct.structures import Classes

__all__ = ["LogisticProbabilities", "Peer", "constant_decision", "label_kind", "row_peers"]

N_DRAWS = 64  # label sets drawn per example for decisions under independent labels
PART_LIMIT = 64  # logistic regressions of one baseline
CHUNK = 256  # rows decoded at a time
EARLY_ROWS = 10  # of the rarest class, for boosting with early stopping


@dataclass(frozen=True)
class Peer:
    """Something that a model should beat.

    Attributes
    ----------
    decide : callable (training inputs, true labels, inputs) -> {name: predictions}
        Fits, then decides; inputs are packed, true labels and predictions are codes. The last entry
        stands in the learning curve.
    in_curve : bool
    """

    decide: Callable[[Any, Any, Any], dict[str, Any]]
    in_curve: bool = True


def label_kind(loss: Loss, codes: LabelArray) -> str:
    """ "classes", "sets" (0/1 for each of T labels) or "other"."""
    if isinstance(loss.true_labels, Classes):
        return "classes"
    if isinstance(loss.predictions, Classes):  # the true labels are sets of candidates, not labels
        return "other"
    if codes.ndim == 2 and codes.size and set(np.unique(codes).tolist()) <= {-1, 0, 1}:
        return "sets"
    return "other"


def row_peers(loss: Loss, train: LabelArray, seed: int) -> tuple[list[Peer], str | None]:
    """All baselines that make sense for the labels of rows, and why the others do not."""
    found = [Peer(_constant(loss), in_curve=False)]
    if loss.solver is not None:
        name = "linear regression, then the oracle"
        found.append(Peer(lambda X, true, new: {name: _two_stage(loss, X, true, new)}))
        return found, "logistic regression is for classes and label sets; these are decisions"
    if loss.takes_cost_vectors:
        return [*found, *_cost_regressions(loss)], None
    kind = label_kind(loss, train)
    if kind == "other":
        return found, "logistic regression is for classes and label sets; these labels are neither"
    if kind == "sets" and train.shape[1] > PART_LIMIT:
        return found, (
            f"logistic regression of {train.shape[1]} labels was left out; the limit is "
            f"{PART_LIMIT}"
        )
    found.append(Peer(_logistic_peer(loss, kind, seed)))
    if kind == "sets" and loss.hamming_shape is not None:
        return found, (
            "for the Hamming loss, Bayes decisions are the same as thresholding each label at ½"
        )
    if kind == "classes":
        found += [
            Peer(_tree_peer(loss, name, make, seed))
            for name, make in (("forest", _forest), ("boosting", _boosting))
        ]
    return found, None


def _constant(loss: Loss) -> Callable[[Any, Any, Any], dict[str, Any]]:
    def decide(X: Any, true: LabelArray, new: Any) -> dict[str, Any]:
        return {"best constant": constant_decision(loss, true, new.shape[0])}

    return decide


def _logistic_peer(loss: Loss, kind: str, seed: int) -> Callable[[Any, Any, Any], dict[str, Any]]:
    usual = "argmax" if kind == "classes" else "each label at ½"
    only = kind == "sets" and loss.hamming_shape is not None  # Bayes decisions are these

    def decide(X: Any, true: LabelArray, new: Any) -> dict[str, Any]:
        logistic = LogisticProbabilities(X, true, kind)
        chances = logistic.probabilities(new)
        found = {f"logistic, {usual}": logistic.likeliest(loss, chances)}
        if not only:
            rng = np.random.default_rng(seed)
            found["logistic, Bayes decisions"] = logistic.bayes(loss, chances, rng)
        return found

    return decide


def _tree_peer(
    loss: Loss, name: str, make: Callable[[Any, LabelArray], Any], seed: int
) -> Callable[[Any, Any, Any], dict[str, Any]]:
    def decide(X: Any, true: LabelArray, new: Any) -> dict[str, Any]:
        logistic = LogisticProbabilities(X, true, "classes", make)
        codes = logistic.bayes(loss, logistic.probabilities(new), np.random.default_rng(seed))
        return {f"{name}, Bayes decisions": codes}

    return decide


def _cost_regressions(loss: Loss) -> list[Peer]:
    """Costs by regression, then the lowest-cost decision."""
    space = loss.score_space

    def peer(name: str, make: Callable[[Any], Any]) -> Peer:
        def decide(X: Any, true: LabelArray, new: Any) -> dict[str, Any]:
            costs = np.asarray(make(X).fit(X, loss.target(true)).predict(new))
            return {name: space.decode(-costs.reshape(-1, space.width))}

        return Peer(decide)

    return [
        peer("linear regression of the costs", _linear_costs),
        peer("forest of the costs", _forest_costs),
    ]


def _two_stage(loss: Loss, X_train: Any, train: LabelArray, X_test: Any) -> LabelArray:
    """Costs by least squares, then decisions: what people do first."""
    from sklearn.linear_model import LinearRegression

    costs = LinearRegression().fit(X_train, loss.target(train)).predict(X_test)
    return loss.score_space.decode(-costs)


def constant_decision(loss: Loss, train: LabelArray, n: int) -> LabelArray:
    """The prediction with the least mean loss on the training part, n times."""
    mean = np.asarray(loss.target(train).mean(axis=0), dtype=np.float64).reshape(1, -1)
    return np.repeat(loss.score_space.decode(-mean), n, axis=0)


class LogisticProbabilities:
    """P(y | x) by logistic regression on standardized features, scikit-learn's defaults.

    Classes: multinomial. Label sets: one regression per label, independent given x. `make` gives
    another classifier its pipeline.
    """

    def __init__(
        self,
        X: Any,
        codes: LabelArray,
        kind: str,
        make: Callable[[Any, LabelArray], Any] | None = None,
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
        # a true label may be no prediction (rectangular costs): then the lowest-cost one for it
        if loss.true_labels.size == loss.n_labels or loss.abstain_index is not None:
            return best
        return loss.score_space.decode(-dense_target(loss.target(best)))

    def bayes(self, loss: Loss, probabilities: FloatArray, rng: np.random.Generator) -> LabelArray:
        """The prediction of least expected loss under these probabilities."""
        if isinstance(loss, FBeta):  # sets that are drawn may have sizes that training never saw
            loss = dataclasses.replace(loss, sizes=None)
        decode = loss.score_space.decode
        if self.kind == "classes":
            targets = dense_target(loss.target(np.arange(probabilities.shape[1])))
            return decode(-(probabilities @ targets))
        parts = []
        for start in range(0, len(probabilities), CHUNK):
            rows = probabilities[start : start + CHUNK]
            drawn = (rng.random((len(rows), N_DRAWS, rows.shape[1])) < rows[:, None]).astype(
                np.int64
            )
            targets = dense_target(loss.target(drawn.reshape(-1, rows.shape[1])))
            parts.append(decode(-targets.reshape(len(rows), N_DRAWS, -1).mean(axis=1)))
        return np.concatenate(parts)


def _fitted(X: Any, codes: LabelArray, make: Callable[[Any, LabelArray], Any]) -> Any:
    """A fitted pipeline, or the only code that there is."""
    from sklearn.exceptions import ConvergenceWarning

    if len(np.unique(codes)) == 1:
        return int(codes[0])
    with warnings.catch_warnings():
        # after 1000 iterations the last digits do not matter for a baseline
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make(X, codes).fit(X, codes)


def _logistic(X: Any, codes: LabelArray) -> Any:
    from sklearn.linear_model import LogisticRegression

    return _of_lines(X, LogisticRegression(max_iter=1000))


def _linear_costs(X: Any) -> Any:
    from sklearn.linear_model import Ridge

    return _of_lines(X, Ridge())


def _of_lines(X: Any, model: Any) -> Any:
    """Linear models: numbers standardized, categories one-hot, missing cells filled in."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from consistruct.learning.selection.columns import Columns

    scaler = StandardScaler(with_mean=False) if is_sparse(X) else Columns.of(X).for_linear()
    return make_pipeline(scaler, model)


def _forest_costs(X: Any) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return _of_trees(X, RandomForestRegressor(random_state=0))


def _forest(X: Any, codes: LabelArray) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return _of_trees(X, RandomForestClassifier(random_state=0))


def _boosting(X: Any, codes: LabelArray) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    from consistruct.learning.selection.columns import Columns

    # early stopping holds out a tenth of the rows, in which every class must occur
    counts = np.unique(codes, return_counts=True)[1]
    early = len(codes) >= 10 * len(counts) and bool(counts.min() >= EARLY_ROWS)
    categories = [] if is_sparse(X) else Columns.of(X).coded()
    boosting = HistGradientBoostingClassifier(
        early_stopping=early, categorical_features=categories or None, random_state=0
    )
    return _of_trees(X, boosting)


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
