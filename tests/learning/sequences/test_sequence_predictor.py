"""The estimator: every form of input, decoding, constraints, continuation, errors."""

from __future__ import annotations

import os
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from consistruct.decoding import chain_marginals
from consistruct.learning.encoding.tokens import group_offsets
from consistruct.learning.models.chain import (
    SEQUENCE_SCORERS,
    PackedTokens,
    SequencePredictor,
    sequence_error,
    token_error,
)
from consistruct.learning.models.chain.checkpoints import load_checkpoint

TAGS = np.array(["ant", "bee", "cat"])


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


X, Y = noisy_chains()
X_NEW, Y_NEW = noisy_chains(60, seed=1)
FLAT_X, FLAT_Y = np.concatenate(X), np.concatenate(Y)
GROUPS = np.repeat(np.arange(len(X)), [len(row) for row in X])


def switched_chains(n: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Two states; a feature says "keep the state" or "change it", nothing tells the state itself.

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
    options = {"solver": solver, "alpha": 0.01, "random_state": 0}
    shared = SequencePredictor(surrogate, **options).fit(*train)
    assert token_error(test[1], shared.predict(test[0])) > 0.25
    model = SequencePredictor(surrogate, transitions="features", **options).fit(*train)
    assert token_error(test[1], model.predict(test[0])) < 0.01
    assert model.transition_coef_.shape == (3, 2, 2)
    keep, change = model.transition_coef_[:2]
    assert keep[0, 0] - keep[0, 1] > 1
    assert change[0, 1] - change[0, 0] > 1


def test_bad_transitions_are_refused() -> None:
    with pytest.raises(ValueError, match="transitions must be 'shared' or 'features', got 'own'"):
        SequencePredictor(transitions="own").fit(X, Y)
    rows = [sp.csr_array((4, 2**26)) for _ in range(3)]
    y = [["ant", "bee", "cat", "ant"]] * 3
    with pytest.raises(ValueError, match="67108864 features · 3² tags = 603979776 weights"):
        SequencePredictor(transitions="features").fit(rows, y)


def test_training_with_features_on_transitions_continues_from_a_checkpoint(tmp_path: Path) -> None:
    options: dict[str, Any] = {"transitions": "features", "random_state": 0}
    whole = SequencePredictor(max_epochs=4, **options).fit(X, Y)
    file = tmp_path / "state"
    SequencePredictor(max_epochs=2, checkpoint=file, **options).fit(X, Y)
    again = SequencePredictor(max_epochs=4, checkpoint=file, **options).fit(X, Y)
    np.testing.assert_array_equal(again.transition_coef_, whole.transition_coef_)


@pytest.mark.parametrize("surrogate", ["log", "hinge", "softmax_margin"])
def test_transitions_are_learnt_and_help(surrogate: str) -> None:
    model = SequencePredictor(surrogate, random_state=0).fit(X, Y)
    pred = model.predict(X_NEW)
    alone = [TAGS[row.argmax(axis=1)] for row in X_NEW]  # the Bayes rule without neighbours
    assert token_error(Y_NEW, pred) < 0.85 * token_error(Y_NEW, alone)
    assert [tags.dtype.kind for tags in pred] == ["U"] * len(pred)
    a, b = 0, 1
    assert model.transitions_[a, b] > model.transitions_[b, a]


def test_the_quadratic_surrogate_reaches_what_tokens_alone_can() -> None:
    model = SequencePredictor("quadratic", random_state=0).fit(X, Y)
    alone = [TAGS[row.argmax(axis=1)] for row in X_NEW]
    assert token_error(Y_NEW, model.predict(X_NEW)) < token_error(Y_NEW, alone) + 0.03


def test_forms_of_input_give_the_same_model() -> None:
    reference = SequencePredictor(random_state=0).fit([row.astype(np.float32) for row in X], Y)
    flat = SequencePredictor(random_state=0).fit(FLAT_X.astype(np.float32), FLAT_Y, groups=GROUPS)
    packed = SequencePredictor(random_state=0).fit(
        PackedTokens(FLAT_X.astype(np.float32), group_offsets(GROUPS, len(GROUPS))), FLAT_Y
    )
    np.testing.assert_array_equal(reference.coef_, flat.coef_)
    np.testing.assert_array_equal(reference.coef_, packed.coef_)
    np.testing.assert_array_equal(
        np.concatenate(reference.predict(X)), flat.predict(FLAT_X, groups=GROUPS)
    )
    marginals = flat.predict_marginals(FLAT_X, groups=GROUPS)
    np.testing.assert_allclose(np.concatenate(reference.predict_marginals(X)), marginals, atol=1e-6)


def test_sparse_and_dense_features_agree() -> None:
    settings: Any = {"step": 1.0, "batch_size": 4, "random_state": 0}
    dense = SequencePredictor(**settings).fit(X, Y)
    sparse = SequencePredictor(**settings).fit(sp.csr_array(FLAT_X), FLAT_Y, groups=GROUPS)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-3)


