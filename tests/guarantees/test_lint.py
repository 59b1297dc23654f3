"""Lint: every stated worst excess against linear programs and random search, and known cases."""

from __future__ import annotations

import itertools
import json
import time
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import consistruct as cs
from consistruct.guarantees.recipes import (
    advantage,
    argmax_worst_case,
    break_even,
    matched_weights,
    rounding_worst_case,
    threshold_worst_case,
)
from consistruct.losses.registry import _KDD, LOSSES

# rows are predictions
MATRICES = {
    "kdd-99": _KDD,
    # German credit and Statlog heart, UCI: missing the second class costs 5, a false alarm 1
    "german-credit": [[0, 5], [1, 0]],
    # job times of high-performance computing, Kuhn & Johnson 2013
    "hpc": [[0, 1, 5, 10], [1, 0, 5, 5], [1, 1, 0, 1], [1, 1, 1, 0]],
    "readme": np.transpose([[0, 1, 2, 3], [3, 0, 1, 2], [8, 3, 0, 1], [20, 8, 3, 0]]).tolist(),
    **{
        f"random-{seed}": (np.random.default_rng(seed).random((k, k)) * (1 - np.eye(k))).tolist()
        for seed, k in enumerate((2, 3, 3, 4, 4, 5, 5, 6, 6, 7))
    },
}
every_matrix = pytest.mark.parametrize("name", MATRICES)


def matrix(name):
    return np.array(MATRICES[name], dtype=float)


def programs(L, regions):
    """max over regions (r, A) and b of max (L_r − L_b)·p with A p ≤ 0 on the simplex."""
    best = 0.0
    for r, A in regions:
        for b in range(len(L)):
            found = linprog(
                L[b] - L[r],
                A_ub=A,
                b_ub=np.zeros(len(A)),
                A_eq=np.ones((1, L.shape[1])),
                b_eq=[1.0],
            )
            best = max(best, -found.fun) if found.status == 0 else best
    return best


def argmax_regions(k, weights=None):
    w = np.ones(k) if weights is None else np.asarray(weights, dtype=float)
    return [(r, np.diag(w) - w[r] * np.eye(k)[[r] * k]) for r in range(k)]


def threshold_regions(k, label, t):
    everyone, own = np.ones(k), np.eye(k)[label]
    yield label, (t * everyone - own)[None]
    for r in set(range(k)) - {label}:
        rest = [np.eye(k)[y] - np.eye(k)[r] for y in range(k) if y != label]
        yield r, np.array([own - t * everyone, *rest])


def rounding_regions(k):
    mean = np.arange(k, dtype=float)
    return [(r, np.array([r - 0.5 - mean, mean - r - 0.5])) for r in range(k)]


def regret(L, r, p):
    """Exactly, from the definition."""
    expected = [sum(Fraction(float(x)) * q for x, q in zip(row, p, strict=True)) for row in L]
    return expected[r] - min(expected)


def confirm(L, worst, regions):
    """The program of every pair agrees, and the distribution is in the region and attains it."""
    regions = list(regions)
    assert float(worst.excess) == pytest.approx(programs(L, regions), abs=1e-7)
    p = worst.distribution
    assert sum(p) == 1
    assert min(p) >= 0
    assert regret(L, worst.predicted, p) == worst.excess
    own = next(A for r, A in regions if r == worst.predicted)
    assert (own @ np.array([float(q) for q in p]) <= 1e-12).all()


@every_matrix
def test_argmax(name):
    L = matrix(name)
    confirm(L, argmax_worst_case(L, np.arange(len(L))), argmax_regions(len(L)))


@every_matrix
def test_class_weights(name):
    L = matrix(name)
    weights = [Fraction(float(x)) for x in L.sum(axis=0)]
    worst = argmax_worst_case(L, np.arange(len(L)), weights)
    confirm(L, worst, argmax_regions(len(L), L.sum(axis=0)))


