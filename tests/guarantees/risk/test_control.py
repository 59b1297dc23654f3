"""RiskControl as users hold it: splits, segments, weights, queries, sequences, files, errors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

import consistruct as cs
from consistruct.exceptions import RiskLevelError
from consistruct.guarantees.risk import RiskControl
from consistruct.learning import load, save

RIDGE = cs.models.Ridge(features="linear", alpha=0.01)
COSTS = cs.losses.CostMatrix([[0, 1, 4], [1, 0, 2], [2, 1, 0]], rows="pred")


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + 0.8 * rng.normal(size=n) > 0).astype(int) + (X[:, 1] > 0.5)
    return X, y


@pytest.fixture(scope="module")
def model():
    X, y = rows(300, seed=1)
    return cs.TaskLossClassifier(COSTS, RIDGE).fit(X, y)


def test_what_is_predicted_counts_what_was_guaranteed(model):
    X, y = rows(600)
    safe = RiskControl(model, 0.3).fit(X, y)
    sets = safe.predict(X)
    least = [
        min(COSTS.matrix()[list(members), y_true]) for members, y_true in zip(sets, y, strict=True)
    ]
    np.testing.assert_allclose(safe.task_losses(X, y), least)
    report = safe.evaluate(X, y)
    assert report.risk.estimate == pytest.approx(np.mean(least))
    assert report.size == pytest.approx(np.mean([len(members) for members in sets]))
    assert report.risk.estimate <= 0.3 == safe.guarantee_.level
    assert safe.score(X, y) == pytest.approx(-report.risk.estimate)
    # one step less cautious would not do: (Σ loss + 4)/(n + 1) > level
    ladder = safe._ladder(X, y, None)
    steps = ladder.steps()
    place = int(np.searchsorted(steps.safeties, safe.thresholds_[""].safety))
    assert (steps.totals(ladder.losses)[place - 1] + 4.0) / 601 > 0.3


def test_abstentions_are_none_and_both_risks_are_reported(model):
    X, y = rows(600)
    safe = RiskControl(model, 0.2, policy="abstain").fit(X, y)
    answers = safe.predict(X)
    silent = np.array([answer is None for answer in answers])
    assert 0 < silent.sum() < 600
    doubt = model.predict_expected_loss(X)
    assert doubt[~silent].max() < doubt[silent].min()
    own = model.task_losses(X, y)
    report = safe.evaluate(X, y)
    assert report.coverage == pytest.approx((~silent).mean())
    assert report.risk.estimate == pytest.approx(np.where(silent, 0, own).mean())
    assert report.selective_risk.estimate == pytest.approx(own[~silent].mean())
    np.testing.assert_allclose(safe.predict_expected_loss(X), doubt)
    assert "risk" in str(report)
    assert report.as_dict()["coverage"] == report.coverage


def test_the_loss_with_a_label_for_no_answer_uses_it():
    X, y = rows(600)
    model = cs.TaskLossClassifier("abstain::0.4", RIDGE).fit(X[:300], y[:300])
    safe = RiskControl(model, 0.1).fit(X[300:], y[300:])
    assert safe.policy_ == "abstain"
    answers = safe.predict(X)
    silent = answers == model.label_encoding_.predictions[-1]
    assert silent.mean() > (model.predict(X) == model.label_encoding_.predictions[-1]).mean()
    assert not safe.task_losses(X, y)[silent].any()


def test_selective_risk_needs_confidence_and_is_kept(model):
    X, y = rows(3000)
    with pytest.raises(ValueError, match=r"pass confidence=0\.9"):
        RiskControl(model, 0.3, policy="abstain", risk="selective").fit(X, y)
    safe = RiskControl(
        model, 0.3, policy="abstain", risk="selective", confidence=0.9, random_state=0
    ).fit(X, y)
    report = safe.evaluate(*rows(20000, seed=5))
    assert report.selective_risk.estimate <= 0.3
    assert report.coverage > 0.3
    with pytest.raises(ValueError, match="always answers"):
        RiskControl(model, 0.3, policy="sets", risk="selective", confidence=0.9).fit(X, y)


def test_segments_have_guarantees_of_their_own(model):
    X, y = rows(2000)
    side = np.where(X[:, 0] > 0, "right", "left")
    safe = RiskControl(model, {"left": 0.1, "right": 0.4}).fit(X, y, segments=side)
    assert safe.guarantee_.level == {"left": 0.1, "right": 0.4}
    losses = safe.task_losses(X, y, segments=side)
    assert losses[side == "left"].mean() <= 0.1
    assert 0.2 < losses[side == "right"].mean() <= 0.4
    alone = RiskControl(model, 0.1).fit(X[side == "left"], y[side == "left"])
    assert safe.thresholds_["left"].safety == alone.thresholds_[""].safety
    with pytest.raises(ValueError, match="segment 'top' had no calibration rows"):
        safe.predict(X[:2], segments=["left", "top"])
    with pytest.raises(ValueError, match="pass those of the new rows"):
        safe.predict(X[:2])
    with pytest.raises(ValueError, match="no entry for segment"):
        RiskControl(model, {"left": 0.1}).fit(X, y, segments=side)
    with pytest.raises(ValueError, match="pass segments= to fit"):
        RiskControl(model, {"left": 0.1}).fit(X, y)
    few = np.where(np.arange(2000) < 3, "rare", "usual")
    with pytest.raises(RiskLevelError, match="too few rows in segment 'rare'"):
        RiskControl(model, 0.1).fit(X, y, segments=few)


def test_weights_keep_the_guarantee_where_rows_shift(model):
    X, y = rows(4000)
    weights = np.exp(1.2 * X[:, 0])  # other rows come more often
    shifted, y_true = rows(40000, seed=9)
    shifted[:, 0] += 1.2  # the normal density times exp(1.2 x), normalized
    y_true = (shifted[:, 0] + 0.8 * np.random.default_rng(9).normal(size=40000) > 0).astype(int) + (
        shifted[:, 1] > 0.5
    )
    own = np.exp(1.2 * shifted[:, 0])
    for confidence in (None, 0.9):
        safe = RiskControl(model, 0.3, policy="abstain", confidence=confidence)
        safe.fit(X, y, weights=weights)
        # the mean over calibration sets, here of one: a little room
        assert safe.task_losses(shifted, y_true, weights=own).mean() <= 0.33
    with pytest.raises(ValueError, match="pass those of the new rows"):
        safe.predict(shifted)
    with pytest.raises(ValueError, match="finite and not negative"):
        safe.fit(X, y, weights=-weights)
    with pytest.raises(ValueError, match=r"weights must have shape \(4000,\)"):
        safe.fit(X, y, weights=weights[:5])


def test_a_share_of_the_rows_is_kept_apart():
    X, y = rows(500)
    safe = RiskControl(cs.TaskLossClassifier(COSTS, RIDGE), 0.4, cv=0.4, random_state=0).fit(X, y)
    assert safe.guarantee_.n == 200
    assert safe.guarantee_.proved
    again = RiskControl(cs.TaskLossClassifier(COSTS, RIDGE), 0.4, cv=0.4, random_state=0).fit(X, y)
    assert again.thresholds_[""].safety == safe.thresholds_[""].safety


@pytest.mark.parametrize("cv", [4, KFold(4, shuffle=True, random_state=0)])
def test_cross_fitting_uses_all_rows_and_states_that_it_proves_less(cv):
    X, y = rows(400)
    safe = RiskControl(cs.TaskLossClassifier(COSTS, RIDGE), 0.4, cv=cv, random_state=0).fit(X, y)
    assert safe.guarantee_.n == 400
    assert not safe.guarantee_.proved
    assert "not proved" in str(safe.guarantee_)
    assert safe.task_losses(*rows(20000, seed=4)).mean() <= 0.44


def test_weights_and_segments_follow_the_rows_that_are_kept():
    X, y = rows(400)
    side = np.where(X[:, 0] > 0, 1, 0)
    settings = {"cv": 5, "random_state": 0}
    control = RiskControl(cs.TaskLossClassifier(COSTS, RIDGE), 0.5, **settings)
    found = control.fit(X, y, segments=side).thresholds_
    assert sum(threshold.n for threshold in found.values()) == 400
    assert found[1].n == side.sum()


def test_rankings_of_queries_show_as_many_items_as_it_takes():
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(1500, 2)), np.repeat(np.arange(250), 6)
    relevance = (X[:, 0] + 0.5 * rng.normal(size=1500) > 0.4).astype(int)
    ranker = cs.StructuredPredictor("ndcg", cs.models.Items("ridge"))
    safe = RiskControl(ranker, 0.35, cv=0.5, random_state=0).fit(X, relevance, groups=queries)
    assert safe.policy_ == "list"
    assert safe.guarantee_.n == 125
    ranks = safe.predict(X, groups=queries)
    full = safe.estimator_.predict(X, groups=queries)
    assert (ranks[ranks > 0] == full[ranks > 0]).all()
    losses = safe.task_losses(X, relevance, groups=queries)
    assert len(losses) == 250
    # by the definition, query by query
    for query in range(20):
        rows_of = slice(6 * query, 6 * query + 6)
        shown = np.where(ranks[rows_of] > 0, relevance[rows_of], 0)
        discount = 1 / np.log2(1 + full[rows_of])
        ideal = np.sort(relevance[rows_of])[::-1] @ (1 / np.log2(np.arange(2, 8)))
        expected = 1 - shown @ discount / ideal if ideal else 0.0
        assert losses[query] == pytest.approx(expected)
    with pytest.raises(ValueError, match="comparable only within a query"):
        RiskControl(safe.estimator_, 0.3, policy="abstain").fit(X, relevance, groups=queries)


def test_sequences_are_answered_or_not():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(rng.integers(2, 6), 2)) for _ in range(160)]
    y = [np.where(x[:, 0] + 0.4 * rng.normal(size=len(x)) > 0, "up", "down") for x in X]
    model = cs.StructuredPredictor("hamming", cs.models.Chain(max_epochs=5), random_state=0)
    model.fit(X[:60], y[:60])
    safe = RiskControl(model, 0.08).fit(X[60:], y[60:])
    answers = safe.predict(X[:30])
    assert safe.policy_ == "abstain"
    assert any(answer is None for answer in answers)
    assert all(
        answer is None or len(answer) == len(x) for answer, x in zip(answers, X, strict=False)
    )


def test_another_loss_may_be_guaranteed_for_label_sets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    Y = (X + rng.normal(size=(600, 3)) > 0.4).astype(int)
    model = cs.TaskLossClassifier("hamming", RIDGE).fit(X[:200], Y[:200])
    recall = cs.losses.FBeta(3, 1e6)
    safe = RiskControl(model, 0.1, loss=recall).fit(X[200:], Y[200:])
    sets = safe.predict(X)
    missed = [
        1 - (found & y_true).sum() / y_true.sum() if y_true.any() else 0.0
        for found, y_true in zip(sets, Y, strict=True)
    ]
    np.testing.assert_allclose(safe.task_losses(X, Y), missed, atol=1e-9)
    with pytest.raises(ValueError, match="another number of labels"):
        RiskControl(model, 0.1, loss=cs.losses.FBeta(4), policy="grow").fit(X, Y)
    with pytest.raises(ValueError, match="set_loss"):
        RiskControl(model, 0.1, loss=recall, policy="abstain").fit(X, Y)


def test_label_sets_of_a_size_that_training_never_saw():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    Y = (X + rng.normal(size=(300, 3)) > 0.4).astype(int)
    model = cs.TaskLossClassifier("fbeta", RIDGE)
    model.fit(X[:100], np.where(Y[:100].sum(axis=1, keepdims=True) < 3, Y[:100], [1, 0, 0]))
    assert 3 not in model.loss_.sizes
    for policy in ("grow", "shrink", "abstain"):
        safe = RiskControl(model, 0.3, policy=policy).fit(X[100:], Y[100:])
        assert safe.task_losses(X[100:], Y[100:]).mean() <= 0.3


def test_it_is_a_scikit_learn_estimator(model):
    safe = RiskControl(model, 0.3)
    assert clone(safe).level == 0.3
    assert safe.set_params(level=0.2, estimator__random_state=3).level == 0.2
    X, y = rows(200)
    with pytest.raises(ValueError, match="the estimator is not fitted"):
        clone(safe).fit(X, y)
    frozen = clone(RiskControl(FrozenEstimator(model), 0.3)).fit(X, y)
    assert frozen.predict(X[:3]).shape == (3,)
    with pytest.raises(TypeError, match="wrap a classifier"):
        RiskControl(LogisticRegression()).fit(X, y)
    with pytest.raises(TypeError, match="got RiskControl"):
        RiskControl(frozen).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"risk": "mean"}, "risk must be"),
        ({"policy": "hope"}, "policy must be 'auto' or one of abstain"),
        ({"confidence": 1.0}, "below 1"),
        ({"level": 0.0}, "level"),
        ({"policy": "defer"}, "needs defer_cost"),
        ({"defer_cost": 1.0}, "needs policy='defer'"),
        ({"defer_to": 3}, "needs policy='defer'"),
        ({"policy": "grow"}, "not sets of labels"),
        ({"policy": "list"}, "does not define the cost of a truncated list"),
        ({"policy": "ancestor"}, "no tree of labels"),
        ({"method": "binomial", "confidence": 0.9}, "two values"),
        ({"loss": "hamming"}, "must be a consistruct loss"),
    ],
)
def test_settings_that_make_no_sense_are_refused(model, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        RiskControl(model, **({"level": 0.3} | settings)).fit(*rows(300))


def test_too_few_rows_and_levels_out_of_reach(model):
    X, y = rows(300)
    with pytest.raises(
        RiskLevelError, match=r"too few rows for level 0\.01: it takes at least 399"
    ):
        RiskControl(model, 0.01).fit(X, y)
    with pytest.raises(ValueError, match="y must contain one true label for each of 300 rows"):
        RiskControl(model, 0.5).fit(X, y[:10])
    costs = np.random.default_rng(0).random((300, 3))
    priced = cs.TaskLossClassifier("zero_one", RIDGE).fit(X, costs=costs)
    with pytest.raises(RiskLevelError, match="set max_loss="):
        RiskControl(priced, 0.5).fit(X, 3 * costs)
    assert RiskControl(priced, 0.5, max_loss=3.0).fit(X, 3 * costs).guarantee_.level == 0.5


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"confidence": 0.9},
        {"policy": "defer", "defer_cost": 0.05, "confidence": 0.8, "level": 0.6},
        {"level": {0: 0.3, 1: 0.4}},
    ],
)
def test_files_keep_the_guarantee(model, settings, tmp_path):
    X, y = rows(800)
    extra = (
        {"segments": (X[:, 0] > 0).astype(int)} if isinstance(settings.get("level"), dict) else {}
    )
    safe = RiskControl(model, **({"level": 0.3, "random_state": 0} | settings)).fit(X, y, **extra)
    save(safe, tmp_path / "safe")
    again = load(tmp_path / "safe")
    assert again.guarantee_ == safe.guarantee_
    assert again.calibration_ == safe.calibration_
    assert again.predict(X, **extra).tolist() == safe.predict(X, **extra).tolist()
    assert again.evaluate(X, y, **extra) == safe.evaluate(X, y, **extra)


def test_rows_in_chunks_are_the_rows_at_once(model, monkeypatch):
    X, y = rows(700)
    whole = RiskControl(model, 0.3).fit(X, y)
    monkeypatch.setattr("consistruct.guarantees.risk.views.CHUNK", 64)
    parts = RiskControl(model, 0.3).fit(X, list(y))
    assert parts.thresholds_[""].safety == whole.thresholds_[""].safety
    assert parts.predict(X).tolist() == whole.predict(X).tolist()