WORDS = [[["w=" + tag[0], "bias"] for tag in row] for row in Y]


@pytest.mark.parametrize("hash_bits", [None, 12])
def test_feature_names_indexed_or_hashed(hash_bits: int | None) -> None:
    model = SequencePredictor(hash_bits=hash_bits, random_state=0).fit(WORDS, Y)
    assert token_error(Y, model.predict(WORDS)) == 0.0
    dicts = [[{"w": tag[0], "bias": True} for tag in row] for row in Y]
    assert token_error(Y, model.predict(dicts)) == 0.0
    assert model.coef_.shape[0] == (4 if hash_bits is None else 2**12)


def test_a_window_sees_the_neighbours() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.integers(2, size=(6, 1)).astype(float) for _ in range(200)]
    before = [["n", *("y" if value else "n" for value in row[:-1, 0])] for row in rows]
    without = SequencePredictor(random_state=0).fit(rows, before)
    with_window = SequencePredictor(window=1, random_state=0).fit(rows, before)
    assert token_error(before, with_window.predict(rows)) == 0.0
    assert token_error(before, without.predict(rows)) > 0.2
    sparse = [sp.csr_array(row) for row in rows]
    from_sparse = SequencePredictor(window=1, random_state=0).fit(sparse, before)
    assert token_error(before, from_sparse.predict(sparse)) == 0.0


def test_random_features_bend_the_boundary_cached_or_not() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(5, 2)) for _ in range(300)]
    inside = [np.where((row**2).sum(axis=1) < 1.2, "in", "out") for row in rows]
    linear = SequencePredictor(random_state=0).fit(rows, inside)
    settings: Any = {"random_features": 200, "random_state": 0, "window": 1}
    bent = SequencePredictor(**settings).fit(rows, inside)
    assert token_error(inside, bent.predict(rows)) < 0.1 < token_error(inside, linear.predict(rows))
    anew = SequencePredictor(cache_bytes=0, **settings).fit(rows, inside)
    np.testing.assert_allclose(bent.coef_, anew.coef_, atol=1e-4)


def test_marginal_decoding_minimises_expected_token_error() -> None:
    model = SequencePredictor(decoding="marginals", random_state=0).fit(X, Y)
    marginals = model.predict_marginals(X_NEW)
    for law, tags in zip(marginals, model.predict(X_NEW), strict=True):
        np.testing.assert_allclose(law.sum(axis=1), 1.0)
        np.testing.assert_array_equal(tags, model.classes_[law.argmax(axis=1)])
    scores = model.score_parameters(X_NEW)
    np.testing.assert_allclose(chain_marginals(scores).unary, np.concatenate(marginals))


def test_probabilities_are_as_honest_as_the_optimum() -> None:
    # how sure the model is of itself, against the maximum-likelihood fit of the same data
    settings: Any = {"solver": "lbfgs", "alpha": 1e-3, "max_epochs": 20}
    sure = [
        np.concatenate(model.fit(X, Y).predict_marginals(X_NEW)).max(axis=1).mean()
        for model in (SequencePredictor(random_state=0), SequencePredictor(**settings))
    ]
    assert sure[0] == pytest.approx(sure[1], abs=0.02)


def test_forbidden_transitions_do_not_appear() -> None:
    good = [i for i, row in enumerate(Y) if ("ant", "cat") not in pairwise(row.tolist())]
    kept, rows = [X[i] for i in good], [Y[i] for i in good]
    assert 0 < len(rows) < len(Y)
    for surrogate in ("log", "hinge", "softmax_margin", "quadratic"):
        model = SequencePredictor(
            surrogate, forbidden_transitions=[("ant", "cat")], random_state=0
        ).fit(kept, rows)
        assert model.transitions_[0, 2] == -np.inf
        pairs = {pair for row in model.predict(X_NEW) for pair in pairwise(row.tolist())}
        assert ("ant", "cat") not in pairs
    with pytest.raises(ValueError, match=r"sequence \d+ holds the forbidden .* 'ant' -> 'cat'"):
        SequencePredictor(forbidden_transitions=[("ant", "cat")]).fit(X, Y)
    with pytest.raises(ValueError, match="names the tag 'dog', which training does not show"):
        SequencePredictor(forbidden_transitions=[("ant", "dog")]).fit(X, Y)


