"""Peers and bookkeeping of the metric benchmark, against slow evaluations."""

from __future__ import annotations

import io
from itertools import product

import numpy as np
import pytest
from benchmarks.metrics import __main__ as command
from benchmarks.metrics import independent_f1
from benchmarks.metrics.label_ranking import (
    KernelRidgeOfRanks,
    NearestOrders,
    PairwiseLogistic,
    RidgeOfRanks,
    kendall_tau,
    order_of_ranks,
    ranks_of_order,
)
from benchmarks.metrics.multilabel_peers import (
    AtThreshold,
    Chain,
    IndependentF1,
    Logistic,
    PrecomputedSVC,
    Ridge,
    TunedThreshold,
    choose_and_predict,
    f1,
    hamming,
)
from benchmarks.metrics.ordinal import MedianLogistic, RoundedRidge
from benchmarks.metrics.page import draw, page
from benchmarks.metrics.ranking import (
    LAMBDARANK_DEFAULTS,
    Items,
    LinearRidge,
    RankSVM,
    pairwise_differences,
    query_ndcg,
)
from benchmarks.metrics.ridge import LeaveOneOutRidge
from benchmarks.metrics.rows import Outcome, Row, compare, read, write
from benchmarks.metrics.targets import judge
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.metrics import f1_score, ndcg_score


def test_f1_and_hamming_against_scikit_learn():
    rng = np.random.default_rng(0)
    pred, true = rng.integers(2, size=(2, 50, 4))
    pred[0] = true[0] = 0
    expected = [f1_score(t, p, zero_division=1.0) for p, t in zip(pred, true, strict=True)]
    assert f1(pred, true) == pytest.approx(expected)
    assert hamming(np.array([[1, 0, 1, 1]]), np.array([[1, 1, 0, 1]])) == pytest.approx([0.5])


# --- the decoder of independent labels ---


@pytest.mark.parametrize("empty", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("T", [1, 2, 5])
def test_independent_f1_against_enumeration(T, empty):
    rng = np.random.default_rng(T)
    p = rng.random((20, T)) ** 3
    p[0], p[1] = 0.0, 1.0
    sets = np.array(list(product((0, 1), repeat=T)))
    pred, true = np.repeat(sets, len(sets), axis=0), np.tile(sets, (len(sets), 1))
    nothing = (pred.sum(axis=1) + true.sum(axis=1)) == 0
    value = np.where(nothing, empty, f1(pred, true)).reshape(len(sets), len(sets))
    chance = np.prod(np.where(sets[:, None] == 1, p, 1.0 - p), axis=2)  # (true label, example)
    expected = value @ chance  # (prediction, example)
    found = independent_f1.decode(p, empty=empty)
    place = (found @ 2 ** np.arange(T)[::-1]).astype(int)  # product() counts in binary
    assert expected[place, np.arange(len(p))] == pytest.approx(expected.max(axis=0))
    ranked = -np.sort(-p, axis=1)
    best = independent_f1.expected_f1_of_best(ranked, empty).max(axis=1)
    assert best == pytest.approx(expected.max(axis=0))


def test_independent_f1_in_chunks(monkeypatch):
    p = np.random.default_rng(0).random((30, 6))
    whole = independent_f1.decode(p)
    monkeypatch.setattr(independent_f1, "CHUNK_BYTES", 16 * 49 * 7)  # seven examples at a time
    assert np.array_equal(independent_f1.decode(p), whole)


def test_empty_sets_count_only_where_training_has_some():
    scores = np.full((1, 2), 0.1)
    assert IndependentF1(np.array([[0, 0], [1, 0]])).predict(scores).tolist() == [[0, 0]]
    assert IndependentF1(np.array([[1, 1], [1, 0]])).predict(scores).sum() > 0


# --- ridge ---


@pytest.mark.parametrize("kernel", [False, True])
def test_leave_one_out_ridge_against_refitting(kernel):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(15, 4)) + 3.0, rng.normal(size=(15, 2))
    new = rng.normal(size=(3, 4))
    inputs, inputs_new = (X @ X.T, new @ X.T) if kernel else (X, new)
    found = LeaveOneOutRidge(inputs, Y, kernel=kernel)
    penalty = 0.7
    expected = SklearnRidge(alpha=penalty).fit(X, Y).predict(new)
    assert found.scorer(penalty)(inputs_new) == pytest.approx(expected)
    out_of_fold = found.out_of_fold(penalty)
    for row in range(len(X)):
        kept = np.arange(len(X)) != row
        one = SklearnRidge(alpha=penalty).fit(X[kept], Y[kept]).predict(X[row : row + 1])[0]
        assert out_of_fold[row] == pytest.approx(one)


