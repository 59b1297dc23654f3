"""The fast method for explicit losses against all-pairs quadratic programs and closed forms."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, comb

import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog, minimize_scalar

from consistruct.calibration.methods.explicit_full import explicit_curve, verify
from consistruct.calibration.methods.explicit_full._dual import pair_lower_bounds
from consistruct.calibration.methods.explicit_full._gauge import best_multiplier, gauge
from consistruct.calibration.methods.explicit_full.curve import best_level
from consistruct.exceptions import CertificateError

RELATIVE = 1e-7


def least_excess(L, weights, j, rows=(), bounds=()):
    """min ½ Σ_c p_c (f_c + (Lq)_c)² over q with rows·Lq ≤ bounds, scores with f_j largest."""
    k, m = L.shape
    f = np.hstack([np.eye(k), np.zeros((k, m))])
    q = np.hstack([np.zeros((m, k)), np.eye(m)])
    expected = np.hstack([np.zeros((k, k)), L])
    rows = np.reshape(rows, (-1, k))
    inequalities = np.vstack([f - f[j], -q, rows @ expected])
    right = np.concatenate([[1.0], np.zeros(k + m), bounds])
    excess = f + expected
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(excess.T @ (weights[:, None] * excess))),
        np.zeros(k + m),
        sparse.csc_matrix(np.vstack([q.sum(axis=0), inequalities])),
        right,
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(right.size - 1)],
        settings,
    ).solve()
    if "Infeasible" in str(solution.status):
        return np.inf
    return 0.5 * float((weights * (excess @ np.array(solution.x)) ** 2).sum())


def pair_value(L, weights, i, j, eps):
    """k·H_ij(ε) from the definition, where i has to be optimal."""
    unit = np.eye(L.shape[0])
    rows = np.vstack([unit[i] - unit, unit[i] - unit[j]])
    return least_excess(L, weights, j, rows, np.append(np.zeros(len(unit)), -eps))


def all_pairs(L, weights, eps):
    k = L.shape[0]
    values = [pair_value(L, weights, i, j, eps) for i in range(k) for j in range(k) if i != j]
    return min(values, default=np.inf)


def uniform(rng, k, m):
    return rng.random((k, m))


def integers(rng, k, m):
    return rng.integers(0, 4, (k, m)).astype(float)


def duplicates(rng, k, m):
    L = rng.random((k, m))
    L[-1] = L[0]
    return L


def zero_diagonal(rng, k, m):
    L = rng.lognormal(size=(k, m))
    np.fill_diagonal(L, 0)
    return L / L.max()


def hamming(T):
    bits = (np.arange(2**T)[:, None] >> np.arange(T)) & 1
    return (bits[:, None] != bits).mean(axis=2)


def blocks(sizes):
    member = np.repeat(np.arange(len(sizes)), sizes)
    return (member[:, None] != member).astype(float)


@pytest.mark.parametrize("draw", [uniform, integers, duplicates, zero_diagonal])
@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (5, 3), (4, 4), (6, 6)])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_the_definition_over_all_pairs(draw, shape, weighted):
    rng = np.random.default_rng([*shape, weighted])
    L = draw(rng, *shape)
    mu = rng.random(shape[0]) + 0.1 if weighted else None
    max_eps = (L.max(axis=0) - L.min(axis=0)).max()
    # Off the degenerate value max_eps, where Clarabel has no Slater point to hold on to.
    eps = max_eps * np.array([0.99, 0.25, 0.5, 0.8])
    curve = explicit_curve(L, eps, mu=mu)
    verify(L, curve)
    assert curve.status == ("certified",) * eps.size
    for position, value in enumerate(eps):
        expected = all_pairs(L, curve.weights, value)
        assert curve.scaled_upper[position] == pytest.approx(expected, rel=RELATIVE, abs=1e-10)
        assert curve.scaled_lower[position] <= expected * (1 + RELATIVE) + 1e-10


@pytest.mark.parametrize("seed", range(20))
def test_no_feasible_point_goes_below_the_lower_end(seed):
    # Any q and t give scores f_j = t, f_c = min(−ℓ_c, t): a point of the raw definition.
    rng = np.random.default_rng(seed)
    k, m = rng.integers(2, 7, 2)
    L = rng.integers(0, 5, (k, m)) * rng.choice([1.0, 0.37])
    max_eps = (L.max(axis=0) - L.min(axis=0)).max()
    eps = np.linspace(0.05, 1, 12) * max_eps
    curve = explicit_curve(L, eps)
    for _ in range(2000):
        expected = L @ rng.dirichlet(np.full(m, 0.3))
        j = rng.integers(k)
        excess = expected[j] - expected.min()
        t = -rng.uniform(expected.min(), expected[j]) if excess > 0 else -expected[j]
        f = np.minimum(-expected, t)
        f[j] = t
        value = 0.5 * ((f + expected) ** 2).sum()
        assert (curve.scaled_lower[eps <= excess] <= value).all()


@pytest.mark.parametrize("k", [2, 3, 17])
def test_zero_one(k):
    eps = np.linspace(0, 1, 11)
    curve = explicit_curve(1 - np.eye(k), eps)
    np.testing.assert_allclose(curve.scaled_upper, eps**2 / 4, rtol=1e-9)
    np.testing.assert_allclose(curve.scaled_lower, eps**2 / 4, rtol=1e-9)


@pytest.mark.parametrize("sizes", [(2, 2), (3, 3, 3), (2, 5), (4, 3, 2), (1, 4)])
def test_blocks(sizes):
    eps = np.linspace(0.1, 1, 7)
    curve = explicit_curve(blocks(sizes), eps)
    expected = eps**2 / 4 * min(2 * s / (s + 1) for s in sizes)
    np.testing.assert_allclose(curve.scaled_upper, expected, rtol=1e-8)
    np.testing.assert_allclose(curve.scaled_lower, expected, rtol=1e-6)


@pytest.mark.parametrize("eta", [0.1, 0.3, 0.45, 0.6])
@pytest.mark.parametrize(("b", "s"), [(2, 2), (3, 3), (2, 4)])
def test_mixed(eta, b, s):
    k = b * s
    eps = np.linspace(0.05, 1, 14)
    curve = explicit_curve(eta * (1 - np.eye(k)) + (1 - eta) * blocks((s,) * b), eps)
    flat = eps**2 / 4
    bent = eps**2 * s / (2 * (s + 1)) - eta * (eps + 1) * (s - 1) * (2 * eps - eps * eta - eta) / (
        4 * (s + 1)
    )
    expected = np.where((eta >= 0.5) | (eps <= eta / (1 - eta)), flat, bent)
    np.testing.assert_allclose(curve.scaled_upper, expected, rtol=1e-8)
    np.testing.assert_allclose(curve.scaled_lower, expected, rtol=1e-6)


def hamming_full(T, eps):
    """MATH's formula for k·H of the Hamming loss with full scores: convex in x for every d."""

    def objective(x, d):
        return (eps - x) ** 2 + sum(
            comb(d, a) * comb(T - d, n) * max(x - a * eps / d - n / T, 0.0) ** 2
            for a in range(d + 1)
            for n in range(T - d + 1)
        )

    return 0.5 * min(
        minimize_scalar(
            objective, bounds=(0, eps), args=(d,), method="bounded", options={"xatol": 1e-12}
        ).fun
        for d in range(max(ceil(eps * T - 1e-12), 1), T + 1)
    )


