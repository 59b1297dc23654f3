"""Chains through the estimator: forms of input, decoding, constraints, continuation, errors."""

from __future__ import annotations

import os
import pickle
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.learning import StructuredPredictor
from consistruct.learning.encoding.sequences import read_sequences
from consistruct.learning.encoding.tokens import PackedTokens, group_offsets
from consistruct.learning.models.chain import model as chain_module
from consistruct.learning.models.chain.held_out import STRENGTHS
from consistruct.learning.models.chain.model import Chain
from consistruct.learning.selection.cross_fitting import cross_fit
from consistruct.losses import Hamming, ZeroOne
from consistruct.metrics import SEQUENCE_SCORERS, TaskLossScorer, sequence_error, token_error
from consistruct.structures.chains import chain_marginals, viterbi

TAGS = np.array(["ant", "bee", "cat"])


def predictor(*arguments: Any, random_state: Any = 0, **settings: Any) -> StructuredPredictor:
    """The estimator of sequences with a chain of these settings."""
    return StructuredPredictor("hamming", Chain(*arguments, **settings), random_state=random_state)


def noisy_chains(n: int = 120, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """States that step 0 → 1 → 2 → 0 four times in five, seen through noise."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(2, 9))
        states = [int(rng.integers(3))]
        while len(states) < length:
            states.append((states[-1] + 1) % 3 if rng.random() < 0.8 else int(rng.integers(3)))
        X.append(np.eye(3)[states] + 0.7 * rng.normal(size=(length, 3)))
        y.append(TAGS[states])
    return X, y


def offsets(rows: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(row) for row in rows])])


X, Y = noisy_chains()
X_NEW, Y_NEW = noisy_chains(60, seed=1)
FLAT_X, FLAT_Y = np.concatenate(X), np.concatenate(Y)
GROUPS = np.repeat(np.arange(len(X)), [len(row) for row in X])


def switched_chains(n: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Two states; a feature states "keep the state" or "change it", nothing tells the state itself.

    Only the first token shows its state, so no scores of single tokens and no matrix shared by all
    edges can tell the others.
    """
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        change = rng.integers(2, size=6)
        states = np.cumsum(change) % 2
        row = np.eye(2)[change]
        X.append(np.column_stack([row, np.arange(6) == 0]) * [1, 1, 0])
        X[-1][0] = [0, 0, 2 * states[0] - 1]
        y.append(states)
    return X, y


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("surrogate", "solver"),
    [("log", "sgd"), ("hinge", "sgd"), ("softmax_margin", "sgd"), ("log", "lbfgs")],
)
def test_transitions_that_see_features_learn_what_shared_ones_cannot(
    surrogate: str, solver: str, sparse: bool
) -> None:
    train: Any = switched_chains(300, 0)
    test: Any = switched_chains(100, 1)
    if sparse:
        train, test = (([sp.csr_array(row) for row in rows], y) for rows, y in (train, test))
    options = {"solver": solver, "alpha": 0.01 / 300}
    shared = predictor(surrogate, **options).fit(*train)
    assert token_error(test[1], shared.predict(test[0])) > 0.25
    model = predictor(surrogate, transitions="features", **options).fit(*train)
    assert token_error(test[1], model.predict(test[0])) < 0.01
    assert model.model_.transition_coef_.shape == (3, 2, 2)
    keep, change = model.model_.transition_coef_[:2]
    assert keep[0, 0] - keep[0, 1] > 1
    assert change[0, 1] - change[0, 0] > 1


def test_bad_transitions_are_refused() -> None:
    with pytest.raises(ValueError, match="transitions must be 'shared' or 'features', got 'own'"):
        predictor(transitions="own").fit(X, Y)
    rows = [sp.csr_array((4, 2**26)) for _ in range(3)]
    y = [["ant", "bee", "cat", "ant"]] * 3
    with pytest.raises(ValueError, match="67108864 features · 3² tags = 603979776 weights"):
        predictor(transitions="features").fit(rows, y)


def test_training_with_features_on_transitions_continues_from_a_checkpoint(tmp_path: Path) -> None:
    options: dict[str, Any] = {"transitions": "features"}
    whole = predictor(max_epochs=4, **options).fit(X, Y)
    file = tmp_path / "state"
    predictor(max_epochs=2, checkpoint=file, **options).fit(X, Y)
    again = predictor(max_epochs=4, checkpoint=file, **options).fit(X, Y)
    np.testing.assert_array_equal(again.model_.transition_coef_, whole.model_.transition_coef_)