# --- multi-label peers ---


def separable(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X @ rng.normal(size=(3, 4)) > 0.5).astype(np.int64)


def test_tuned_threshold_finds_the_best_one():
    rng = np.random.default_rng(0)
    Y = (rng.random((200, 5)) < 0.2).astype(np.int64)
    scores = 0.37 + 0.1 * (2 * Y - 1) * rng.random((200, 5))  # 0.37 separates
    rule = TunedThreshold()
    assert rule.tune(scores, Y, f1) > 0.98
    assert rule.threshold == pytest.approx(0.37, abs=0.01)


def test_tuned_threshold_may_predict_nothing():
    rng = np.random.default_rng(0)
    Y = (rng.random((300, 10)) < 0.03).astype(np.int64)
    rule = TunedThreshold()
    value = rule.tune(rng.random((300, 10)), Y, lambda p, t: -hamming(p, t))  # scores say nothing
    assert value >= -Y.mean() - 1e-12


def test_at_least_one_label():
    rule = TunedThreshold(at_least_one=True)
    rule.threshold = 0.5
    assert rule.predict(np.array([[0.1, 0.3], [0.7, 0.8]])).tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize("peer", [Logistic, Chain, Ridge, PrecomputedSVC])
def test_peers_learn_and_are_timed(peer):
    X, Y = separable(240, 0)
    X_test, Y_test = X[160:], Y[160:]
    X, Y = X[:160], Y[:160]
    if peer is PrecomputedSVC:
        X, X_test = X @ X.T, X_test @ X.T
    model = peer(X, Y, kernel=False) if peer is Ridge else peer(X, Y)
    rule = (
        TunedThreshold() if peer is Ridge else AtThreshold(0.5 if peer is not PrecomputedSVC else 0)
    )
    pred, seconds, settings = choose_and_predict(model, rule, lambda p, t: -hamming(p, t), X_test)
    assert hamming(pred, Y_test).mean() < 0.15
    assert seconds > 0
    assert settings


def test_labels_that_never_or_always_occur():
    X, Y = separable(60, 1)
    Y[:, 0], Y[:, 1] = 0, 1
    scores = Logistic(X, Y).fit(1.0, X, Y)(X[:2])
    assert scores[:, :2].tolist() == [[0.0, 1.0]] * 2
    decisions = PrecomputedSVC(X @ X.T, Y).fit(1.0, X @ X.T, Y)(X[:2] @ X.T)
    assert (decisions[:, 0] < -1e6).all()
    assert (decisions[:, 1] > 0).all()


# --- rankings ---


def test_query_ndcg_against_scikit_learn():
    rng = np.random.default_rng(0)
    lengths = [3, 5, 2]
    items = Items(np.zeros((10, 1)), rng.integers(5, size=10), np.repeat([7, 3, 9], lengths))
    items.y[-2:] = 0  # nothing relevant: counts 1
    scores = rng.normal(size=10)
    found = query_ndcg(scores, items)
    for query, (begin, end) in enumerate([(0, 3), (3, 8)]):
        gain = np.exp2(items.y[begin:end]) - 1
        assert found[query] == pytest.approx(ndcg_score([gain], [scores[begin:end]]))
    assert found[2] == 1.0


def test_differences_of_pairs():
    X = np.array([[1.0], [2.0], [5.0], [9.0]])
    found = pairwise_differences(X, np.array([0, 2, 1, 0]), np.array([0, 0, 1, 1]))
    assert found.tolist() == [[1.0], [-4.0]]


@pytest.mark.parametrize("peer", [LinearRidge, RankSVM])
def test_linear_ranking_peers_find_a_linear_order(peer):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.clip(np.rint(X @ [1.0, -1.0, 0.0] + 2), 0, 4).astype(np.int64)
    items = Items(X, y, np.repeat(np.arange(30), 10))
    _, scorer = peer().tune_and_fit(items)
    assert query_ndcg(scorer(X), items).mean() > 0.98