def test_a_tag_scheme_is_kept() -> None:
    rng = np.random.default_rng(0)
    truth = [["B-X", "I-X", "O"], ["O", "B-X", "O"], ["O", "O", "O"]] * 20
    rows = [rng.normal(size=(3, 4)) for _ in truth]  # noise: scores alone would break the scheme
    model = SequencePredictor(tag_scheme="bio", random_state=0).fit(rows, truth)
    for tags in model.predict([rng.normal(size=(8, 4)) * 5 for _ in range(50)]):
        assert tags[0] != "I-X"
        assert "O I-X" not in " ".join(tags)
    with pytest.raises(ValueError, match="sequence 1 must not start with the tag 'I-X'"):
        SequencePredictor(tag_scheme="bio").fit(rows[:2], [["B-X", "I-X", "O"], ["I-X", "O", "O"]])


def test_boundaries_learn_first_and_last_tags() -> None:
    rows = [np.ones((4, 1)) for _ in range(50)]
    truth = [["first", "mid", "mid", "last"]] * 50
    model = SequencePredictor(random_state=0).fit(rows, truth)
    assert sequence_error(truth, model.predict(rows)) == 0.0
    assert model.start_.argmax() == 0
    assert model.end_.argmax() == 1


def test_lbfgs_and_stochastic_training_agree_on_most_tokens() -> None:
    reference = SequencePredictor(solver="lbfgs", alpha=1.0, max_epochs=20).fit(X, Y)
    quick = SequencePredictor(random_state=0).fit(X, Y)
    assert token_error(reference.predict(X_NEW), quick.predict(X_NEW)) < 0.05
    with pytest.raises(ValueError, match="partial_fit needs solver='sgd'"):
        reference.partial_fit(X, Y)


def test_a_weight_of_two_is_a_sequence_twice() -> None:
    weights = np.where(np.arange(len(X)) < 40, 2.0, 1.0)
    settings: Any = {"solver": "lbfgs", "alpha": 1.0, "max_epochs": 20}
    weighted = SequencePredictor(**settings).fit(X, Y, sample_weight=weights)
    doubled = SequencePredictor(**settings).fit(X[:40] + X, Y[:40] + Y)
    np.testing.assert_allclose(weighted.coef_, doubled.coef_, atol=2e-3)
    for bad, message in (
        (np.zeros(len(X)), "must not be zero for every sequence"),
        (np.ones(3), r"one finite non-negative number per sequence, shape \(120,\)"),
        (-weights, "non-negative"),
    ):
        with pytest.raises(ValueError, match=message):
            SequencePredictor().fit(X, Y, sample_weight=bad)


def test_weights_reach_stochastic_training() -> None:
    flipped = [TAGS[(np.searchsorted(TAGS, row) + 1) % 3] for row in Y]
    weights = np.r_[np.ones(len(X)), np.zeros(len(X))]
    model = SequencePredictor(random_state=0).fit(X + X, Y + flipped, sample_weight=weights)
    assert token_error(Y_NEW, model.predict(X_NEW)) < 0.3


def test_partial_fit_continues_like_fit() -> None:
    whole = SequencePredictor(max_epochs=3, random_state=0).fit(X, Y)
    steps = SequencePredictor(random_state=0)
    for _ in range(3):
        steps.partial_fit(X, Y, classes=list(TAGS))
    np.testing.assert_array_equal(whole.coef_, steps.coef_)
    assert steps.n_iter_ == 3
    fresh = SequencePredictor()
    with pytest.raises(ValueError, match="first call of partial_fit needs classes="):
        fresh.partial_fit(X, Y)
    with pytest.raises(ValueError, match="tag 'dog' in sequence 0 is not among the 3 known tags"):
        steps.partial_fit([X[0][:1]], [["dog"]])


@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_checkpoint_continues_bit_for_bit(tmp_path: Path, early_stopping: bool) -> None:
    settings: Any = {"random_state": 0, "early_stopping": early_stopping, "n_iter_no_change": 9}
    whole = SequencePredictor(max_epochs=6, **settings).fit(X, Y)
    path = tmp_path / "chain.safetensors"
    SequencePredictor(max_epochs=2, checkpoint=path, **settings).fit(X, Y)
    assert [entry.name for entry in tmp_path.iterdir()] == ["chain.safetensors"]
    resumed = SequencePredictor(max_epochs=6, checkpoint=path, **settings).fit(X, Y)
    assert resumed.n_iter_ == 6
    assert resumed.history_ == whole.history_
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    with pytest.raises(ValueError, match="belongs to a fit with other data or parameters"):
        SequencePredictor(max_epochs=6, checkpoint=path, **settings).fit(X[1:], Y[1:])


