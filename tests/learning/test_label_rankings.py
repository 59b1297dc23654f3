"""Label rankings and matchings: names, open ends, ranks with ties, bad input."""

import re

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import kendalltau, spearmanr
from sklearn.model_selection import GridSearchCV

from consistruct.learning import load, orders_from_ranks, save
from consistruct.losses import Kendall, Matching, SpearmanFootrule, SpearmanRho
from consistruct.metrics import TaskLossScorer, task_losses
from tests.learning.estimators import predictor

rng = np.random.default_rng(0)
N, K = 120, 4
X = rng.normal(size=(N, 3))
WORTH = np.column_stack([X, X[:, 0] + X[:, 1]]) + 0.3 * rng.normal(size=(N, K))
ORDERS = np.argsort(-WORTH, axis=1)
NAMES = np.array(["ant", "bee", "cat", "dog"])


@pytest.mark.parametrize(
    ("loss", "chance"),
    [("kendall", 0.5), ("footrule", 0.6), ("spearman_rho", 0.5), ("matching", 0.75)],
)
def test_orders_are_learned(loss, chance):
    model = predictor(loss, random_state=0).fit(X[:80], ORDERS[:80])
    assert vars(model.loss_)["n"] == K
    assert -model.score(X[80:], ORDERS[80:]) < 0.6 * chance


def test_losses_are_the_known_correlations():
    kendall = predictor("kendall").fit(X, ORDERS)
    positions, predicted = np.argsort(ORDERS, axis=1), np.argsort(kendall.predict(X), axis=1)
    tau = [kendalltau(p, q).statistic for p, q in zip(positions, predicted, strict=True)]
    assert kendall.score(X, ORDERS) == pytest.approx((np.mean(tau) - 1) / 2)
    rho_model = predictor(SpearmanRho(K)).fit(X, ORDERS)
    predicted = np.argsort(rho_model.predict(X), axis=1)
    rho = [spearmanr(p, q).statistic for p, q in zip(positions, predicted, strict=True)]
    assert rho_model.score(X, ORDERS) == pytest.approx((np.mean(rho) - 1) / 2)


def test_matchings_are_decoded_by_assignment():
    model = predictor("matching", features="linear").fit(X, ORDERS)
    estimates = model.recalibration_.for_decisions(model.model_.expected(X[:5]))
    theta = -estimates.reshape(5, K, K)
    for scores, partners in zip(theta, model.predict(X[:5]), strict=True):
        best = linear_sum_assignment(-scores)[1]
        assert scores[np.arange(K), partners].sum() == pytest.approx(
            scores[np.arange(K), best].sum()
        )


@pytest.mark.parametrize("loss", ["kendall", Kendall(K), Kendall(None), "footrule"], ids=str)
def test_labels_may_have_names(loss, tmp_path):
    numbered = predictor(loss, random_state=0).fit(X, ORDERS)
    named = predictor(loss, random_state=0).fit(X, NAMES[ORDERS])
    np.testing.assert_array_equal(named.predict(X), NAMES[numbered.predict(X)])
    assert named.score(X, NAMES[ORDERS]) == numbered.score(X, ORDERS)
    save(named, tmp_path / "orders.safetensors")
    again = load(tmp_path / "orders.safetensors")
    np.testing.assert_array_equal(again.predict(X), named.predict(X))
    assert (
        again.task_losses(X, NAMES[ORDERS]).tolist() == named.task_losses(X, NAMES[ORDERS]).tolist()
    )


def cut(orders, missing):
    """Every second order lists its two best labels only."""
    short = orders.astype(type(missing) if not isinstance(missing, int) else int)
    if missing is None:
        short = orders.astype(object)
    short[::2, 2:] = missing
    return short


@pytest.mark.parametrize("missing", [-1, np.nan, None])
def test_orders_with_an_open_end(missing):
    if missing is None:
        y = cut(NAMES[ORDERS].astype(object), None)
    else:
        y = cut(ORDERS, missing)
    model = predictor("kendall", random_state=0).fit(X, y)
    assert model.loss_ == Kendall(K, ties="exclude")
    # the same true labels, written as ranks with ties
    ranks = np.argsort(ORDERS, axis=1)
    ranks[::2] = np.minimum(ranks[::2], 2)
    by_ranks = predictor(Kendall(K, ties="exclude"), random_state=0).fit(X, ranks)
    np.testing.assert_array_equal(by_ranks.model_.coef_, model.model_.coef_)
    assert by_ranks.score(X, ranks) == model.score(X, y)