@every_matrix
def test_a_threshold_on_one_class(name):
    L = matrix(name)
    k = len(L)
    for label in range(k):
        worst = threshold_worst_case(L, np.arange(k), label)
        confirm(L, worst, threshold_regions(k, label, float(worst.threshold)))
        if k <= 4:  # no other threshold does better, but for rounding it to 1/1000
            for t in np.linspace(0.01, 0.99, 15):
                other = programs(L, threshold_regions(k, label, t))
                assert other >= float(worst.excess) - 2e-3 * L.max()


@every_matrix
def test_a_rounded_mean(name):
    L = matrix(name)
    confirm(L, rounding_worst_case(L, np.arange(len(L))), rounding_regions(len(L)))


@every_matrix
def test_no_random_distribution_costs_more(name):
    L = matrix(name)
    k = len(L)
    result = cs.lint(cs.losses.CostMatrix(L, rows="pred"))
    rng = np.random.default_rng(1)
    concentration = rng.choice([0.1, 0.5, 1.0, 5.0], 20_000)
    P = rng.gamma(concentration[:, None], size=(20_000, k)) + 1e-12
    P /= P.sum(axis=1, keepdims=True)
    excess = P @ L.T - (P @ L.T).min(axis=1, keepdims=True)
    rows = np.arange(len(P))
    decided = {"argmax": P.argmax(axis=1), "class-weights": (P * _weights(result)).argmax(axis=1)}
    if k > 2:
        numbers = result["threshold"].numbers
        others = np.where(np.arange(k) == int(numbers["label"]), -1, P).argmax(axis=1)
        above = P[:, int(numbers["label"])] >= numbers["at"]
        decided["threshold"] = np.where(above, int(numbers["label"]), others)
    for kind, labels in decided.items():
        stated = result[kind].numbers["excess"]
        assert excess[rows, labels].max() <= stated + 1e-9
        # the search comes near, so that the statement is no empty bound
        assert excess[rows, labels].max() >= 0.5 * stated - 1e-9
    safest = int(result["constant"].numbers["predicted"])
    assert excess[:, safest].max() <= result["constant"].numbers["excess"] + 1e-9


def _weights(result):
    return np.array(list(result["class-weights"].numbers["weights"].values()))


# --- by hand ---


def test_two_classes():
    result = cs.lint(cs.losses.CostMatrix([[0, 10], [1, 0]], rows="pred"))
    assert result["break-even"].numbers["exact"] == ["1/11"]
    # at one half the wrong prediction costs 5, the right one 1/2
    assert result["argmax"].numbers["exact"] == "9/2"
    assert result["class-weights"].numbers["excess"] == 0
    assert result["class-weights"].numbers["weights"] == {"0": 1.0, "1": 10.0}


def test_zero_one_needs_nothing():
    result = cs.lint("zero-one:4")
    assert result["argmax"].numbers["excess"] == 0
    assert [f.kind for f in result.findings if f.advice] == ["threshold", "surrogates"]
    # of the usual ways to train only the hinge of Crammer and Singer is not consistent
    levels = result["surrogates"].numbers["levels"]
    assert [words for words, level in levels.items() if level > 1e-9] == ["multiclass hinge"]


def test_abstaining_that_never_pays():
    # no answer is best if the largest of three probabilities is below 0.3, and it is at least 1/3
    result = cs.lint(cs.losses.Abstain(3, 0.7))
    assert result["never-optimal"].numbers["margins"]["no answer"] == pytest.approx(0.7 - 2 / 3)
    assert "never worth" in result["rejection"].sentence
    result = cs.lint(cs.losses.Abstain(3, 0.3))
    assert "never-optimal" not in result.kinds
    assert result["rejection"].numbers["threshold"] == pytest.approx(0.7)
    assert result["argmax"].numbers["excess"] == pytest.approx(2 / 3 - 0.3)


def test_squared_distance_is_decided_by_the_rounded_mean_and_distance_is_not():
    assert cs.lint(cs.losses.Ordinal(6, 2.0))["rounded-mean"].numbers["excess"] == 0
    # a quarter on 2: the mean is 1/2, 1 costs one, 0 costs one half
    assert cs.lint("ordinal:3")["rounded-mean"].numbers["exact"] == "1/2"