@pytest.mark.parametrize("surrogate", ["log", "hinge", "softmax_margin"])
def test_transitions_are_learned_and_help(surrogate: str) -> None:
    model = predictor(surrogate).fit(X, Y)
    pred = model.predict(X_NEW)
    alone = [TAGS[row.argmax(axis=1)] for row in X_NEW]  # the Bayes rule without neighbors
    assert token_error(Y_NEW, pred) < 0.85 * token_error(Y_NEW, alone)
    assert [tags.dtype.kind for tags in pred] == ["U"] * len(pred)
    a, b = 0, 1
    assert model.model_.transitions_[a, b] > model.model_.transitions_[b, a]


def test_the_quadratic_surrogate_reaches_what_tokens_alone_can() -> None:
    model = predictor("quadratic").fit(X, Y)
    alone = [TAGS[row.argmax(axis=1)] for row in X_NEW]
    assert token_error(Y_NEW, model.predict(X_NEW)) < token_error(Y_NEW, alone) + 0.03


def test_forms_of_input_give_the_same_model() -> None:
    reference = predictor().fit([row.astype(np.float32) for row in X], Y)
    flat = predictor().fit(FLAT_X.astype(np.float32), FLAT_Y, groups=GROUPS)
    packed = predictor().fit(
        PackedTokens(FLAT_X.astype(np.float32), group_offsets(GROUPS, len(GROUPS))), FLAT_Y
    )
    np.testing.assert_array_equal(reference.model_.coef_, flat.model_.coef_)
    np.testing.assert_array_equal(reference.model_.coef_, packed.model_.coef_)
    np.testing.assert_array_equal(
        np.concatenate(reference.predict(X)), flat.predict(FLAT_X, groups=GROUPS)
    )
    marginals = flat.predict_marginals(FLAT_X, groups=GROUPS)
    np.testing.assert_allclose(np.concatenate(reference.predict_marginals(X)), marginals, atol=1e-6)


def test_sparse_and_dense_features_agree() -> None:
    settings: Any = {"step": 1.0, "batch_size": 4}
    dense = predictor(**settings).fit(X, Y)
    sparse = predictor(**settings).fit(sp.csr_array(FLAT_X), FLAT_Y, groups=GROUPS)
    np.testing.assert_allclose(dense.model_.coef_, sparse.model_.coef_, atol=1e-3)


WORDS = [[["w=" + tag[0], "bias"] for tag in row] for row in Y]


@pytest.mark.parametrize("hash_bits", [None, 12])
def test_feature_names_indexed_or_hashed(hash_bits: int | None) -> None:
    model = predictor(hash_bits=hash_bits).fit(WORDS, Y)
    assert token_error(Y, model.predict(WORDS)) == 0.0
    dicts = [[{"w": tag[0], "bias": True} for tag in row] for row in Y]
    assert token_error(Y, model.predict(dicts)) == 0.0
    assert model.model_.coef_.shape[0] == (4 if hash_bits is None else 2**12)


def test_a_window_sees_the_neighbors() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.integers(2, size=(6, 1)).astype(float) for _ in range(200)]
    before = [["n", *("y" if value else "n" for value in row[:-1, 0])] for row in rows]
    without = predictor().fit(rows, before)
    with_window = predictor(window=1).fit(rows, before)
    assert token_error(before, with_window.predict(rows)) == 0.0
    assert token_error(before, without.predict(rows)) > 0.2
    sparse = [sp.csr_array(row) for row in rows]
    from_sparse = predictor(window=1).fit(sparse, before)
    assert token_error(before, from_sparse.predict(sparse)) == 0.0


def test_random_features_bend_the_boundary_cached_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(5, 2)) for _ in range(300)]
    inside = [np.where((row**2).sum(axis=1) < 1.2, "in", "out") for row in rows]
    linear = predictor().fit(rows, inside)
    settings: Any = {"features": "random", "n_components": 200, "window": 1}
    bent = predictor(**settings).fit(rows, inside)
    assert token_error(inside, bent.predict(rows)) < 0.1 < token_error(inside, linear.predict(rows))
    monkeypatch.setattr(chain_module, "CACHE_BYTES", 0)
    anew = predictor(**settings).fit(rows, inside)
    np.testing.assert_allclose(bent.model_.coef_, anew.model_.coef_, atol=1e-4)


