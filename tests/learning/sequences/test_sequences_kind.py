"""Sequences as a kind of examples: what counts as one, statistics of tokens, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from consistruct.decisions.statistics import TokenStates
from consistruct.exceptions import ConsistructError
from consistruct.learning import StructuredPredictor
from consistruct.learning.encoding.sequences import takes_sequences
from consistruct.learning.encoding.tokens import NamedTokens, PackedTokens
from consistruct.learning.models.chain.model import Chain
from consistruct.learning.models.linear import Linear
from consistruct.losses import Hamming, ZeroOne
from consistruct.losses.base import dense_target
from consistruct.metrics import token_error
from consistruct.structures import Ragged

ROWS = [np.eye(3)[[0, 1, 2]], np.eye(3)[[2, 2]], np.eye(3)[[1, 0, 1, 2]]] * 10
TAGS = [[("a", "b", "c")[i] for i in row.argmax(axis=1)] for row in ROWS]
GROUPS = np.repeat(np.arange(len(ROWS)), [len(row) for row in ROWS])


@pytest.mark.parametrize("loss", ["hamming", Hamming(None, 3)])
@pytest.mark.parametrize("surrogate", ["log", "hinge", "softmax_margin", "quadratic"])
def test_lists_of_arrays_reach_the_chain(loss: Any, surrogate: str) -> None:
    model = StructuredPredictor(loss, Chain(surrogate), random_state=0).fit(ROWS, TAGS)
    assert token_error(TAGS, model.predict(ROWS)) == 0.0
    assert model.loss_ == Hamming(None, 3)
    assert model.model_.coef_.shape == (3, 3)


def test_groups_reach_the_chain() -> None:
    flat = [tag for row in TAGS for tag in row]
    model = StructuredPredictor(random_state=0).fit(np.concatenate(ROWS), flat, groups=GROUPS)
    assert isinstance(model.model_, Chain)  # what "auto" means for sequences
    assert model.predict(np.concatenate(ROWS), groups=GROUPS).tolist() == flat
    losses = model.task_losses(np.concatenate(ROWS), flat, groups=GROUPS)
    np.testing.assert_array_equal(losses, np.zeros(len(ROWS)))


def test_plain_arrays_do_not() -> None:
    X = np.linspace(0, 1, 40)[:, None]
    y = np.column_stack([X[:, 0] > 0.3, X[:, 0] > 0.6]).astype(int)
    model = StructuredPredictor("hamming", "ridge").fit(X, y)
    assert model.kind_.name == "rows"
    assert model.predict(X).shape == y.shape
    with pytest.raises(ValueError, match="Chain is for sequences, but X and the loss are rows"):
        StructuredPredictor("hamming", Chain()).fit(X, y)
    with pytest.raises(ValueError, match="Linear is for rows, but X and the loss are sequences"):
        StructuredPredictor("hamming", Linear()).fit(ROWS, TAGS)


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


def test_scores_and_marginals_come_from_the_chain() -> None:
    model = StructuredPredictor(random_state=0).fit(ROWS, TAGS)
    assert model.score(ROWS, TAGS) == 0.0
    wrong = [["a"] * len(tags) for tags in TAGS]
    expected = -np.mean([np.mean([tag != "a" for tag in tags]) for tags in TAGS])
    assert model.score(ROWS, wrong) == pytest.approx(expected)
    marginals = model.predict_marginals(ROWS[:2])
    assert [m.shape for m in marginals] == [(3, 3), (2, 3)]
    np.testing.assert_allclose(marginals[0].sum(axis=1), 1.0)


def test_a_refit_on_plain_rows_forgets_the_chain() -> None:
    model = StructuredPredictor("hamming", random_state=0).fit(ROWS, TAGS)
    X = np.linspace(0, 1, 40)[:, None]
    y = np.column_stack([X[:, 0] > 0.3, X[:, 0] > 0.6]).astype(int)
    model.set_params(model="ridge").fit(X, y)
    assert not hasattr(model, "predict_marginals")
    assert model.predict(X).shape == y.shape


def test_more_tags_than_states_are_refused() -> None:
    with pytest.raises(ValueError, match=r"y contains 3 tags, but Hamming.* has 2 states"):
        StructuredPredictor(Hamming(None, 2)).fit(ROWS, TAGS)
    with pytest.raises(ValueError, match="requires y to be passed"):
        StructuredPredictor("hamming").fit(ROWS, None)


# --- the statistic, against the members of the family one by one ---


def packed_distribution(seed: int = 0) -> Ragged:
    rng = np.random.default_rng(seed)
    return Ragged(rng.dirichlet(np.ones(3), size=9), np.array([0, 4, 5, 9]))


def test_states_of_tokens_lead_to_the_targets_of_the_members() -> None:
    statistic, distribution = TokenStates(Hamming(None, 3)), packed_distribution()
    true = Ragged(np.array([0, 1, 2, 0, 1, 2, 2, 1, 0]), distribution.offsets)
    targets = statistic.target(statistic.values(true))
    for row, part in zip(true, targets, strict=True):
        member = dense_target(Hamming(len(row), 3).target(row[None]))
        np.testing.assert_allclose(part.ravel(), member[0])
    np.testing.assert_array_equal(statistic.offset(distribution), np.ones(3))


def test_expected_losses_of_sequences_are_sums_over_all_true_labels() -> None:
    statistic, distribution = TokenStates(Hamming(None, 3)), packed_distribution()
    rng = np.random.default_rng(1)
    for pred in (statistic.decode(distribution), distribution.with_values(rng.integers(3, size=9))):
        priced = statistic.expected_loss(distribution, pred)
        for row, (probabilities, codes) in enumerate(zip(distribution, pred, strict=True)):
            loss = Hamming(len(codes), 3)
            true_codes = loss.true_labels.enumerate()
            weights = np.prod(probabilities[np.arange(len(codes)), true_codes], axis=1)
            direct = weights @ loss(np.tile(codes, (len(true_codes), 1)), true_codes)
            assert priced[row] == pytest.approx(direct)


def test_estimates_are_made_probabilities_and_other_losses_are_refused() -> None:
    statistic = TokenStates(Hamming(None, 2), ("x", "y"))
    rough = Ragged(np.array([[1.2, -0.2], [0.3, 0.7]]), np.array([0, 2]))
    np.testing.assert_allclose(statistic.project(rough).values, [[1.0, 0.0], [0.3, 0.7]])
    np.testing.assert_allclose(statistic.squared_error(rough), [(1.44 + 0.04 + 0.58) / 4])
    assert statistic.names == ("x", "y")
    assert TokenStates(Hamming(None, 2)).names == (0, 1)
    assert statistic.with_loss(Hamming(None, 2)) == statistic
    with pytest.raises(ConsistructError, match="states of tokens are for"):
        statistic.with_loss(Hamming(3, 2))
    with pytest.raises(TypeError, match="sequences need a family"):
        TokenStates(Hamming(3))


def test_tokens_by_name_are_taken_and_checked() -> None:
    tokens = NamedTokens([[["w=a"], ["w=b"]], [["w=c"]]])
    assert tokens.take(np.array([1])).sequences == [[["w=c"]]]
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        NamedTokens([[["w=a"]], []])


def test_words_are_their_own_features():
    words = [["the", "cat"], ["cat"], ["the", "the", "cat"]] * 8
    tags = [["D", "N"], ["N"], ["D", "D", "N"]] * 8
    by_word = StructuredPredictor("hamming").fit(words, tags)
    by_list = StructuredPredictor("hamming").fit([[[w] for w in s] for s in words], tags)
    new = [["cat", "the"], ["unheard"]]
    assert [p.tolist() for p in by_word.predict(new)] == [
        p.tolist() for p in by_list.predict([[[w] for w in s] for s in new])
    ]
    assert by_word.score(words, tags) == 0