def test_ranks_and_orders():
    order = np.array([[2, 0, 1]])
    assert ranks_of_order(order).tolist() == [[1, 2, 0]]
    assert order_of_ranks(ranks_of_order(order)).tolist() == order.tolist()
    assert kendall_tau(order, order).tolist() == [1.0]
    assert kendall_tau(order[:, ::-1], order).tolist() == [-1.0]


@pytest.mark.parametrize(
    "peer",
    [
        RidgeOfRanks(lambda X: X),
        KernelRidgeOfRanks(lambda A, B: (A @ B.T + 1) ** 2),
        PairwiseLogistic(),
        NearestOrders(),
    ],
    ids=lambda peer: type(peer).__name__,
)
def test_label_ranking_peers_find_linear_orders(peer):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    order = np.argsort(X @ np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]]), axis=1)
    _, scorer = peer.tune_and_fit(X[:300], order[:300])
    assert kendall_tau(order_of_ranks(scorer(X[300:])), order[300:]).mean() > 0.85


def test_ordinal_peers():
    X = np.linspace(0, 1, 90)[:, None]
    y = (3 * X[:, 0]).astype(np.int64).clip(0, 2)
    for model in (MedianLogistic(C=100.0), RoundedRidge(alpha=1e-3)):
        assert np.abs(model.fit(X, y).predict(X) - y).mean() < 0.15


def test_median_of_the_probabilities():
    model = MedianLogistic().fit(np.zeros((10, 1)), np.array([0] * 4 + [1] * 2 + [2] * 4))
    assert model.predict(np.zeros((1, 1))).tolist() == [1]  # the mode is 0 or 2


# --- rows, targets, page ---


def test_gain_is_positive_where_ours_is_better():
    ours, theirs = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.5, 3.0])
    rows = compare(
        "a", "mae", [Outcome("ours", "ours", ours, 1.0), Outcome("b", "usual", theirs, 2.0)]
    )
    assert rows[1].gain == pytest.approx(0.5)
    assert rows[1].low <= rows[1].gain <= rows[1].high
    rows = compare(
        "a", "f1", [Outcome("ours", "ours", ours, 1.0), Outcome("b", "usual", theirs, 2.0)]
    )
    assert rows[1].gain == pytest.approx(-0.5)


def row(data: str, metric: str, model: str, kind: str, mean: float, **changes: float) -> Row:
    values: dict[str, float] = {"gain": 0.0, "low": 0.0, "high": 0.0, "seconds": 1.0, "clock": 1.0}
    values |= changes
    return Row(data, metric, model, kind, mean, n=10, settings="C, 1", **values)


def bibtex_rows(f1_gain: float, seconds: float) -> list[Row]:
    return [
        row("bibtex", "f1", "consistruct", "ours", 0.481, clock=seconds),
        row("bibtex", "f1", "one-vs-rest logistic regression, at ½", "usual", 0.3, clock=5.0),
        row(
            "bibtex", "f1", "ridge on our features, threshold tuned", "features", 0.46, gain=f1_gain
        ),
    ]


def test_targets_of_f1():
    assert [v.met for v in judge(bibtex_rows(0.021, 5.0))] == [True, True, True]
    assert [v.met for v in judge(bibtex_rows(0.019, 5.1))] == [True, False, False]


def test_targets_of_hamming_and_ranks():
    hamming_rows = [
        row("yeast", "hamming", "ours", "ours", 0.1915),
        row("yeast", "hamming", "a", "usual", 0.2),
        row("yeast", "hamming", "b", "features", 0.189),
    ]
    (verdict,) = judge(hamming_rows)
    assert not verdict.met
    assert "0.19150 against 0.18900 (b)" in verdict.measured
    rank_rows = [
        row("lightgbm_rank", "ndcg", "ours", "ours", 0.80),
        row("lightgbm_rank", "ndcg", "a", "kernel", 0.81, gain=-0.01, low=-0.02, high=0.001),
        row("lightgbm_rank", "ndcg", "trees", "boosting", 0.9, gain=-0.1, low=-0.2, high=-0.05),
    ]
    # boosting is reported, not a target; the level of the first version is one
    assert [v.met for v in judge(rank_rows)] == [True, False]
    rank_rows[1] = row("lightgbm_rank", "ndcg", "a", "linear", 0.81, gain=-0.01, high=-0.001)
    rank_rows[0] = row("lightgbm_rank", "ndcg", "ours", "ours", 0.8471)
    assert [v.met for v in judge(rank_rows)] == [False, True]