def test_a_model_of_full_orders_scores_open_ends():
    model = predictor("kendall").fit(X, ORDERS)
    open_end = ORDERS.copy()
    open_end[:, 1:] = -1  # the best label only
    pred = model.predict(X)
    place = np.argmax(pred == ORDERS[:, :1], axis=1)
    np.testing.assert_allclose(model.task_losses(X, open_end), place / (K - 1))
    with pytest.raises(ValueError, match="SpearmanFootrule needs full ones"):
        predictor("footrule").fit(X, ORDERS).score(X, open_end)


def test_ranks_with_gaps_put_the_rest_last():
    loss = Kendall(K, ties="average")
    ranks = np.argsort(ORDERS, axis=1).astype(float)
    gaps = np.where(ranks >= 2, np.nan, 10 * ranks)
    tied = np.minimum(ranks, 2)
    np.testing.assert_array_equal(
        predictor(loss).fit(X, gaps).model_.coef_,
        predictor(loss).fit(X, tied).model_.coef_,
    )


def test_unseen_labels_are_wrong():
    model = predictor("kendall").fit(X, NAMES[ORDERS])
    other = NAMES[ORDERS].copy()
    other[0, 0] = "emu"
    losses = model.task_losses(X, other)
    assert losses[0] == 1.0
    np.testing.assert_array_equal(losses[1:], model.task_losses(X, NAMES[ORDERS])[1:])


def test_scorers_and_grid_search():
    model = predictor("footrule", features="linear").fit(X, NAMES[ORDERS])
    direct = task_losses(NAMES[ORDERS], model.predict(X), loss="kendall").mean()
    assert TaskLossScorer("kendall")(model, X, NAMES[ORDERS]) == pytest.approx(-direct)
    assert TaskLossScorer(Kendall(K))(model, X, NAMES[ORDERS]) == pytest.approx(-direct)
    search = GridSearchCV(
        predictor("kendall", features="linear"), {"model__alpha": [1e-3, 1e3]}, cv=3
    ).fit(X, NAMES[ORDERS])
    assert search.best_params_ == {"model__alpha": 1e-3}


def test_orders_from_ranks():
    ranks = np.argsort(ORDERS, axis=1) + 1
    np.testing.assert_array_equal(orders_from_ranks(ranks), ORDERS)
    with pytest.raises(ValueError, match="row 1 of ranks has ties"):
        orders_from_ranks([[1, 2], [1, 1]])
    with pytest.raises(ValueError, match="row 0 of ranks contains NaN"):
        orders_from_ranks([[1, np.nan]])
    with pytest.raises(ValueError, match=r"shape \(n, labels\)"):
        orders_from_ranks([1, 2])


def changed(row, value, base=ORDERS):
    y = base.copy()
    y[row] = value
    return y


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        ("kendall", changed(3, [0, 1, 1, 2]), "row 3 of y lists a label twice, [0, 1, 1, 2]"),
        (Kendall(K), changed(3, [0, 1, 1, 2]), "row 3 of y lists a label twice"),
        ("kendall", changed(3, [0, -1, 1, 2]), "row 3 of y has a gap, [0, -1, 1, 2]"),
        ("kendall", ORDERS[:, :3], "orders of 3 labels, as many as it has columns, but it names 4"),
        ("kendall", ORDERS[:, 0], "y must have shape (n, labels), one order per row, got (120,)"),
        (Kendall(5), ORDERS, "Kendall(5) needs y of shape (n, 5), got (120, 4)"),
        ("kendall:5", ORDERS, "Kendall(5) needs y of shape (n, 5), got (120, 4)"),
        (
            Kendall(K),
            changed(0, [0, 1, -1, -1]),
            "row 0 of y is a partial order, but Kendall needs",
        ),
        ("footrule", changed(0, [0, 1, -1, -1]), "row 0 of y is a partial order"),
        ("kendall", np.full((N, K), -1), "y contains only empty orders"),
        (Kendall(K, ties="exclude"), ORDERS[:, :3], "y must have shape (n, 4), the rank of each"),
        (Matching(K), changed(2, [0, 0, 1, 2]), "y must contain permutations of 0..3"),
        (SpearmanFootrule(K), ORDERS[:, :2], "orders of 2 labels"),
    ],
)
def test_bad_orders(loss, y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        predictor(loss).fit(X, y)


def test_bad_predictions():
    with pytest.raises(ValueError, match="y_pred must contain full orders"):
        task_losses(ORDERS[:2], [[0, 1, 2, 3], [0, 1, -1, -1]], loss=Kendall(K))
