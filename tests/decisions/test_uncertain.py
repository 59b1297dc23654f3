"""Ranges of costs: regrets against linear programs and sampled costs, cases by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

import consistruct as cs
from consistruct.decisions import CostRanges


def problem(seed, k=4, m=3, n=6):
    rng = np.random.default_rng(seed)
    lower = rng.random((k, m))
    upper = lower + rng.random((k, m)) * (rng.random((k, m)) < 0.7)
    return CostRanges(lower, upper, rows="pred"), rng.dirichlet(np.ones(m), n)


def worst_regret(ranges, p, a):
    """max over b of a linear program in all k·m costs; nothing is assumed of the worst ones."""
    k, m = ranges.lower.shape
    best = 0.0
    bounds = np.column_stack([ranges.lower.ravel(), ranges.upper.ravel()]).tolist()
    for b in range(k):
        gain = np.zeros((k, m))
        gain[a] += p
        gain[b] -= p
        best = max(best, -linprog(-gain.ravel(), bounds=bounds).fun)
    return best


@pytest.mark.parametrize("seed", range(6))
def test_worst_regret_against_linear_programs(seed):
    ranges, P = problem(seed)
    decided = cs.decide(ranges, P)
    for row, p in enumerate(P):
        regrets = [worst_regret(ranges, p, a) for a in range(4)]
        assert decided.gap is not None
        assert decided.worst_regret[row] == pytest.approx(min(regrets), abs=1e-9)
        assert regrets[decided.labels[row]] == pytest.approx(min(regrets), abs=1e-9)
        assert decided.gap[row] == pytest.approx(sorted(regrets)[1] - min(regrets), abs=1e-9)
        assert regrets[decided.runner_up[row]] == pytest.approx(sorted(regrets)[1], abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_no_costs_within_the_ranges_have_more_regret(seed):
    ranges, P = problem(seed)
    decided = cs.decide(ranges, P)
    rng = np.random.default_rng(seed)
    # corners of the box, where linear regrets are largest, and points inside
    share = rng.integers(0, 2, (3000, 4, 3)) * 1.0
    share[:500] = rng.random((500, 4, 3))
    costs = ranges.lower + share * (ranges.upper - ranges.lower)
    expected = np.einsum("skm,nm->snk", costs, P)
    regret = np.take_along_axis(expected, decided.labels[None, :, None], 2)[..., 0]
    regret = regret - expected.min(axis=2)
    assert (regret <= decided.worst_regret + 1e-12).all()
    assert (regret.max(axis=0) >= 0.6 * decided.worst_regret - 1e-12).all()


def test_two_predictions_are_decided_by_the_costs_in_the_middle():
    entries = {("ok", "fraud"): (5, 20), ("fraud", "ok"): 1}
    ranges = CostRanges.from_entries(entries, ("ok", "fraud"))
    P = np.column_stack([1 - np.linspace(0, 1, 1001), np.linspace(0, 1, 1001)])
    decided = cs.decide(ranges, P, classes=["ok", "fraud"])
    # 20 p − (1 − p) against (1 − p) − 5 p: equal at p = 2/27
    assert (decided.labels == np.where(P[:, 1] > 2 / 27, "fraud", "ok")).all()
    middle = cs.decide(ranges.middle, P, classes=["ok", "fraud"])
    assert (middle.labels == decided.labels).all()
    assert decided.expected_loss == pytest.approx(middle.expected_loss)
    # above 1/6 fraud is best even if missing it costs 5 only
    assert (decided.worst_regret[P[:, 1] > 1 / 6] == 0).all()


def test_three_predictions_are_not():
    # asking costs between 0 and 2, and its range makes it the rival of both others at 0
    ranges = CostRanges([[0, 2], [2, 0], [0, 0]], [[0, 2], [2, 0], [2.1, 2.1]], rows="pred")
    P = [[0.5, 0.5]]
    assert cs.decide(ranges, P).labels[0] == 0  # regret 1 against 1.1
    assert cs.decide(ranges, P).worst_regret[0] == pytest.approx(1.0)
    regrets = [worst_regret(ranges, np.array(P[0]), a) for a in range(3)]
    assert regrets == pytest.approx([1.0, 1.0, 1.1])
    # with costs in the middle the third costs 1.05, the first 1
    ranges = CostRanges([[0, 2], [2, 0], [0, 0]], [[0, 2], [2, 0], [1.9, 1.9]], rows="pred")
    assert cs.decide(ranges, P).labels[0] == 2
    wide = CostRanges([[0, 2], [2, 0], [0.6, 0.6]], [[0, 2], [2, 0], [1.3, 1.3]], rows="pred")
    assert cs.decide(wide.middle, P).labels[0] == 2  # 0.95 is the least expected cost
    assert cs.decide(wide, P).worst_regret[0] == pytest.approx(0.3)


def test_costs_that_are_known_are_decided_as_always():
    rng = np.random.default_rng(0)
    L, P = rng.random((5, 4)), rng.dirichlet(np.ones(4), 500)
    decided = cs.decide(CostRanges(L, L, rows="pred"), P)
    plain = cs.decide(cs.losses.CostMatrix(L, rows="pred"), P)
    assert (decided.labels == plain.labels).all()
    assert (decided.worst_regret == 0).all()
    assert decided.expected_loss == pytest.approx(plain.expected_loss)
    assert decided.gap == pytest.approx(plain.gap)
    assert len(decided.value_of_knowing()) == 0


@pytest.mark.parametrize("seed", range(4))
def test_value_of_knowing_a_cost_against_deciding_again(seed):
    ranges, P = problem(seed, n=40)
    decided = cs.decide(ranges, P)
    before = decided.worst_regret.mean()
    frame = decided.value_of_knowing(points=33)
    assert (frame["guaranteed"].diff().dropna() <= 0).all()
    for entry in frame.itertuples():
        c, y = entry.prediction, entry.true_label
        after = []
        for m in np.linspace(entry.low, entry.high, 257):
            lower, upper = ranges.lower.copy(), ranges.upper.copy()
            lower[c, y] = upper[c, y] = m
            after.append(cs.decide(CostRanges(lower, upper, rows="pred"), P).worst_regret.mean())
        assert entry.guaranteed <= before - max(after) + 1e-12  # a guarantee whatever m is
        step = (entry.high - entry.low) / 32
        assert entry.guaranteed >= before - max(after) - step - 1e-12
        assert entry.expected == pytest.approx(before - np.mean(after), abs=step)


def test_values_of_many_rows_are_means_over_parts_of_them():
    ranges, P = problem(5, n=10_000)
    key = ["prediction", "true_label"]
    whole, *parts = (
        cs.decide(ranges, rows).value_of_knowing().sort_values(key)["expected"].to_numpy()
        for rows in (P, P[:5000], P[5000:])
    )
    assert whole == pytest.approx(np.mean(parts, axis=0))
    assert len(cs.decide(ranges, P[:0]).value_of_knowing()) == len(whole)


def test_the_only_unknown_cost_is_worth_the_whole_regret():
    ranges = CostRanges([[0, 5], [1, 0]], [[0, 20], [1, 0]], rows="pred")
    P = np.column_stack([np.linspace(0.5, 1, 50), 1 - np.linspace(0.5, 1, 50)])
    decided = cs.decide(ranges, P)
    frame = decided.value_of_knowing(points=1025)
    assert (frame["prediction"][0], frame["true_label"][0]) == (0, 1)
    assert frame["expected"][0] == pytest.approx(decided.worst_regret.mean())
    assert frame["guaranteed"][0] == pytest.approx(decided.worst_regret.mean(), rel=0.02)


def test_frames_and_orientation():
    ranges = CostRanges([[0, 1], [5, 0]], [[0, 1], [20, 0]], rows="true")
    assert ranges.upper[0, 1] == 20
    frame = cs.decide(ranges, [[0.95, 0.05]]).to_frame()
    assert list(frame) == ["label", "expected_loss", "runner_up", "gap", "worst_regret"]
    assert eval(repr(ranges), {"CostRanges": CostRanges}) == ranges


def test_any_classifier_decides_by_ranges():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] + rng.normal(size=400) > 1, "fraud", "ok")
    # names that are not sorted: columns of predict_proba are matched by name
    ranges = CostRanges.from_entries(
        {("ok", "fraud"): (5, 20), ("fraud", "ok"): 1}, ("ok", "fraud")
    )
    model = cs.decisions.DecideBy(LogisticRegression(), ranges).fit(X, y)
    fraud = model.predict_proba(X)[:, 0]
    assert (model.predict(X) == np.where(fraud > 2 / 27, "fraud", "ok")).all()
    frame = pd.DataFrame({"fraud": fraud, "ok": 1 - fraud})
    assert (cs.decide(ranges, frame).labels == model.predict(X)).all()
    paid = {("ok", "fraud"): 12.5, ("fraud", "ok"): 1.0}
    costs = [paid.get(pair, 0.0) for pair in zip(model.predict(X), y, strict=True)]
    assert model.score(X, y) == pytest.approx(-np.mean(costs))


def test_one_prediction_has_no_rival():
    decided = cs.decide(CostRanges([[0, 1]], [[2, 3]], rows="pred"), [[0.5, 0.5]])
    assert (decided.worst_regret[0], decided.runner_up) == (0.0, None)
    assert (decided.value_of_knowing()[["guaranteed", "expected"]] == 0).all(axis=None)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: CostRanges([[0, 2], [1, 0]], [[0, 1], [1, 0]], rows="pred"), "got 2 and 1 for"),
        (lambda: CostRanges([[0, 2], [1, 0]], [[0, 3], [2, 0]]), "pass rows='pred'"),
        (lambda: CostRanges([[0, 0]], [[0, 0], [0, 0]], rows="pred"), "must have one shape"),
        (lambda: CostRanges.from_entries({("a", "b"): 1}, "ab"), r"no cost of \('b', 'a'\)"),
        (lambda: CostRanges.from_entries({("a", "c"): 1}, "ab"), r"no such entry \('a', 'c'\)"),
        (lambda: cs.decide(problem(0)[0], samples=[[0]]), "take probabilities, got samples"),
        (
            lambda: cs.decide(*problem(0), limits={0: 1}),
            r"limits= does not apply to prob.* \(they take classes=\)",
        ),
        (lambda: cs.decide(*problem(0), rows="pred"), r"rows= does not apply to .*; omit it"),
        (lambda: problem(0)[0] and cs.decide(*problem(0)).value_of_knowing(points=1), "points"),
    ],
)
def test_bad_ranges_get_one_clear_line(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_entries_are_read_as_prediction_then_true_label():
    pairs = itertools.permutations("abc", 2)
    entries = {pair: (number, number + 1) for number, pair in enumerate(pairs)}
    ranges = CostRanges.from_entries(entries, "abc")
    assert ranges.lower.tolist() == [[0, 0, 1], [2, 0, 3], [4, 5, 0]]
