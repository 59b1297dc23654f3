"""The hand-over from StructuredPredictor to the chain estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from consistruct.labels import Ragged
from consistruct.learning import StructuredPredictor
from consistruct.learning.models.chain import PackedTokens, token_error
from consistruct.learning.models.chain.delegation import (
    sequence_predictor_for,
    takes_sequences,
)
from consistruct.losses import Hamming, ZeroOne
from consistruct.scores import Chain, Separable

ROWS = [np.eye(3)[[0, 1, 2]], np.eye(3)[[2, 2]], np.eye(3)[[1, 0, 1, 2]]] * 10
TAGS = [[("a", "b", "c")[i] for i in row.argmax(axis=1)] for row in ROWS]
GROUPS = np.repeat(np.arange(len(ROWS)), [len(row) for row in ROWS])


@pytest.mark.parametrize("loss", ["hamming", Hamming(None, 3)])
@pytest.mark.parametrize("surrogate", ["log", "hinge", "softmax_margin", "quadratic"])
def test_lists_of_arrays_reach_the_chain(loss: Any, surrogate: str) -> None:
    model = StructuredPredictor(loss, surrogate=surrogate, random_state=0).fit(ROWS, TAGS)
    assert token_error(TAGS, model.predict(ROWS)) == 0.0
    assert model.loss_ == Hamming(None, 3)
    assert model.coef_.shape == (3, 3)


def test_groups_reach_the_chain() -> None:
    flat = [tag for row in TAGS for tag in row]
    model = StructuredPredictor(random_state=0).fit(np.concatenate(ROWS), flat, groups=GROUPS)
    assert model.predict(np.concatenate(ROWS), groups=GROUPS).tolist() == flat


def test_plain_arrays_do_not() -> None:
    X = np.linspace(0, 1, 40)[:, None]
    y = np.column_stack([X[:, 0] > 0.3, X[:, 0] > 0.6]).astype(int)
    model = StructuredPredictor(surrogate="quadratic").fit(X, y)
    assert not hasattr(model, "sequence_predictor_")
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize(
    ("loss", "X", "groups", "expected"),
    [
        ("hamming", ROWS, None, True),
        ("hamming:5", ROWS, None, True),
        ("zero_one", ROWS, None, False),
        (ZeroOne(3), ROWS, None, False),
        (Hamming(4), np.zeros((3, 2)), None, False),
        (Hamming(4), ROWS, None, False),
        ("hamming", PackedTokens(np.eye(3), np.array([0, 3])), None, True),
        ("hamming", Ragged(np.eye(3), np.array([0, 3])), None, True),
        ("hamming", [[["w=a"], ["w=b"]]], None, True),
        ("hamming", [[{"w": 1}]], None, True),
        ("hamming", [[1.0, 2.0], [3.0, 4.0]], None, False),
        ("hamming", np.zeros((3, 2)), [0, 0, 1], True),
        ("hamming", None, None, False),
        ("hamming", [], None, False),
    ],
)
def test_what_counts_as_sequences(loss: Any, X: Any, groups: Any, expected: bool) -> None:
    assert takes_sequences(loss, X, groups) is expected


def test_settings_are_translated() -> None:
    chain = sequence_predictor_for(
        StructuredPredictor(
            surrogate="log",
            decoding="bayes",
            features="random",
            n_components=50,
            bandwidth=2.0,
            scores=Chain(None, 3),
            random_state=4,
        )
    )
    assert (chain.decoding, chain.random_features, chain.bandwidth) == ("marginals", 50, 2.0)
    assert (chain.solver, chain.alpha, chain.random_state) == ("sgd", 0.0, 4)
    reference = sequence_predictor_for(StructuredPredictor(solver="lbfgs"))
    assert (reference.solver, reference.alpha) == ("lbfgs", 1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": "nystroem"}, "features for sequences must be 'auto', 'linear' or 'random'"),
        ({"decoding": "greedy"}, r"decoding must be 'argmax' \(Viterbi\) or 'bayes'"),
        ({"scores": Separable(3, 2)}, "scores for sequences must be None or a Chain"),
        ({"loss": Hamming(None, 2)}, "y holds 3 tags, but Hamming.* has 2 states"),
    ],
)
def test_settings_that_sequences_do_not_have_are_named(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        StructuredPredictor(**settings).fit(ROWS, TAGS)


def test_scores_marginals_and_scoring_come_from_the_chain() -> None:
    model = StructuredPredictor(random_state=0).fit(ROWS, TAGS)
    assert model.sequence_predictor_.surrogate == "log"  # what "auto" means for sequences
    assert model.score(ROWS, TAGS) == 0.0
    wrong = [["a"] * len(tags) for tags in TAGS]
    expected = -np.mean([np.mean([tag != "a" for tag in tags]) for tags in TAGS])
    assert model.score(ROWS, wrong) == pytest.approx(expected)
    marginals = model.predict_marginals(ROWS[:2])
    assert [m.shape for m in marginals] == [(3, 3), (2, 3)]
    np.testing.assert_allclose(marginals[0].sum(axis=1), 1.0)
    assert model.score_parameters(ROWS[:2]).unary.shape == (5, 3)


def test_a_refit_on_plain_rows_forgets_the_chain() -> None:
    model = StructuredPredictor(random_state=0).fit(ROWS, TAGS)
    X = np.linspace(0, 1, 40)[:, None]
    y = np.column_stack([X[:, 0] > 0.3, X[:, 0] > 0.6]).astype(int)
    model.fit(X, y)
    assert not hasattr(model, "predict_marginals")
    assert model.predict(X).shape == y.shape


def test_groups_need_a_loss_without_length() -> None:
    X = np.zeros((4, 2))
    with pytest.raises(ValueError, match="groups mark the sequences of a Hamming loss"):
        StructuredPredictor(ZeroOne(2)).fit(X, [0, 1, 0, 1], groups=[0, 0, 1, 1])


def test_settings_of_chains_reach_the_chain() -> None:
    model = StructuredPredictor(
        window=1,
        transitions="features",
        forbidden_transitions=[("a", "a")],
        random_state=0,
    ).fit(ROWS, TAGS)
    chain = model.sequence_predictor_
    assert (chain.window, chain.transitions) == (1, "features")
    assert model.coef_.shape == (9, 3)
    assert np.isneginf(model.score_parameters(ROWS).edges[0, 0, 0])
    tags = [[f"B-{tag}" for tag in row] for row in TAGS]
    assert StructuredPredictor(tag_scheme="bio").fit(ROWS, tags).predict(ROWS)[0][0] == "B-a"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window", 1),
        ("transitions", "features"),
        ("tag_scheme", "bio"),
        ("forbidden_transitions", [(0, 1)]),
    ],
)
def test_settings_of_chains_are_refused_elsewhere(name: str, value: Any) -> None:
    X, y = np.eye(4), np.eye(4, dtype=int)
    with pytest.raises(ValueError, match=f"{name}=.* is for sequences"):
        StructuredPredictor(**{name: value}).fit(X, y)