def test_marginal_decoding_minimizes_expected_token_error() -> None:
    model = predictor(decoding="bayes").fit(X, Y)
    marginals = model.predict_marginals(X_NEW)
    for distribution, tags in zip(marginals, model.predict(X_NEW), strict=True):
        np.testing.assert_allclose(distribution.sum(axis=1), 1.0)
        np.testing.assert_array_equal(
            tags, model.label_encoding_.decode(distribution.argmax(axis=1))
        )
    scores = model.model_.scores(
        PackedTokens(np.concatenate(X_NEW).astype(np.float32), offsets(X_NEW))
    )
    np.testing.assert_allclose(chain_marginals(scores).unary, np.concatenate(marginals))


def test_probabilities_are_as_honest_as_the_optimum() -> None:
    # how sure the model is of itself, against the maximum-likelihood fit of the same data
    settings: Any = {"solver": "lbfgs", "alpha": 1e-5, "max_epochs": 20}
    sure = [
        np.concatenate(model.fit(X, Y).predict_marginals(X_NEW)).max(axis=1).mean()
        for model in (predictor(), predictor(**settings))
    ]
    assert sure[0] == pytest.approx(sure[1], abs=0.02)


def test_forbidden_transitions_do_not_appear() -> None:
    good = [i for i, row in enumerate(Y) if ("ant", "cat") not in pairwise(row.tolist())]
    kept, rows = [X[i] for i in good], [Y[i] for i in good]
    assert 0 < len(rows) < len(Y)
    for surrogate in ("log", "hinge", "softmax_margin", "quadratic"):
        model = predictor(surrogate, forbidden_transitions=[("ant", "cat")], random_state=0).fit(
            kept, rows
        )
        assert model.model_.transitions_[0, 2] == -np.inf
        pairs = {pair for row in model.predict(X_NEW) for pair in pairwise(row.tolist())}
        assert ("ant", "cat") not in pairs
    with pytest.raises(ValueError, match=r"sequence \d+ contains the forbidden .* 'ant' -> 'cat'"):
        predictor(forbidden_transitions=[("ant", "cat")]).fit(X, Y)
    with pytest.raises(ValueError, match="names the tag 'dog', which does not occur in training"):
        predictor(forbidden_transitions=[("ant", "dog")]).fit(X, Y)


def test_a_tag_scheme_is_kept() -> None:
    rng = np.random.default_rng(0)
    y_true = [["B-X", "I-X", "O"], ["O", "B-X", "O"], ["O", "O", "O"]] * 20
    rows = [rng.normal(size=(3, 4)) for _ in y_true]  # noise: scores alone would break the scheme
    model = predictor(tag_scheme="bio").fit(rows, y_true)
    for tags in model.predict([rng.normal(size=(8, 4)) * 5 for _ in range(50)]):
        assert tags[0] != "I-X"
        assert "O I-X" not in " ".join(tags)
    with pytest.raises(ValueError, match="sequence 1 must not start with the tag 'I-X'"):
        predictor(tag_scheme="bio").fit(rows[:2], [["B-X", "I-X", "O"], ["I-X", "O", "O"]])


def test_boundaries_learn_first_and_last_tags() -> None:
    rows = [np.ones((4, 1)) for _ in range(50)]
    y_true = [["first", "mid", "mid", "last"]] * 50
    model = predictor().fit(rows, y_true)
    assert sequence_error(y_true, model.predict(rows)) == 0.0
    assert model.model_.start_.argmax() == 0
    assert model.model_.end_.argmax() == 1


def test_lbfgs_and_stochastic_training_agree_on_most_tokens() -> None:
    reference = predictor(solver="lbfgs", alpha=1 / 120, max_epochs=20).fit(X, Y)
    quick = predictor().fit(X, Y)
    assert token_error(reference.predict(X_NEW), quick.predict(X_NEW)) < 0.05


def test_a_weight_of_two_is_a_sequence_twice() -> None:
    weights = np.where(np.arange(len(X)) < 40, 2.0, 1.0)
    settings: Any = {"solver": "lbfgs", "alpha": 1 / 160, "max_epochs": 20}
    weighted = predictor(**settings).fit(X, Y, sample_weight=weights)
    doubled = predictor(**settings).fit(X[:40] + X, Y[:40] + Y)
    np.testing.assert_allclose(weighted.model_.coef_, doubled.model_.coef_, atol=2e-3)
    for bad, message in (
        (np.zeros(len(X)), "sample_weight is zero on every row"),
        (np.ones(3), r"sample_weight must have shape \(120,\)"),
        (-weights, "non-negative"),
    ):
        with pytest.raises(ValueError, match=message):
            predictor().fit(X, Y, sample_weight=bad)