def test_predictions_that_are_dominated_copied_or_best_in_ties_only():
    rows = [[0, 1, 1], [1, 0, 1], [1, 1, 0], [0.7, 0.7, 0.7], [0, 1, 2], [1, 0, 1], [0.5, 0.5, 1]]
    names = ("a", "b", "c", "mean", "worse", "copy", "between")
    loss = cs.losses.CostMatrix(rows, names, rows="pred")
    result = cs.lint(loss)
    assert result["dominated"].numbers["pairs"] == [["worse", "a"]]
    assert result["duplicates"].numbers["groups"] == [["b", "copy"]]
    assert set(result["never-optimal"].numbers["margins"]) == {"mean"}
    assert result["never-optimal"].numbers["margins"]["mean"] == pytest.approx(0.7 - 2 / 3)
    assert result["ties"].numbers["predictions"] == ["between"]


@pytest.mark.parametrize("seed", range(8))
def test_advantage_against_a_program_of_its_own(seed):
    rng = np.random.default_rng(seed)
    L = rng.integers(0, 5, (6, 4)) / 4
    for a in range(len(L)):
        others = [b for b in range(len(L)) if (L[b] != L[a]).any()]
        # the other side of the game: a mixture of the others against every true label
        D = L[others] - L[a]
        A = np.column_stack([D.T, -np.ones(4)])
        bounds = [(0, None)] * len(others) + [(None, None)]
        A_eq = np.append(np.ones(len(others)), 0.0)[None]
        cost = np.append(np.zeros(len(others)), 1.0)
        found = linprog(cost, A_ub=A, b_ub=np.zeros(4), A_eq=A_eq, b_eq=[1], bounds=bounds)
        stated = advantage(L, a)
        assert stated.low == stated.high
        assert float(stated.low) == pytest.approx(found.fun, abs=1e-9)
        assert float(stated.high) == pytest.approx(found.fun, abs=1e-9)


@pytest.mark.parametrize("unit", [1e-100, 1e-9, 1e12, 1e100])
def test_the_unit_of_costs_does_not_matter(unit):
    rows = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [0.7, 0.7, 0.7], [0.5, 0.5, 1]])
    names = ("a", "b", "c"), ("a", "b", "c", "mean", "between")
    once, scaled = (
        cs.lint(cs.losses.CostMatrix(L, names[1], names[0], rows="pred"))
        for L in (rows, rows * unit)
    )
    assert set(once.kinds) - {"surrogates"} == set(scaled.kinds) - {"surrogates"}
    margin = once["never-optimal"].numbers["margins"]["mean"]
    assert scaled["never-optimal"].numbers["margins"]["mean"] == pytest.approx(margin * unit)
    assert scaled["regions"].numbers["shares"] == pytest.approx(once["regions"].numbers["shares"])
    L = matrix("kdd-99")
    for case in (argmax_worst_case, rounding_worst_case):
        worst = case(L * unit, np.arange(5))
        assert float(worst.excess) == pytest.approx(unit * float(case(L, np.arange(5)).excess))
    for name, label in itertools.product(("kdd-99", "random-6"), range(5)):
        L = matrix(name)
        worst, plain = (threshold_worst_case(M, np.arange(5), label) for M in (L * unit, L))
        assert worst.threshold == plain.threshold
        assert float(worst.excess) == pytest.approx(unit * float(plain.excess))


def test_class_weights_are_right_exactly_where_mistakes_cost_the_same_in_each_column():
    L = np.array([[0, 3, 1.0], [2, 0, 1], [2, 3, 0]])
    weights = matched_weights(L, np.arange(3))
    assert weights == [2, 3, 1]
    assert argmax_worst_case(L, np.arange(3), weights).excess == 0
    L[0, 1] = 4
    assert matched_weights(L, np.arange(3)) is None
    for w in itertools.product(range(1, 8), repeat=3):  # none of the weights on a grid is right
        assert argmax_worst_case(L, np.arange(3), [Fraction(x) for x in w]).excess > 0