@pytest.mark.parametrize("T", [1, 2, 3, 4])
def test_hamming(T):
    eps = np.array([0.2, 0.5, 0.6, 0.7, 0.75, 0.9, 1.0])
    curve = explicit_curve(hamming(T), eps)
    expected = [hamming_full(T, value) for value in eps]
    np.testing.assert_allclose(curve.scaled_upper, expected, rtol=1e-8)
    np.testing.assert_allclose(curve.scaled_lower, expected, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_integer_losses_up_to_the_largest_eps(seed):
    rng = np.random.default_rng(seed)
    L = rng.integers(0, 10, (24, 24)).astype(float)
    np.fill_diagonal(L, 0)
    eps = np.linspace(0, L.max(), 37)
    curve = explicit_curve(L, eps)
    assert curve.max_eps == eps[-1]
    assert set(curve.status) == {"certified"}
    assert np.isfinite(curve.scaled_upper).all()
    verify(L, curve)


def test_degenerate_largest_eps_against_restricted_true_labels():
    # At ε = max_y d_y only true labels with d_y = ε remain; the program over those has a Slater
    # point.
    L = np.array([[0.0, 0, 1, 2], [3, 3, 0, 1], [1, 2, 3, 0], [2, 0, 2, 2]])
    curve = explicit_curve(L, [3.0])
    expected = min(
        least_excess(L[:, L[j] - L[i] >= 3], np.ones(4), j)
        for i in range(4)
        for j in range(4)
        if (L[j] - L[i]).max() >= 3
    )
    assert curve.scaled_upper[0] == pytest.approx(expected, rel=1e-7)
    assert curve.scaled_lower[0] == pytest.approx(expected, rel=1e-6)


def test_weights_scale_and_order_do_not_matter_where_they_should_not():
    rng = np.random.default_rng(5)
    L = rng.random((7, 9))
    eps = np.array([0.9, 0.3, 0.7, 0.3]) * (L.max(axis=0) - L.min(axis=0)).max()
    curve = explicit_curve(L, eps)
    assert curve.scaled_upper[1] == curve.scaled_upper[3]
    rows, columns = rng.permutation(7), rng.permutation(9)
    shuffled = explicit_curve(L[rows][:, columns] + 1.5, eps, jobs=2)
    np.testing.assert_allclose(shuffled.scaled_upper, curve.scaled_upper, rtol=2e-6)
    tiny = explicit_curve(L * 1e-60, eps * 1e-60)
    np.testing.assert_allclose(tiny.scaled_upper * 1e120, curve.scaled_upper, rtol=2e-6)
    equal = explicit_curve(L, eps, mu=np.full(7, 3.0))
    np.testing.assert_allclose(equal.scaled_upper, curve.scaled_upper, rtol=2e-6)


@pytest.mark.parametrize(
    "L",
    [
        np.zeros((3, 4)),
        np.ones((1, 5)),
        np.full((4, 1), 2.0),
        np.tile(np.arange(5.0), (3, 1)),  # constant columns
    ],
    ids=["zero", "one prediction", "one true label, equal losses", "constant columns"],
)
def test_losses_without_any_excess_are_infinite_above_zero(L):
    curve = explicit_curve(L, [0.0, 0.5])
    assert curve.max_eps == 0
    assert curve.scaled_lower.tolist() == [0, np.inf]
    assert curve.scaled_upper.tolist() == [0, np.inf]
    assert curve.pair.tolist() == [[-1, -1], [-1, -1]]
    assert curve.status == ("certified", "certified")
    verify(L, curve)


def test_one_true_label():
    # q is fixed: predicting 2 costs ½ min_t (t + 3)² + (t + 1)₋² + t₋², t = −4/3.
    curve = explicit_curve(np.array([[0.0], [1.0], [3.0]]), [2.5, 3.0])
    expected = 0.5 * ((5 / 3) ** 2 + (1 / 3) ** 2 + (4 / 3) ** 2)
    np.testing.assert_allclose(curve.scaled_upper, [expected, expected], rtol=1e-12)


def test_above_the_largest_eps_is_infinite():
    curve = explicit_curve(1 - np.eye(3), [1.0, np.nextafter(1, 2)])
    assert np.isfinite(curve.scaled_upper[0])
    assert curve.scaled_lower[1] == np.inf


def test_a_width_out_of_reach_is_called_loose():
    L = np.random.default_rng(0).random((12, 12))
    curve = explicit_curve(L, np.linspace(0.5, 0.95, 10) * np.ptp(L, axis=0).max(), tolerance=1e-12)
    verify(L, curve)
    width = (curve.scaled_upper - curve.scaled_lower) / curve.scaled_upper
    expected = ["certified" if value <= 1e-12 else "loose" for value in width]
    assert list(curve.status) == expected
    assert (width < 1e-9).all()


@pytest.fixture(scope="module")
def example():
    L = np.random.default_rng(1).random((10, 10))
    np.fill_diagonal(L, 0)
    curve = explicit_curve(L, np.linspace(0, L.max() + 0.1, 12))
    return L, curve


def test_a_dual_point_proves_the_minimizing_pair_by_hand(example):
    L, curve = example
    for position in np.flatnonzero((curve.eps > 0) & (curve.eps <= curve.max_eps)):
        i, j = curve.pair[position]
        stored = curve.points.of_pair(i, j)
        w = np.vstack([np.eye(len(L))[i], curve.points.dense(stored, len(L))])  # Theorem 7 first
        nu = np.append(1.0, curve.points.nu[stored])
        reduced = w @ (L[j] - L) - nu[:, None] * (L[j] - L[i])
        Q = 0.5 * (w.sum(axis=1) ** 2 + (w**2).sum(axis=1))
        bounds = np.maximum(nu * curve.eps[position] + reduced.min(axis=1), 0.0) ** 2 / (4 * Q)
        assert bounds.max() == pytest.approx(curve.scaled_upper[position], rel=1e-6)


def raised_lower(curve, at):
    return replace(curve, scaled_lower=scaled(curve.scaled_lower, at, 1 + 1e-5))


def raised_interval(curve, at):
    return replace(
        curve,
        scaled_lower=scaled(curve.scaled_lower, at, 1 + 1e-5),
        scaled_upper=scaled(curve.scaled_upper, at, 1 + 1e-5),
    )


def lowered_upper(curve, at):
    return replace(
        curve,
        scaled_lower=scaled(curve.scaled_lower, at, 0.5),
        scaled_upper=scaled(curve.scaled_upper, at, 1 - 1e-5),
    )


def scaled(values, at, factor):
    values = values.copy()
    values[at] *= factor
    return values


def moved_distribution(curve, at):
    distributions = curve.distributions.copy()
    heavy = distributions[at].argmax()
    distributions[at, heavy] -= 1e-5
    distributions[at, (heavy + 1) % distributions.shape[1]] += 1e-5
    return replace(curve, distributions=distributions)


def negative_distribution(curve, at):
    return replace(curve, distributions=scaled(curve.distributions, at, -1.0))


def no_level(curve, at):
    return replace(curve, levels=scaled(curve.levels, at, np.nan))


def lowered_level(curve, at):
    levels = curve.levels.copy()
    levels[at] -= 1e-4
    return replace(curve, levels=levels)


def no_points(curve, at):
    return replace(curve, points=replace(curve.points, nu=0 * curve.points.nu))


def negative_points(curve, at):
    return replace(curve, points=replace(curve.points, nu=curve.points.nu - 1e6))


def finite_above(curve, at):
    return replace(curve, scaled_upper=np.where(curve.eps > curve.max_eps, 1.0, curve.scaled_upper))


def hidden_width(curve, at):
    return replace(curve, scaled_lower=scaled(curve.scaled_lower, at, 0.9))


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (raised_lower, "a lower end is above its upper end"),
        (raised_interval, "is bounded below by"),
        (lowered_upper, "the primal point has the value"),
        (moved_distribution, "excess|the primal point has the value"),
        (negative_distribution, "no probability distribution"),
        (no_level, "not finite"),
        (lowered_level, "the primal point has the value"),
        (no_points, "is bounded below by"),
        (finite_above, "is no pair of predictions"),
        (hidden_width, "is wider than the tolerance"),
    ],
)
def test_verify_rejects_what_is_not_proved(example, tamper, message):
    L, curve = example
    verify(L, curve)
    at = int(np.flatnonzero(curve.eps <= curve.max_eps)[-1])
    with pytest.raises(CertificateError, match=message):
        verify(L, tamper(curve, at))