def test_targets_of_the_first_ten():
    def rows(mean, seconds):
        return [
            row("lightgbm_rank", "ndcg10", "ours", "ours", mean, seconds=seconds),
            row("lightgbm_rank", "ndcg10", "LightGBM lambdarank", "boosting", 0.70, seconds=20.0),
            row("lightgbm_rank", "ndcg10", LAMBDARANK_DEFAULTS, "boosting", 0.71, seconds=0.5),
        ]

    assert [v.met for v in judge(rows(0.72, 4.0))] == [True, True]
    slow_and_worse = judge(rows(0.705, 6.0))
    assert [v.met for v in slow_and_worse] == [False, False]
    assert "0.7050 against 0.7100 (LightGBM lambdarank, defaults)" in slow_and_worse[0].measured
    assert "12.0 times" in slow_and_worse[1].measured


def test_rows_survive_the_file(tmp_path):
    rows, machines = bibtex_rows(0.021, 5.0), {"bibtex": "a machine, 2 cores"}
    path = tmp_path / "metrics.csv"
    assert read(path) == ([], {})
    path.write_text(write(rows, machines), encoding="utf-8")
    assert read(path) == (rows, machines)


def test_page_and_plot():
    rows = [
        *bibtex_rows(0.019, 5.0),
        row("lightgbm_rank", "ndcg", "ours", "ours", 0.80),
        row("lightgbm_rank", "ndcg", "a", "kernel", 0.81),
        row("lightgbm_rank", "ndcg", "trees", "boosting", 0.9, gain=-0.1, low=-0.2, high=-0.05),
    ]
    text = page(rows, {"bibtex": "a machine", "lightgbm_rank": "a machine"})
    assert "## Targets: 3 of 5 met" in text
    assert "lightgbm_rank: trees is ahead of ours by 0.1000 of NDCG" in text
    assert "imclef07a" in text
    stream = io.BytesIO()
    draw(rows, stream)
    assert stream.getvalue().startswith(b"\x89PNG")


def test_one_data_set_is_measured_anew_and_the_others_are_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "machine_with_peers", lambda: "a machine")
    calls: list[tuple[str, bool]] = []

    def measured(name: str, *, held_out: bool, rows: int | None) -> list[Row]:
        calls.append((name, held_out))
        mean = 0.1 * len(calls)
        return [
            row(name, "mae", "consistruct", "ours", mean),
            row(name, "mae", "mord", "usual", mean),
        ]

    parts = {"ordinal_era": measured, "ordinal_swd": measured}
    monkeypatch.setattr(command, "PARTS", parts)
    command.main(["--write"])
    command.main(["--write", "--only", "ordinal_era"])
    command.main(["--held-out", "--only", "ordinal_swd"])  # leaves the files alone
    assert calls == [
        ("ordinal_era", False),
        ("ordinal_swd", False),
        ("ordinal_era", False),
        ("ordinal_swd", True),
    ]
    rows, machines = read(tmp_path / "metrics.csv")
    assert [(r.data, round(r.mean, 6)) for r in rows if r.kind == "ours"] == [
        ("ordinal_era", 0.3),
        ("ordinal_swd", 0.2),
    ]
    assert set(machines) == set(parts)
    (tmp_path / "metrics.md").unlink()
    command.main(["--page"])  # measures nothing
    assert len(calls) == 4
    assert "## Targets: 2 of 2 met" in (tmp_path / "metrics.md").read_text(encoding="utf-8")
    assert (tmp_path / "metrics.png").stat().st_size > 0
    assert "met    ordinal_era" in capsys.readouterr().out


def test_command_refuses_what_it_cannot_do(capsys):
    for arguments, message in (
        (["--only", "nothing"], "unknown data set 'nothing'; allowed are yeast"),
        (["--write", "--quick"], "--write needs the real run"),
    ):
        with pytest.raises(SystemExit):
            command.main(arguments)
        assert message in capsys.readouterr().err