def test_break_even_of_three_predictions():
    ranges = break_even(np.array([[0, 10.0], [3, 3], [10, 0]]))
    assert [(c, str(low)) for c, low, _ in ranges] == [(0, "0"), (1, "3/10"), (2, "7/10")]
    result = cs.lint(cs.losses.CostMatrix([[0, 10], [3, 3], [10, 0]], rows="pred"))
    assert result["break-even"].sentence == (
        "predict 0 while P(1) is at most 3/10, 1 up to 7/10, 2 above."
    )


def test_regions_cover_the_triangle_and_are_where_predictions_are_best():
    rng = np.random.default_rng(3)
    L = rng.random((5, 3))
    result = cs.lint(cs.losses.CostMatrix(L, rows="pred"))
    shares = result["regions"].numbers["shares"]
    assert sum(shares.values()) == pytest.approx(1)
    best = (rng.dirichlet(np.ones(3), 100_000) @ L.T).argmin(axis=1)
    for name, share in shares.items():
        assert (best == int(name)).mean() == pytest.approx(share, abs=0.01)
    for series in result.chart().series:  # the picture has the area, of a triangle of 1/2
        heights = np.array(series.upper) - np.array(series.y)
        assert 2 * np.trapezoid(heights, series.x) == pytest.approx(shares.pop(series.name))
    assert not shares


def test_a_transposed_matrix_is_noticed():
    # treating costs 6 whatever is true, missing the illness 10: transposed, treating is dominated
    right = cs.losses.CostMatrix([[0, 10], [6, 6]], ("wait", "treat"), ("well", "ill"), rows="pred")
    turned = cs.losses.CostMatrix([[0, 6], [10, 6]], rows="pred")
    assert "orientation" not in cs.lint(right).kinds
    assert cs.lint(turned)["orientation"].numbers["exchanged"] == (0, 0)
    # frequencies of two classes: the expensive mistake is usually to miss the rare one
    y = np.repeat([0, 1], [90, 10])
    fraud = [[0, 20], [1, 0]]
    assert "orientation" not in cs.lint(cs.losses.CostMatrix(fraud, rows="pred"), y).kinds
    assert "orientation" in cs.lint(cs.losses.CostMatrix(fraud, rows="true"), y).kinds


def test_a_wrong_prediction_that_pays():
    L = [[1, 4], [0, 2]]
    found = cs.lint(cs.losses.CostMatrix(L, ("a", "b"), ("a", "b"), rows="pred"))["diagonal"]
    assert found.numbers["lost"] == {"a": 1.0}
    normal = cs.lint(cs.losses.CostMatrix(L, rows="pred"))["normal-form"].numbers
    assert normal["costs"] == [[1, 2], [0, 0]]
    assert normal["subtracted"] == [0, 2]


@pytest.mark.parametrize("name", [name for name in MATRICES if len(MATRICES[name]) <= 5])
def test_cross_entropy_with_argmax_stays_above_the_best_by_the_excess_of_argmax(name):
    # two routes to one number: the calibration function vanishes up to there
    result = cs.lint(cs.losses.CostMatrix(MATRICES[name], rows="pred"))
    level = result["surrogates"].numbers["levels"]["cross-entropy, then argmax"]
    assert level == pytest.approx(result["argmax"].numbers["excess"], abs=1e-6)


# --- label sets ---


@pytest.mark.parametrize(("T", "beta"), [(2, 1.0), (3, 1.0), (3, 2.0)])
def test_half_thresholds_on_label_sets(T, beta):
    loss = cs.losses.FBeta(T, beta)
    stated = cs.lint(loss)["half-thresholds"].numbers["excess_at_least"]
    # both single labels: (1 + β²)/(β² + 2), where none is predicted
    assert stated == pytest.approx((1 + beta**2) / (2 + beta**2))
    sets = loss.predictions.enumerate()
    regions = [(r, np.where(chosen, 0.5 - sets, sets - 0.5).T) for r, chosen in enumerate(sets)]
    # no distribution of few labels costs more, although only this is claimed: at least so much
    assert stated == pytest.approx(programs(loss.matrix(), regions), abs=1e-9)