def test_verify_rejects_a_raised_lower_end_of_a_loose_curve():
    # With a loose tolerance there is room between the ends: only the dual points can object.
    L = np.random.default_rng(1).random((10, 10))
    eps = np.array([0.9 * np.ptp(L, axis=0).max()])
    curve = explicit_curve(L, eps, tolerance=0.3)
    room = curve.scaled_upper[0] / curve.scaled_lower[0] - 1
    assert room > 2e-5
    with pytest.raises(CertificateError, match="is bounded below by"):
        verify(L, raised_lower(curve, 0))


def test_verify_rejects_negative_multipliers_and_other_losses(example):
    L, curve = example
    with pytest.raises(CertificateError, match="a dual point must be non-negative"):
        verify(L, negative_points(curve, 0))
    with pytest.raises(CertificateError, match="which do not fit 12 values of eps and L of shape"):
        verify(L[:, :5], curve)
    with pytest.raises(CertificateError, match="max_eps is"):
        verify(2 * L, curve)
    with pytest.raises(CertificateError, match="reference weights must be positive"):
        verify(L, replace(curve, weights=-curve.weights))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"L": [[0, -1]], "eps": [1]}, ValueError, "a negative cost at row 0, column 1"),
        ({"L": [[0, 1]], "eps": [-0.5]}, ValueError, "eps must be finite and non-negative"),
        ({"L": [[0, 1]], "eps": [np.nan]}, ValueError, "eps must be finite and non-negative"),
        ({"L": [[0, 1]], "eps": [[1]]}, ValueError, r"one-dimensional, got shape \(1, 1\)"),
        ({"L": [[0, 1]], "eps": ["a"]}, TypeError, "eps must contain numbers"),
        ({"L": [[0, 1]], "eps": [1], "jobs": 0}, ValueError, "jobs must be at least 1"),
        ({"L": [[0, 1]], "eps": [1], "tolerance": 0}, ValueError, "tolerance must be"),
        ({"L": [[0, 1]], "eps": [1], "mu": [1, 2]}, ValueError, "one weight per prediction"),
        ({"L": [[0], [1e200]], "eps": [1]}, ValueError, "multiply L and eps by a constant"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        explicit_curve(**arguments)


def test_threads_do_not_make_the_result_random():
    L = np.random.default_rng(4).lognormal(size=(20, 30))
    eps = np.linspace(0, 1, 21) * np.ptp(L, axis=0).max()
    first, second = (explicit_curve(L, eps, jobs=2) for _ in range(2))
    verify(L, first)
    np.testing.assert_array_equal(first.scaled_lower, second.scaled_lower)
    np.testing.assert_array_equal(first.scaled_upper, second.scaled_upper)
    np.testing.assert_array_equal(first.points.weights, second.points.weights)


def test_progress_counts_the_distinct_values():
    seen = []
    explicit_curve(1 - np.eye(3), [0.5, 0.5, 1.0, 2.0], progress=lambda *step: seen.append(step))
    assert seen == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.parametrize("seed", range(10))
def test_gauge_and_scores_solve_their_scalar_problem(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    j = int(rng.integers(k))
    p = rng.random(k) + 0.1
    expected = rng.random(k)
    expected[j] = expected.min() + rng.random()

    def value(t):
        f = np.minimum(-expected, t)
        f[j] = t
        return 0.5 * (p * (f + expected) ** 2).sum()

    reference = minimize_scalar(value, bounds=(-3, 1), method="bounded", options={"xatol": 1e-10})
    assert value(best_level(expected, p, j)) == pytest.approx(reference.fun, rel=1e-8)
    z = expected[j] - expected
    rows, w = np.empty(k, dtype=np.int64), np.empty(k)
    u, count, from_gauge = gauge(z, p, j, 5.0, rows, w)
    assert from_gauge == pytest.approx(reference.fun, rel=1e-8)
    assert u == pytest.approx(w[:count].sum() / p[j])


@pytest.mark.parametrize("seed", range(20))
def test_best_multiplier_solves_its_linear_program(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 9))
    cost = rng.normal(size=m)
    d = rng.integers(-3, 4, m).astype(float) if seed % 2 else rng.normal(size=m)
    eps = d.max() if seed % 3 == 0 else d.max() - rng.random()
    reference = linprog(cost, A_ub=-d[None], b_ub=[-eps], A_eq=np.ones((1, m)), b_eq=[1])
    value, mu, left, right, share = best_multiplier(cost, d, eps)
    assert value == pytest.approx(reference.fun, abs=1e-9)
    assert value == pytest.approx((cost - mu * d).min() + mu * eps, abs=1e-9)
    distribution = np.zeros(m)
    distribution[left] += share
    if right >= 0:
        distribution[right] += 1 - share
    assert cost @ distribution == pytest.approx(reference.fun, abs=1e-9)
    assert d @ distribution >= eps - 1e-9


def test_theorem_7_is_the_dual_point_at_i():
    rng = np.random.default_rng(3)
    L = rng.random((5, 4))
    p = rng.random(5) + 0.1
    eps = np.array([0.1, 0.4])
    bound = pair_lower_bounds(L, p, 2, np.array([4]), np.eye(5)[[4]], np.ones(1), eps)
    np.testing.assert_allclose(bound[0], eps**2 / (2 * (1 / p[2] + 1 / p[4])), rtol=1e-11)