def test_a_checkpoint_that_fails_to_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "chain.safetensors"
    SequencePredictor(max_epochs=1, checkpoint=path, random_state=0).fit(X, Y)
    before = path.read_bytes()

    def full_disk(*args: Any, **kwargs: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space left"):
        SequencePredictor(max_epochs=2, checkpoint=path, random_state=0).fit(X, Y)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["chain.safetensors"]
    assert load_checkpoint(tmp_path / "none.safetensors", np.random.default_rng(0), "") is None


def test_early_stopping_keeps_the_best_average() -> None:
    noise = np.random.default_rng(0)
    rows = [noise.normal(size=(4, 30)) for _ in range(60)]  # nothing to learn
    truth = [noise.choice(TAGS, size=4) for _ in rows]
    model = SequencePredictor(
        max_epochs=50, early_stopping=True, n_iter_no_change=2, random_state=0
    ).fit(rows, truth)
    assert model.n_iter_ < 50
    with pytest.raises(ValueError, match="early_stopping needs at least two sequences"):
        SequencePredictor(early_stopping=True).fit(X[:1], Y[:1])


def test_same_seed_same_model_and_pickles() -> None:
    one = SequencePredictor(random_state=3).fit(X, Y)
    two = clone(one).fit(X, Y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(
        np.concatenate(again.predict(X_NEW)), np.concatenate(one.predict(X_NEW))
    )


def test_score_is_minus_the_mean_hamming_loss_and_survives_unseen_tags() -> None:
    model = SequencePredictor(random_state=0).fit(X, Y)
    pred = model.predict(X_NEW)
    losses = [np.mean(p != t) for p, t in zip(pred, Y_NEW, strict=True)]
    assert model.score(X_NEW, Y_NEW) == pytest.approx(-np.mean(losses))
    unseen = [np.array(["dog"] * len(row)) for row in Y_NEW]
    assert model.score(X_NEW, unseen) == -1.0


def test_grid_search_over_lists_with_two_scorers() -> None:
    names = ("neg_token_error", "neg_sequence_error")
    search = GridSearchCV(
        SequencePredictor(random_state=0),
        {"surrogate": ["log", "hinge"]},
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
    ("scheme", "truth"), [("bio", ["B-X", "I-X", "O"]), ("iobes", ["B-X", "E-X", "O"])]
)
def test_chunk_scorers(scheme: str, truth: list[str]) -> None:
    rows = [np.eye(3)] * 20
    model = SequencePredictor(random_state=0).fit(rows, [truth] * 20)
    assert SEQUENCE_SCORERS[f"chunk_f1_{scheme}"](model, rows, [truth] * 20) == 1.0
    assert SEQUENCE_SCORERS[f"chunk_f1_{scheme}"](model, rows, [["O", "O", "O"]] * 20) == 0.0


def test_integers_and_other_tags_come_back_as_given() -> None:
    numbers = [np.searchsorted(TAGS, row) + 7 for row in Y]
    model = SequencePredictor(random_state=0).fit(X, numbers)
    assert set(np.concatenate(model.predict(X_NEW)).tolist()) <= {7, 8, 9}
    pairs: list[Any] = [[("tag", str(tag)) for tag in row] for row in Y]
    of_pairs = SequencePredictor(random_state=0).fit(X, pairs)
    assert of_pairs.predict(X_NEW)[0][0] in {("tag", str(tag)) for tag in TAGS}


def test_one_tag_only_is_no_reason_to_fail() -> None:
    model = SequencePredictor(random_state=0).fit(X[:5], [["same"] * len(row) for row in X[:5]])
    assert set(np.concatenate(model.predict(X_NEW)).tolist()) == {"same"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"surrogate": "exponential"}, "surrogate must be one of 'log', 'hinge'"),
        ({"decoding": "greedy"}, "decoding must be 'viterbi' or 'marginals', got 'greedy'"),
        (
            {"surrogate": "hinge", "decoding": "marginals"},
            "decoding='marginals' needs surrogate='log', got 'hinge'",
        ),
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
        SequencePredictor(**settings).fit(X, Y)


def test_bad_input_is_named() -> None:
    model = SequencePredictor(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"sequence 0 has \d+ tokens in X and 1 tags in y"):
        SequencePredictor().fit(X, [["ant"], *Y[1:]])
    with pytest.raises(ValueError, match="sequence 1 holds NaN"):
        model.predict([X[0], np.full((2, 3), np.nan)])
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        model.predict([X[0], np.empty((0, 3))])
    with pytest.raises(ValueError, match="X has 2 features per token, but the model was fitted"):
        model.predict([X[0][:, :2]])
    with pytest.raises(ValueError, match="X holds feature names, but the model was fitted on"):
        model.predict(WORDS)
    with pytest.raises(ValueError, match="groups= goes with an array or CSR"):
        SequencePredictor().fit(WORDS, Y, groups=GROUPS)
    hinge = SequencePredictor("hinge", random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="predict_marginals needs surrogate='log'"):
        hinge.predict_marginals(X)
    with pytest.raises(Exception, match="not fitted yet"):
        SequencePredictor().predict(X)
