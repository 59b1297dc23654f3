"""What a tagger of sequences should beat, and the numbers that people quote for it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from consistruct.report.learning.baselines import Peer
from consistruct.report.learning.entries import Confusion, Measure
from consistruct.structures import Ragged

__all__ = ["sequence_measures", "sequence_peers", "tag_confusion"]

CONSTANT = "commonest tag"
TOKENWISE = "logistic, each token by itself"
EPOCHS = 10


def sequence_peers(seed: int) -> list[Peer]:
    """The commonest tag, and a classifier of tokens that does not look at neighboring tags."""

    def tokenwise(X: Any, true: Ragged, new: Any) -> dict[str, Any]:
        features, others = _token_features(X, new)
        states = np.unique(true.values)
        if len(states) == 1:
            codes = np.full(others.shape[0], states[0])
        else:
            codes = _classifier(features, seed).fit(features, true.values).predict(others)
        return {TOKENWISE: Ragged(np.asarray(codes, dtype=np.int64), new.offsets)}

    return [Peer(_commonest, in_curve=False), Peer(_quietly(tokenwise))]


def _commonest(X: Any, true: Ragged, new: Any) -> dict[str, Any]:
    # the loss is the share of wrong tokens in a sequence: tokens of short ones count more
    share = np.bincount(true.values, weights=1.0 / true.lengths[true.rows])
    tag = int(share.argmax())
    return {CONSTANT: Ragged(np.full(int(new.offsets[-1]), tag, dtype=np.int64), new.offsets)}


def _token_features(X: Any, new: Any) -> tuple[Any, Any]:
    """(N, d) features of all tokens; names of features become columns."""
    from consistruct.learning.encoding.tokens import FeatureIndex

    if not hasattr(X, "sequences"):
        return X.features, new.features
    index = FeatureIndex()
    return index.fit_transform(X.sequences).features, index.transform(new.sequences).features


def _classifier(features: Any, seed: int) -> Any:
    """Logistic regression; by stochastic gradients where features are many and sparse."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if hasattr(features, "indptr"):
        return SGDClassifier(
            "log_loss", alpha=1e-5, max_iter=EPOCHS, average=True, random_state=seed
        )
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))


def _quietly(decide: Any) -> Any:
    def run(X: Any, true: Any, new: Any) -> dict[str, Any]:
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():  # the last digits do not matter for a baseline
            warnings.simplefilter("ignore", ConvergenceWarning)
            found: dict[str, Any] = decide(X, true, new)
            return found

    return run


def sequence_measures(y_true: list[Any], y_pred: list[Any]) -> tuple[Measure, ...]:
    """Token error, sequence error and, where the tags are chunk tags, F1 of the chunks."""
    from consistruct.learning.evaluation.sequence_metrics import chunk_scheme, sequence_intervals

    tags = [tag for row in (*y_true, *y_pred) for tag in row]
    scheme = chunk_scheme(tags) if all(isinstance(tag, str) for tag in tags) else None
    names = {
        "token_error": "token error",
        "sequence_error": "sequences with an error",
        "chunk_f1": "F1 of chunks",
    }
    return tuple(
        Measure(names[key], found.estimate, found.low, found.high)
        for key, found in sequence_intervals(y_true, y_pred, scheme).items()
    )


def tag_confusion(model: Any, predicted: Ragged, codes: Ragged) -> Confusion:
    """Tags of tokens: counts, and which part of the mean loss each mistake makes."""
    from consistruct.report.learning.error_tables import confusion_table

    tags = model.label_encoding_.tags
    wrong = predicted.values != codes.values
    weight = 1.0 / (codes.lengths[codes.rows] * len(codes))
    return confusion_table(predicted.values, codes.values, wrong * weight, tags, tags)