def test_hamming_loss_needs_no_more_than_halves():
    result = cs.lint("hamming:1000")
    assert "always the best" in result["parts"].sentence
    assert "half-thresholds" not in result.kinds


# --- data ---


def test_recipes_on_data_are_charged_by_hand():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(5), 4000)
    y = (P.cumsum(axis=1) > rng.random((4000, 1))).argmax(axis=1)
    L = matrix("kdd-99")
    result = cs.lint(cs.losses.CostMatrix(L, rows="pred"), y, P)
    found = [f for f in result.findings if f.kind == "on-data"]
    assert [f.numbers["recipe"] for f in found] == ["argmax", "class weights", "threshold"]
    argmax, best = L[P.argmax(axis=1), y], L[(P @ L.T).argmin(axis=1), y]
    assert found[0].numbers["mean"] == argmax.mean()
    assert found[0].numbers["difference"] == pytest.approx((argmax - best).mean())
    low, high = found[0].numbers["interval"]
    assert 0 < low < (argmax - best).mean() < high


def test_names_of_true_labels_are_taken():
    loss = cs.losses.CostMatrix([[0, 5], [1, 0]], ("no", "yes"), ("no", "yes"), rows="pred")
    P = np.array([[0.9, 0.1], [0.2, 0.8]])
    result = cs.lint(loss, ["no", "yes"], P)
    assert result["on-data"].numbers["least_expected"] == 0
    with pytest.raises(ValueError, match=r"y contains 'maybe', which is not a class.*no', 'yes"):
        cs.lint(loss, ["no", "maybe"], P)


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([[0.5, 0.4]], r"sum"),
        ([[3.0, -1.0]], r"look like logits or scores"),
        ([[1.0, 0.0]] * 2, r"a row for each of y, got 2 and 1"),
        ([[1.0, 0.0, 0.0]], r"needs probabilities of 2 classes"),
    ],
)
def test_bad_probabilities_get_one_clear_line(probabilities, message):
    with pytest.raises(ValueError, match=message):
        cs.lint("zero-one:2", [0], probabilities)


def test_label_sets_on_data_are_charged_by_hand():
    rng = np.random.default_rng(0)
    P = rng.random((2000, 4)) * 0.6
    Y = (rng.random((2000, 4)) < P).astype(int)
    loss = cs.losses.FBeta(4)
    numbers = cs.lint(loss, Y, P)["on-data"].numbers
    assert numbers["mean"] == pytest.approx(loss((P >= 0.5).astype(int), Y).mean())
    assert numbers["least_expected"] == pytest.approx(loss(cs.decide(loss, P).labels, Y).mean())
    assert numbers["interval"][0] > 0  # few labels reach one half


def test_probabilities_need_true_labels():
    with pytest.raises(ValueError, match="pass the true labels too"):
        cs.lint("zero-one:2", probabilities=[[1.0, 0.0]])


# --- every loss, and what is not examined ---

ALL = [
    *(example for entry in LOSSES.values() for example in entry.examples),
    *(entry.huge for entry in LOSSES.values() if entry.huge is not None),
]


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: type(loss).__name__)
def test_every_loss_is_examined_or_the_reason_stated(loss):
    start = time.perf_counter()
    result = cs.lint(loss)
    assert time.perf_counter() - start < 30
    assert "surrogates" in result.kinds
    if loss.n_labels is None or loss.n_labels > 256:
        assert "normal-form" not in result.kinds
        assert any("are listed" in why for _, why in result.not_examined)
    json.dumps(result.as_dict(), allow_nan=False)
    assert len(result.to_frame()) == len(result.findings)
    assert all(finding.sentence in str(result) for finding in result.findings)
    if result.chart() is not None:
        cs_chart(result)


def cs_chart(result):
    from consistruct.charts import chart_picture

    assert chart_picture(result.chart(), "svg").startswith(b"<?xml")


def test_a_kind_that_is_not_there():
    with pytest.raises(KeyError, match=r"no finding 'nothing'; there are normal-form"):
        cs.lint("zero-one:3")["nothing"]
