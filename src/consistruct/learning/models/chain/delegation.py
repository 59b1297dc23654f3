"""How `StructuredPredictor` hands sequences of different lengths over to the chain estimator."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from consistruct.labels import Ragged
from consistruct.learning.encoding.tokens import PackedTokens, is_sparse
from consistruct.learning.models.chain.estimator import SequencePredictor
from consistruct.losses import Hamming
from consistruct.scores import Chain

__all__ = [
    "fit_sequences",
    "refuse_sequence_settings",
    "sequence_predictor_for",
    "takes_sequences",
]

Estimator = TypeVar("Estimator")

DECODING = {"argmax": "viterbi", "bayes": "marginals"}
DEFAULT_RANDOM_FEATURES = 2000
# what StructuredPredictor takes for sequences alone, with the value that says nothing
SEQUENCE_SETTINGS: dict[str, Any] = {
    "window": 0,
    "transitions": "shared",
    "tag_scheme": None,
    "forbidden_transitions": None,
}


def takes_sequences(loss: Any, X: Any, groups: Any = None) -> bool:
    """Whether X holds sequences of different lengths and the loss is a family that judges them.

    >>> takes_sequences("hamming", [np.zeros((2, 3)), np.zeros((5, 3))])
    True
    >>> takes_sequences("hamming", np.zeros((10, 3)))
    False
    >>> takes_sequences("hamming", np.zeros((10, 3)), groups=[0] * 4 + [1] * 6)
    True
    """
    name = loss.replace("-", "_").partition(":")[0] if isinstance(loss, str) else None
    family = name == "hamming" or (isinstance(loss, Hamming) and loss.T is None)
    if not family or X is None:
        return False
    if groups is not None or isinstance(X, PackedTokens | Ragged):
        return True
    if is_sparse(X) or isinstance(X, np.ndarray) or not isinstance(X, list | tuple) or not X:
        return False
    first = X[0]
    if is_sparse(first) or isinstance(first, np.ndarray):
        return is_sparse(first) or first.ndim == 2
    # nested lists: tokens are lists, dicts or sets, where a row of plain features holds numbers
    return isinstance(first, list | tuple) and (
        len(first) == 0 or isinstance(first[0], list | tuple | dict | set | frozenset | np.ndarray)
    )


def refuse_sequence_settings(estimator: Any) -> None:
    """Raise if settings of chains are given where the labels have a fixed shape."""
    for name, unset in SEQUENCE_SETTINGS.items():
        value = getattr(estimator, name)
        if value != unset:
            raise ValueError(
                f"{name}={value!r} is for sequences, but X holds one row per label; give X as a "
                f"list of (T_i, d) arrays or with groups=, or leave {name} out"
            )


def sequence_predictor_for(estimator: Any) -> SequencePredictor:
    """A `SequencePredictor` with the settings of a `StructuredPredictor`, each checked."""
    parameters = estimator.get_params(deep=False)
    random_features = None
    if parameters["features"] == "random":
        random_features = parameters["n_components"] or DEFAULT_RANDOM_FEATURES
    elif parameters["features"] not in ("auto", "linear"):
        raise ValueError(
            f"features for sequences must be 'auto', 'linear' or 'random', "
            f"got {parameters['features']!r}"
        )
    if parameters["decoding"] not in DECODING:
        raise ValueError(
            f"decoding must be 'argmax' (Viterbi) or 'bayes' (marginals), "
            f"got {parameters['decoding']!r}"
        )
    scores = parameters["scores"]
    if not (scores is None or scores == "chain" or isinstance(scores, Chain)):
        raise ValueError(f"scores for sequences must be None or a Chain, got {scores!r}")
    solver = "sgd" if parameters["solver"] == "auto" else parameters["solver"]
    alpha = parameters["alpha"]
    if isinstance(alpha, str):  # "auto"; the reference solver needs some penalty to end
        alpha = 0.0 if solver == "sgd" else 1.0
    bandwidth = parameters["bandwidth"]
    surrogate = parameters["surrogate"]
    return SequencePredictor(
        "log" if surrogate == "auto" else surrogate,
        DECODING[parameters["decoding"]],
        window=parameters["window"],
        random_features=random_features,
        bandwidth="median" if isinstance(bandwidth, str) else bandwidth,
        transitions=parameters["transitions"],
        tag_scheme=parameters["tag_scheme"],
        forbidden_transitions=parameters["forbidden_transitions"],
        solver=solver,
        alpha=alpha,
        random_state=parameters["random_state"],
        verbose=parameters["verbose"],
    )


def fit_sequences(
    estimator: Estimator, X: Any, y: Any, groups: Any = None, sample_weight: Any = None
) -> Estimator:
    """Fit the chain estimator on behalf of `estimator`, which keeps it and its attributes."""
    predictor = sequence_predictor_for(estimator).fit(X, y, groups, sample_weight)
    loss = estimator.loss  # type: ignore[attr-defined]
    n_tags = len(predictor.classes_)
    if isinstance(loss, Hamming) and n_tags > loss.n_states:
        raise ValueError(f"y holds {n_tags} tags, but {loss!r} has {loss.n_states} states")
    learned = {
        "sequence_predictor_": predictor,
        "loss_": loss if isinstance(loss, Hamming) else Hamming(None, max(n_tags, 2)),
        "classes_": predictor.classes_,
        "coef_": predictor.coef_,
        "intercept_": predictor.intercept_,
        "n_iter_": predictor.n_iter_,
        "n_features_in_": predictor.n_features_in_,
        "contrast_": 1.0,
        "centre_": None,
    }
    for name, value in learned.items():
        setattr(estimator, name, value)
    return estimator