def test_weights_reach_stochastic_training() -> None:
    flipped = [TAGS[(np.searchsorted(TAGS, row) + 1) % 3] for row in Y]
    weights = np.r_[np.ones(len(X)), np.zeros(len(X))]
    model = predictor().fit(X + X, Y + flipped, sample_weight=weights)
    assert token_error(Y_NEW, model.predict(X_NEW)) < 0.3


def test_partial_fit_continues_like_fit() -> None:
    examples = read_sequences(predictor(), None, X, Y)
    given = (examples.inputs, examples.codes, examples.kind.statistic())
    whole = Chain(max_epochs=3, alpha=0.0).fit(*given, rng=np.random.default_rng(0))
    steps, rng = Chain(), np.random.default_rng(0)
    for _ in range(3):
        steps.partial_fit(*given, rng=rng)
    np.testing.assert_array_equal(whole.coef_, steps.coef_)
    assert steps.n_iter_ == 3
    assert steps.can_stream
    reference = Chain(solver="lbfgs")
    assert not reference.can_stream
    with pytest.raises(ValueError, match="partial_fit needs solver='sgd'"):
        reference.partial_fit(*given, rng=rng)
    with pytest.raises(ValueError, match="tag 'dog' in sequence 0 is not among the 3 known tags"):
        read_sequences(predictor(), None, [X[0][:1]], [["dog"]], kind=examples.kind)


def test_batches_of_sequences_stream_through_the_estimator() -> None:
    model = predictor()
    for _ in range(10):
        for rows in (slice(0, 60), slice(60, 120)):
            model.partial_fit(X[rows], Y[rows], classes=TAGS)
    assert model.model_.n_iter_ == 20
    alone = [TAGS[row.argmax(axis=1)] for row in X_NEW]
    assert token_error(Y_NEW, model.predict(X_NEW)) < token_error(Y_NEW, alone)
    assert model.predict_marginals(X_NEW)[0].shape[1] == 3
    with pytest.raises(ValueError, match="tag 'dog' in sequence 0 is not among the 3 known tags"):
        model.partial_fit([X[0][:1]], [["dog"]])
    with pytest.raises(ValueError, match="first call of partial_fit needs classes="):
        predictor().partial_fit(X, Y)
    assert not hasattr(predictor(solver="lbfgs"), "partial_fit")


@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_checkpoint_continues_bit_for_bit(tmp_path: Path, early_stopping: bool) -> None:
    settings: Any = {"early_stopping": True, "patience": 9} if early_stopping else {}
    whole = predictor(max_epochs=6, **settings).fit(X, Y)
    path = tmp_path / "chain.safetensors"
    predictor(max_epochs=2, checkpoint=path, **settings).fit(X, Y)
    assert [entry.name for entry in tmp_path.iterdir()] == ["chain.safetensors"]
    resumed = predictor(max_epochs=6, checkpoint=path, **settings).fit(X, Y)
    assert resumed.model_.n_iter_ == 6
    assert resumed.model_.state_.history == whole.model_.state_.history
    np.testing.assert_array_equal(resumed.model_.coef_, whole.model_.coef_)
    with pytest.raises(ValueError, match="belongs to a fit with other data or parameters"):
        predictor(max_epochs=6, checkpoint=path, **settings).fit(X[1:], Y[1:])


def test_a_checkpoint_that_fails_to_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "chain.safetensors"
    predictor(max_epochs=1, checkpoint=path).fit(X, Y)
    before = path.read_bytes()

    def full_disk(*args: Any, **kwargs: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space left"):
        predictor(max_epochs=2, checkpoint=path).fit(X, Y)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["chain.safetensors"]


def test_early_stopping_keeps_the_best_average() -> None:
    noise = np.random.default_rng(0)
    rows = [noise.normal(size=(4, 30)) for _ in range(60)]  # nothing to learn
    y_true = [noise.choice(TAGS, size=4) for _ in rows]
    model = predictor(max_epochs=50, early_stopping=True, patience=2, random_state=0).fit(
        rows, y_true
    )
    assert model.model_.n_iter_ < 50
    with pytest.raises(ValueError, match="holding sequences out needs at least two"):
        predictor(early_stopping=True).fit(X[:1], Y[:1])


def test_same_seed_same_model_and_pickles() -> None:
    one = predictor(random_state=3).fit(X, Y)
    two = clone(one).fit(X, Y)
    np.testing.assert_array_equal(one.model_.coef_, two.model_.coef_)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(
        np.concatenate(again.predict(X_NEW)), np.concatenate(one.predict(X_NEW))
    )


def test_score_is_minus_the_mean_hamming_loss_and_survives_unseen_tags() -> None:
    model = predictor().fit(X, Y)
    pred = model.predict(X_NEW)
    losses = [np.mean(p != t) for p, t in zip(pred, Y_NEW, strict=True)]
    assert model.score(X_NEW, Y_NEW) == pytest.approx(-np.mean(losses))
    unseen = [np.array(["dog"] * len(row)) for row in Y_NEW]
    assert model.score(X_NEW, unseen) == -1.0


def test_grid_search_over_lists_with_two_scorers() -> None:
    names = ("neg_token_error", "neg_sequence_error")
    search = GridSearchCV(
        predictor(),
        {"model__surrogate": ["log", "hinge"]},
        cv=2,
        scoring={name: SEQUENCE_SCORERS[name] for name in names},
        refit="neg_token_error",
    )
    search.fit(X, Y)
    assert -0.4 < search.best_score_ < 0.0
    assert (
        search.cv_results_["mean_test_neg_sequence_error"]
        < search.cv_results_["mean_test_neg_token_error"]
    ).all()


@pytest.mark.parametrize(
    ("scheme", "y_true"), [("bio", ["B-X", "I-X", "O"]), ("iobes", ["B-X", "E-X", "O"])]
)
def test_chunk_scorers(scheme: str, y_true: list[str]) -> None:
    rows = [np.eye(3)] * 20
    model = predictor().fit(rows, [y_true] * 20)
    assert SEQUENCE_SCORERS[f"chunk_f1_{scheme}"](model, rows, [y_true] * 20) == 1.0
    assert SEQUENCE_SCORERS[f"chunk_f1_{scheme}"](model, rows, [["O", "O", "O"]] * 20) == 0.0


def test_integers_and_other_tags_come_back_as_given() -> None:
    numbers = [np.searchsorted(TAGS, row) + 7 for row in Y]
    model = predictor().fit(X, numbers)
    assert set(np.concatenate(model.predict(X_NEW)).tolist()) <= {7, 8, 9}
    pairs: list[Any] = [[("tag", str(tag)) for tag in row] for row in Y]
    of_pairs = predictor().fit(X, pairs)
    assert of_pairs.predict(X_NEW)[0][0] in {("tag", str(tag)) for tag in TAGS}


def test_one_tag_only_is_no_reason_to_fail() -> None:
    model = predictor().fit(X[:5], [["same"] * len(row) for row in X[:5]])
    assert set(np.concatenate(model.predict(X_NEW)).tolist()) == {"same"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"surrogate": "exponential"}, "surrogate 'exponential' does not work on chains"),
        ({"decoding": "greedy"}, "decoding must be 'argmax' or 'bayes', got 'greedy'"),
        (
            {"surrogate": "hinge", "decoding": "bayes"},
            "decoding='bayes' needs surrogate='log' or 'quadratic', got 'hinge'",
        ),
        ({"features": "nystroem"}, "features must be 'linear' or 'random', got 'nystroem'"),
        ({"surrogate": "hinge", "solver": "lbfgs"}, "lbfgs' needs a differentiable surrogate"),
        # settings that would have no effect
        ({"n_components": 7}, "n_components=7 has an effect only with features='random'"),
        ({"bandwidth": 2.0}, "bandwidth=2.0 has an effect only with features='random'"),
        ({"solver": "lbfgs", "step": 2.0}, "step=2.0 has an effect only with solver='sgd'"),
        ({"solver": "lbfgs", "batch_size": 2}, "batch_size=2 has an effect only with solver='sgd'"),
        (
            {"solver": "lbfgs", "early_stopping": True},
            "early_stopping=True has an effect only with",
        ),
        (
            {"solver": "lbfgs", "checkpoint": "file"},
            "checkpoint='file' has an effect only with solver",
        ),
        ({"patience": 7}, "patience=7 has an effect only with early_stopping=True"),
        (
            {"validation_fraction": 0.2},
            "validation_fraction=0.2 has an effect only with early_stop",
        ),
        ({"hash_bits": 8}, "hash_bits=8 is for feature names, but X contains numbers"),
        ({"solver": "adam"}, "solver must be 'sgd' or 'lbfgs', got 'adam'"),
        ({"step": "big"}, "step must be 'auto' or a number"),
        ({"max_epochs": 0}, "max_epochs must be at least 1"),
        ({"alpha": -1.0}, "alpha must be a finite number"),
        ({"tag_scheme": "bio"}, "tag 'ant' does not follow the scheme 'bio'"),
        ({"early_stopping": True, "validation_fraction": 0.0}, "validation_fraction must be"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        predictor(**settings).fit(X, Y)


def test_bad_input_is_named() -> None:
    model = predictor().fit(X, Y)
    with pytest.raises(ValueError, match=r"sequence 0 has \d+ tokens in X and 1 tags in y"):
        predictor().fit(X, [["ant"], *Y[1:]])
    with pytest.raises(ValueError, match="sequence 1 contains NaN"):
        model.predict([X[0], np.full((2, 3), np.nan)])
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        model.predict([X[0], np.empty((0, 3))])
    with pytest.raises(ValueError, match="X has 2 features per token, but the model was fitted"):
        model.predict([X[0][:, :2]])
    with pytest.raises(ValueError, match="X contains feature names, but the model was fitted on"):
        model.predict(WORDS)
    with pytest.raises(ValueError, match="groups= is for an array or CSR"):
        predictor().fit(WORDS, Y, groups=GROUPS)
    hinge = predictor("hinge").fit(X, Y)
    assert not hasattr(hinge, "predict_marginals")
    assert not hasattr(hinge.model_, "marginals")
    with pytest.raises(Exception, match="not fitted yet"):
        predictor().predict(X)


def test_estimates_decide_and_price_for_the_hamming_loss() -> None:
    """Defects: sequences had no task losses, expected losses or targets, and no scorer."""
    model = predictor(decoding="bayes").fit(X, Y)
    pred = model.predict(X_NEW)
    losses = [np.mean(p != t) for p, t in zip(pred, Y_NEW, strict=True)]
    np.testing.assert_allclose(model.task_losses(X_NEW, Y_NEW), losses)
    assert TaskLossScorer("hamming")(model, X_NEW, Y_NEW) == pytest.approx(-np.mean(losses))
    marginals = model.predict_marginals(X_NEW)
    target = model.expected_target(X_NEW)
    for distribution, part in zip(marginals, target, strict=True):
        np.testing.assert_allclose(part, -distribution / len(distribution))
    priced = [np.mean(1 - distribution.max(axis=1)) for distribution in marginals]
    np.testing.assert_allclose(model.predict_expected_loss(X_NEW), priced)
    assert np.mean(priced) == pytest.approx(np.mean(losses), abs=0.06)
    assert model.model_.alpha_ > 0
    with pytest.raises(CapabilityError, match="too many sequences of tags to list"):
        model.expected_losses(X_NEW)


def test_viterbi_decides_though_probabilities_price() -> None:
    """decoding="argmax" predicts the most probable sequence, and prices that one."""
    by_sequence, by_token = predictor().fit(X, Y), predictor(decoding="bayes").fit(X, Y)
    marginals = by_token.predict_marginals(X_NEW)
    states = [by_sequence.label_encoding_.known(row.tolist()) for row in by_sequence.predict(X_NEW)]
    scores = by_sequence.model_.scores(
        PackedTokens(np.concatenate(X_NEW).astype(np.float32), offsets(X_NEW))
    )
    np.testing.assert_array_equal(np.concatenate(states), viterbi(scores).values)
    assert (np.concatenate(states) != np.concatenate(marginals).argmax(axis=1)).any()
    priced = [
        np.mean(1 - distribution[np.arange(len(s)), s])
        for distribution, s in zip(marginals, states, strict=True)
    ]
    np.testing.assert_allclose(by_sequence.predict_expected_loss(X_NEW), priced)
    # no other decision is cheaper than that of the marginals
    assert (by_token.predict_expected_loss(X_NEW) <= np.array(priced) + 1e-12).all()


def test_models_that_only_rank_say_so() -> None:
    model = predictor("hinge").fit(X, Y)
    assert not model.model_.estimates
    for method in (model.predict_expected_loss, model.expected_target):
        with pytest.raises(CapabilityError, match="it only ranks predictions"):
            method(X_NEW)
    with pytest.raises(CapabilityError, match="'hinge' only ranks sequences"):
        model.model_.expected(PackedTokens(X[0], np.array([0, len(X[0])])))


@pytest.mark.parametrize("transitions", ["shared", "features"])
def test_the_quadratic_surrogate_estimates_marginals_by_enumeration(transitions: str) -> None:
    """g_t(a) = E[f(c) | c_t = a] − E f(c) over uniform c, whatever the edges."""
    model = predictor("quadratic", transitions=transitions).fit(X, Y)
    row = X_NEW[0][:4]
    tokens = PackedTokens(row, np.array([0, len(row)]))
    scores = model.model_.scores(tokens)
    labels = np.array(list(product(range(3), repeat=len(row))))
    shared = scores.edges.ndim == 2
    values = np.array(
        [
            sum(scores.unary[t, c[t]] for t in range(len(row)))
            + sum(
                (scores.edges if shared else scores.edges[t])[c[t], c[t + 1]]
                for t in range(len(row) - 1)
            )
            for c in labels
        ]
    )
    expected = [
        [1 / 3 + values[labels[:, t] == a].mean() - values.mean() for a in range(3)]
        for t in range(len(row))
    ]
    np.testing.assert_allclose(model.model_.expected(tokens).values, expected, atol=1e-10)
    losses = model.predict_expected_loss(X_NEW)
    assert ((losses >= 0) & (losses <= 1)).all()


def test_more_states_than_tags_stay_unused() -> None:
    model = StructuredPredictor(Hamming(None, 5), Chain(), random_state=0).fit(X, Y)
    assert model.predict_marginals(X_NEW)[0].shape[1] == 5
    assert model.predict_marginals(X_NEW)[0][:, 3:].max() == 0.0
    assert set(np.concatenate(model.predict(X_NEW)).tolist()) <= set(TAGS.tolist())


def test_a_refit_forgets_and_the_loss_can_be_set_anew() -> None:
    model = predictor().fit(X, Y)
    before = model.predict_expected_loss(X_NEW)
    model.set_loss(Hamming(None, 3))
    np.testing.assert_array_equal(model.predict_expected_loss(X_NEW), before)
    with pytest.raises(ConsistructError, match="not for ZeroOne"):
        model.set_loss(ZeroOne(3))
    ranker = StructuredPredictor("ndcg", random_state=0)
    queries = np.repeat(np.arange(8), 5)
    rng = np.random.default_rng(0)
    ranker.fit(rng.normal(size=(40, 2)), rng.integers(3, size=40), groups=queries)
    ranker.set_params(loss="hamming").fit(X, Y)
    assert not hasattr(ranker, "decision_function")
    assert len(ranker.predict(X_NEW)) == len(X_NEW)


def test_the_penalty_is_chosen_on_held_out_sequences() -> None:
    """Columns of noise: without a penalty the fit follows them; the chosen one does not."""
    rng = np.random.default_rng(0)
    wide = [np.hstack([row, 3 * rng.normal(size=(len(row), 60))]) for row in X]
    wide_new = [np.hstack([row, 3 * rng.normal(size=(len(row), 60))]) for row in X_NEW]
    chosen, free = predictor().fit(wide, Y), predictor(alpha=0.0).fit(wide, Y)
    path = chosen.model_.path_
    assert chosen.model_.alpha_ == path["alphas"][path["held_out_risk"].argmin()]
    assert np.linalg.norm(chosen.model_.coef_) < np.linalg.norm(free.model_.coef_)
    assert chosen.score(wide_new, Y_NEW) >= free.score(wide_new, Y_NEW)
    few = predictor().fit(X[:20], Y[:20])  # too few to hold any out
    assert few.model_.alpha_ == pytest.approx(STRENGTHS[-1] / 20)


def test_cross_fitting_keeps_sequences_whole() -> None:
    examples = read_sequences(predictor(), None, X, Y)
    left = cross_fit(
        Chain(alpha=0.01),
        examples,
        examples.kind.statistic(),
        cv=3,
        rng=np.random.default_rng(0),
    )
    assert left.expected.same_lengths(examples.codes)
    np.testing.assert_allclose(left.expected.values.sum(axis=1), 1.0)
