"""Calibration functions of other surrogates: closed forms, brute force, certificates, statuses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.special import kl_div, softmax

import consistruct as cs
from consistruct.calibration.methods.nonquadratic.closed import bracket
from consistruct.calibration.methods.nonquadratic.divergence import DivergenceSolver
from consistruct.calibration.methods.nonquadratic.divergence_argmax import largest_mean
from consistruct.calibration.methods.nonquadratic.pairs import PairsCertificate
from consistruct.exceptions import CapabilityError, CertificateError, ConsistructError
from consistruct.surrogates import SURROGATES, ABSurrogate, BaseSurrogate
from tests.calibration.methods.nonquadratic import brute_force

EPS = (0.05, 0.4, 0.8, 1.0)


def zero_one(k):
    return cs.losses.CostMatrix(1 - np.eye(k))


def bracket_directly(e):
    rest = (1 - e) * math.log(1 - e) if e < 1 else 0.0
    return (1 + e) * math.log(1 + e) + rest


FORMULAS = {
    "logistic": lambda e, k: bracket_directly(e) / k,
    "exponential": lambda e, k: 2 / k * (1 - math.sqrt(1 - e**2)),
    "log": lambda e, k: bracket_directly(e) / 2,
    "sparsemax": lambda e, k: e**2 / 4,
}


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("surrogate", FORMULAS)
def test_zero_one_solved_numerically_agrees_with_the_formula(surrogate, k):
    H = cs.calibration_function(zero_one(k), surrogate=surrogate)
    for eps in EPS:
        expected = FORMULAS[surrogate](eps, k)
        lower, upper = H.interval(eps)
        assert lower <= expected * (1 + 1e-12) <= upper * (1 + 1e-11)
        assert upper - lower <= 1e-7 * expected
        H.certificate(eps).check()
    assert H.consistency_level == 0
    # functions of a surrogate of one's own are known in floats only, and so are these
    expected_status = "numerical" if surrogate == "exponential" else "certified"
    assert H.curve([0.4])[0].status == expected_status


@pytest.mark.parametrize("surrogate", FORMULAS)
def test_zero_one_closed_form_at_any_size(surrogate):
    for k in (2, 7, 10**6):
        H = cs.calibration_function(cs.losses.ZeroOne(k), surrogate=surrogate)
        for eps in EPS:
            assert H(eps) == pytest.approx(FORMULAS[surrogate](eps, k), rel=1e-12)
        assert H.curve([0.4])[0].status == "exact"
    huge = cs.calibration_function(cs.losses.ZeroOne(10**400), surrogate="logistic")
    assert huge.log(0.5) == pytest.approx(math.log(bracket_directly(0.5)) - 400 * math.log(10))


def test_the_bracket_keeps_its_digits():
    assert float(bracket(1e-8)) == pytest.approx(1e-16, rel=1e-14)
    for eps in (0.099999, 0.1, 0.100001):
        assert float(bracket(eps)) == pytest.approx(bracket_directly(eps), rel=1e-12)


def test_closed_forms_are_rounded_outward():
    """The value to 80 digits, by another library, lies between the ends; they are neighbors."""
    formulas = {
        "logistic": lambda e: ((1 + e) * mpmath.log(1 + e) + (1 - e) * mpmath.log(1 - e)) / 7,
        "exponential": lambda e: 2 * (1 - mpmath.sqrt(1 - e * e)) / 7,
        "log": lambda e: ((1 + e) * mpmath.log(1 + e) + (1 - e) * mpmath.log(1 - e)) / 2,
        "sparsemax": lambda e: e * e / 4,
    }
    for surrogate, formula in formulas.items():
        H = cs.calibration_function(cs.losses.ZeroOne(7), surrogate=surrogate)
        for eps in (0.7, 0.3, 1e-4, 1e-12):
            lower, upper = H.interval(eps)
            with mpmath.workdps(80):
                true_value = formula(mpmath.mpf(eps))
                assert mpmath.mpf(lower) <= true_value <= mpmath.mpf(upper)
            assert upper <= lower * (1 + 1e-15)


@pytest.mark.parametrize(("T", "s"), [(1, 2), (2, 2), (1, 3)])
def test_independent_parts_on_hamming_agree_with_a_search_over_product_distributions(T, s):
    """Σ_t of the 0-1 curve over all ways to share the excess risk among the parts, on a grid."""
    H = cs.calibration_function(cs.losses.Hamming(T, s), surrogate="log")
    eps = 0.5
    grid = np.linspace(0, 1, 201)
    per_part = np.array([bracket_directly(e) / 2 for e in grid])
    best = per_part[:, None] + per_part[None] if T == 2 else per_part[:, None]
    excess = (grid[:, None] + grid[None]) / 2 if T == 2 else grid[:, None]
    assert best[excess >= eps - 1e-12].min() == pytest.approx(H(eps), rel=1e-12)
    # one part is the 0-1 loss over s states, which the numerical method solves
    single = cs.calibration_function(zero_one(s), surrogate="log")
    assert single(eps) * T == pytest.approx(H(eps), rel=1e-7)


def test_independent_parts_grow_with_the_number_of_parts():
    H = cs.calibration_function(cs.losses.Hamming(1000, 26), surrogate="log")
    assert H(0.25) == pytest.approx(500 * bracket_directly(0.25), rel=1e-12)
    assert H.max_eps == 1


def test_crammer_singer_over_three_classes():
    H = cs.calibration_function(cs.losses.ZeroOne(3), surrogate="hinge")
    assert H.consistency_level == pytest.approx(0.5, abs=1e-9)
    for eps in (0.1, 0.3, 0.5):
        assert H.interval(eps) == (0.0, 0.0)
    for eps in (0.55, 0.7, 1.0):
        lower, upper = H.interval(eps)
        assert lower == pytest.approx(2 * eps - 1, abs=1e-9)
        assert upper == pytest.approx(2 * eps - 1, abs=1e-9)
        H.certificate(eps).check()


def test_the_witness_of_crammer_singer_is_one():
    """Under the witness all-equal scores are optimal for the hinge, and j is worse by ½."""
    H = cs.calibration_function(cs.losses.ZeroOne(3), surrogate="hinge")
    witness, L = H.witness, 1 - np.eye(3)
    assert witness.pair is not None
    assert witness.distribution is not None
    i, j = witness.pair
    assert (L @ witness.distribution)[j] - (L @ witness.distribution)[i] == pytest.approx(0.5)
    least = brute_force.optimal_hinge(L, witness.distribution, 3)
    assert witness.distribution @ L.max(axis=0) == pytest.approx(least)


def test_two_classes_make_the_hinge_consistent():
    H = cs.calibration_function(cs.losses.ZeroOne(2), surrogate="hinge")
    assert H.consistency_level == 0
    assert H(0.6) == pytest.approx(0.6)


def random_losses(seed, n, shape=(3, 3), diagonal=False):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        L = rng.random(shape)
        if diagonal:
            np.fill_diagonal(L, 0)
        yield L, rng


def assert_agrees(H, eps, found, relative=1e-4):
    """The search is an upper bound; it must not undercut the lower one, and comes close."""
    lower, upper = H.interval(eps)
    assert found >= lower - 1e-9
    assert found <= upper * (1 + relative) + 1e-7


@pytest.mark.parametrize("surrogate", ["logistic", "exponential"])
def test_ab_agrees_with_multistart(surrogate):
    for L, rng in random_losses(1, 2):
        H = cs.calibration_function(cs.losses.CostMatrix(L, rows="pred"), surrogate=surrogate)
        for share in (0.3, 0.8):
            eps = share * H.max_eps
            found = brute_force.multistart(
                lambda L, q, f: brute_force.excess_ab(surrogate, L, q, f),
                L, eps, lambda f: f, rng,
            )  # fmt: skip
            assert_agrees(H, eps, found)
            H.certificate(eps).check()


@pytest.mark.parametrize("decoding", ["argmax", "bayes"])
def test_log_loss_agrees_with_multistart(decoding):
    for L, rng in random_losses(2, 2, diagonal=True):
        H = cs.calibration_function(
            cs.losses.CostMatrix(L, rows="pred"), surrogate="log", decoding=decoding
        )
        level = H.consistency_level
        assert (level == 0) == (decoding == "bayes")

        def decoded(scores, L=L):
            return scores if decoding == "argmax" else -L @ softmax(scores)

        for share in (0.3, 0.8):
            eps = level + share * (H.max_eps - level)
            found = brute_force.multistart(brute_force.excess_log, L, eps, decoded, rng)
            assert_agrees(H, eps, found)
            H.certificate(eps).check()


def test_a_kink_at_the_threshold_does_not_stop_the_proof():
    """The optimum has an expected loss equal to τ, where the set of active terms changes."""
    L = np.array([[0, 2, 2, 2], [0, 1, 1, 2], [2, 0, 0, 2], [1, 2, 1, 0]], dtype=float)
    H = cs.calibration_function(cs.losses.CostMatrix(L, rows="pred"), surrogate="logistic")
    (point,) = H.curve([0.4472131081914684])
    assert point.status == "certified"
    H.certificate(point.eps).check()


def test_rectangular_losses_have_bayes_decoding():
    L = np.array([[0.0, 1.0, 2.0, 0.5], [1.0, 0.0, 1.0, 0.7]])
    rng = np.random.default_rng(3)
    H = cs.calibration_function(
        cs.losses.CostMatrix(L, rows="pred"), surrogate="log", decoding="bayes"
    )
    found = brute_force.multistart(
        brute_force.excess_log, L, 0.5, lambda t: -L @ softmax(t), rng, 2, n_scores=4
    )
    assert_agrees(H, 0.5, found)


@pytest.mark.parametrize("surrogate", ["hinge", "max-min-margin"])
def test_polyhedral_surrogates_are_never_undercut(surrogate):
    excess = {"hinge": brute_force.excess_hinge, "max-min-margin": brute_force.excess_max_min}
    for L, rng in random_losses(4, 2, diagonal=True):
        H = cs.calibration_function(cs.losses.CostMatrix(L, rows="pred"), surrogate=surrogate)
        for share in (0.4, 0.9):
            eps = share * H.max_eps
            found = brute_force.random_search(excess[surrogate], L, eps, rng, n=400)
            assert found >= H(eps) - 1e-8


@pytest.mark.parametrize("surrogate", ["hinge", "max-min-margin"])
def test_polyhedral_values_are_attained(surrogate):
    """The certificate's distribution with the best scores for it, by a linear program."""
    for L, _ in random_losses(5, 2, diagonal=True):
        H = cs.calibration_function(cs.losses.CostMatrix(L, rows="pred"), surrogate=surrogate)
        eps = 0.5 * (H.consistency_level + H.max_eps)
        certificate: Any = H.certificate(eps)
        certificate.check()
        i, j = certificate.pair
        q = np.array(certificate.probabilities)
        assert (L @ q)[j] - (L @ q)[i] >= eps - 1e-8
        assert constrained_optimum(surrogate, L, q, j) == pytest.approx(H(eps), abs=1e-7)


def constrained_optimum(surrogate, L, q, j):
    """min over scores with f_j largest of the excess under q, by a linear program."""
    k = len(L)
    order = np.delete(np.eye(k) - np.eye(k)[j], j, axis=0)
    if surrogate == "hinge":
        rows = [np.concatenate([np.eye(k)[c], -np.eye(k)[y]]) for y in range(k) for c in range(k)]
        found = linprog(
            np.concatenate([-q, q]),
            A_ub=np.vstack([np.array(rows), np.hstack([order, np.zeros((k - 1, k))])]),
            b_ub=np.concatenate([-L.T.ravel(), np.zeros(k - 1)]),
            bounds=[(None, None)] * (2 * k),
        )
        return found.fun - brute_force.optimal_hinge(L, q, k)
    # max_p min_c (Lp)_c + v·p as its dual: min t s.t. t ≥ (αᵀL)_y + v_y, α a distribution
    # variables v, α, t: Ω*(v) − v·q with v_j ≥ v_c
    rows = [np.concatenate([np.eye(k)[y], L[:, y], [-1.0]]) for y in range(k)]
    found = linprog(
        np.concatenate([-q, np.zeros(k), [1.0]]),
        A_ub=np.vstack([np.array(rows), np.hstack([order, np.zeros((k - 1, k + 1))])]),
        b_ub=np.zeros(2 * k - 1),
        A_eq=np.concatenate([np.zeros(k), np.ones(k), [0.0]])[None],
        b_eq=[1.0],
        bounds=[(None, None)] * k + [(0, None)] * k + [(None, None)],
    )
    return found.fun - (L @ q).min()


def test_functions_given_by_the_user_agree_with_the_quadratic_engine():
    """Without closed forms, thus through bisection and the search over intervals of τ."""

    class Squares(ABSurrogate):
        def a(self, f):
            return f, np.ones_like(f)

        def b(self, f):
            return f**2 / 2, f

    for L, _ in random_losses(6, 1, (2, 3)):
        loss = cs.losses.CostMatrix(L, rows="pred")
        mine = cs.calibration_function(loss, surrogate=Squares)
        exact = cs.calibration_function(loss, "full")
        for share in (0.5, 1.0):
            eps = share * exact.max_eps
            lower, upper = mine.interval(eps)
            assert lower <= exact(eps) * (1 + 1e-6)
            assert upper >= exact(eps) * (1 - 1e-6)
            assert upper - lower <= 1e-5 * upper
            mine.certificate(eps).check()


def test_sparsemax_agrees_with_another_solver():
    cvxpy = pytest.importorskip("cvxpy")
    for L, _ in random_losses(7, 2, (3, 4)):
        H = cs.calibration_function(
            cs.losses.CostMatrix(L, rows="pred"), surrogate="sparsemax", decoding="bayes"
        )
        eps = 0.5 * H.max_eps
        values = []
        for j in range(3):
            for i in range(3):
                if i == j or (L[j] - L[i]).max() < eps:
                    continue
                q, p = cvxpy.Variable(4), cvxpy.Variable(4)
                constraints = [q >= 0, p >= 0, cvxpy.sum(q) == 1, cvxpy.sum(p) == 1]
                constraints += [(L[j] - L[i]) @ q >= eps, (L[j] - L) @ p <= 0]
                problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(q - p)), constraints)
                problem.solve(solver="CLARABEL")
                values.append(problem.value if problem.status == "optimal" else np.inf)
        assert H(eps) == pytest.approx(min(values), rel=1e-6)


def slow_distribution_pair(divergence, L, i, j, eps, decoding):
    """One pair by another solver, all order constraints at once."""
    cvxpy = pytest.importorskip("cvxpy")
    k, m = L.shape
    q, p = cvxpy.Variable(m), cvxpy.Variable(m)
    order = L[j] - L if decoding == "bayes" else np.eye(k) - np.eye(k)[j]
    constraints = [q >= 0, p >= 0, cvxpy.sum(q) == 1, cvxpy.sum(p) == 1, order @ p <= 0]
    constraints.append((L[j] - L[i]) @ q >= eps)
    squares = 0.5 * cvxpy.sum_squares(q - p)
    objective = squares if divergence == "squares" else cvxpy.sum(cvxpy.kl_div(q, p))
    problem = cvxpy.Problem(cvxpy.Minimize(objective), constraints)
    problem.solve(solver="CLARABEL")
    assert problem.status == "optimal"
    if divergence == "squares":
        return problem.value
    return kl_div(np.maximum(q.value, 0.0), np.maximum(p.value, 1e-14)).sum()


@pytest.mark.parametrize("decoding", ["argmax", "bayes"])
@pytest.mark.parametrize("divergence", ["KL", "squares"])
def test_generated_constraints_agree_with_all_of_them_at_once(divergence, decoding):
    """60 labels: most order constraints are never added, and the answer is the same."""
    rng = np.random.default_rng(10)
    L = rng.random((60, 60))
    np.fill_diagonal(L, 0)
    solver = DivergenceSolver(L, divergence, decoding)
    for i, j in ((0, 1), (17, 42)):
        eps = 0.3 if decoding == "bayes" else 0.85 * (L[j] - L[i]).max()
        proof = solver.solve(i, j, eps, math.inf)
        assert proof.upper - proof.lower <= 1e-7 * proof.upper
        slow = slow_distribution_pair(divergence, L, i, j, eps, decoding)
        assert proof.lower == pytest.approx(slow, rel=1e-5)
    if decoding == "bayes":
        assert len(solver._rows[1]) < 59


@pytest.mark.parametrize("decoding", ["argmax", "bayes"])
@pytest.mark.parametrize("surrogate", ["log", "sparsemax"])
def test_a_hundred_labels_are_certified(surrogate, decoding):
    loss = cs.losses.Ordinal(100)
    H = cs.calibration_function(loss, surrogate=surrogate, decoding=decoding)
    eps = 0.95 * H.max_eps  # few pairs reach it
    (point,) = H.curve([eps])
    assert point.status == "certified"
    assert point.upper - point.lower <= 1e-4 * point.upper
    H.certificate(eps).check()


def test_the_largest_mean_is_that_over_all_sets():
    rng = np.random.default_rng(14)
    for _ in range(20):
        values, j = rng.normal(size=6), int(rng.integers(6))
        found, chosen = largest_mean(values, j)
        every = [
            np.mean([values[c] for c in range(6) if (number >> c) & 1])
            for number in range(64)
            if (number >> j) & 1
        ]
        assert found == pytest.approx(max(every))
        assert values[chosen].mean() == pytest.approx(found)


def test_a_label_that_wins_ties_only_is_handled():
    """Label 0 is optimal on one face only; there KL(q‖p) is finite for q on the face alone."""
    loss = cs.losses.CostMatrix([[0, 1], [0, 0]], rows="pred")
    H = cs.calibration_function(loss, surrogate="log", decoding="bayes")
    assert H.max_eps == 0
    assert H(0.5) == math.inf


def test_false_certificates_are_refused():
    H = cs.calibration_function(zero_one(3), surrogate="exponential")
    good = H.certificate(0.75)
    assert isinstance(good, PairsCertificate)  # in floats: the checker knows no such functions
    good.check()
    with pytest.raises(CertificateError, match="lower bound"):
        replace(good, lower=good.lower * 1.01).check()
    with pytest.raises(CertificateError, match="upper bound"):
        replace(good, upper=good.upper * 0.99).check()


# --- statuses: what is not computed states it ---


@pytest.mark.parametrize("surrogate", ["logistic", "exponential", "log", "sparsemax", "hinge"])
def test_small_score_spaces_answer_with_bounds(surrogate):
    loss = cs.losses.Ordinal(5, 2)
    H = cs.calibration_function(loss, loss.score_space, surrogate=surrogate)
    (point,) = H.curve([8.0])
    assert point.status == "bounds"
    assert point.lower == 0
    assert point.upper > 0
    assert math.isnan(H.consistency_level)
    assert "only for the quadratic surrogate" in H.method
    with pytest.raises(ConsistructError, match="only bounds are known"):
        H.certificate(8.0)


def test_the_upper_bound_of_a_small_space_holds_within_it():
    """Log-linear scores Fθ: θ = 0 ties all labels; its excess is against the best θ."""
    F = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    L = np.abs(np.arange(4)[:, None] - np.arange(4)) ** 1.0
    H = cs.calibration_function(cs.losses.CostMatrix(L, rows="pred"), F, surrogate="log")
    eps, rng = 1.5, np.random.default_rng(0)
    found = math.inf
    for q in rng.dirichlet(np.full(4, 0.7), 400):
        if np.ptp(L @ q) >= eps:

            def risk(theta, q=q):
                return float(np.log(np.exp(F @ theta).sum()) - q @ F @ theta)

            found = min(found, math.log(4) - minimize(risk, np.zeros(2)).fun)
    (point,) = H.curve([eps])
    assert point.status == "bounds"
    assert point.lower <= found <= point.upper


def test_too_many_labels_answer_with_bounds_that_hold():
    big = cs.calibration_function(cs.losses.Hamming(8), surrogate="logistic")
    (point,) = big.curve([0.25])
    assert (point.status, point.upper) == ("bounds", math.inf)
    # the same formula on a size that is solved
    for L, _ in random_losses(8, 2):
        H = cs.calibration_function(cs.losses.CostMatrix(L, rows="pred"), surrogate="logistic")
        eps = 0.6 * H.max_eps
        assert H.interval(eps)[1] >= eps**2 / (3 * L.max() ** 2)
    bayes = cs.calibration_function(
        cs.losses.CostMatrix(1 - np.eye(110)), surrogate="log", decoding="bayes"
    )
    (point,) = bayes.curve([0.5])
    assert point.status == "bounds"
    assert point.lower == pytest.approx(0.125)
    assert point.lower <= bracket_directly(0.5) / 2 <= point.upper


@pytest.mark.parametrize("surrogate", ["log", "sparsemax"])
def test_bounds_under_bayes_decoding_hold(surrogate):
    """No measure on predictions enters the Bayes rule: a plain matrix is right."""
    loss = cs.losses.FBeta(3)
    exact = cs.calibration_function(
        cs.losses.CostMatrix(loss.matrix(), rows="pred"), None, surrogate, "bayes"
    )
    bounds = cs.calibration_function(loss, None, surrogate, "bayes")
    assert bounds.method.startswith("bounds")
    for eps in (0.1, 0.3, 0.6):
        low, high = bounds.interval(eps)
        assert low <= exact(eps) * (1 + 1e-9)
        assert exact.interval(eps)[1] <= high * (1 + 1e-9)


def test_what_is_for_the_quadratic_surrogate_only():
    H = cs.calibration_function(zero_one(3), surrogate="log")
    assert H.effective_classes is None
    with pytest.raises(ConsistructError, match="only the quadratic surrogate has quadratic pieces"):
        _ = H.pieces
    envelope = H.envelope(eps=np.linspace(0.0, 1.0, 9))
    assert envelope(0.5) <= H(0.5)
    assert envelope.inverse(0.0) >= 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"surrogate": "perceptron"}, ValueError, "surrogate must be one of quadratic, logistic"),
        ({"surrogate": 3}, TypeError, "surrogate must be a name .* or a surrogate class, got int"),
        ({"surrogate": "log", "decoding": "viterbi"}, ValueError, "decoding must be 'argmax' or"),
        ({"surrogate": "hinge", "decoding": "bayes"}, ValueError, "must be 'argmax' for the"),
        ({"decoding": "bayes"}, ValueError, "only 'log' and 'sparsemax' estimate a distribution"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        cs.calibration_function(cs.losses.ZeroOne(3), **arguments)


def test_surrogates_that_score_the_true_label_name_what_is_missing():
    loss = cs.losses.CostMatrix([[0, 1, 2], [1, 0, 1]], rows="pred")
    with pytest.raises(CapabilityError, match="true_label_as_prediction"):
        cs.calibration_function(loss, surrogate="hinge")
    with pytest.raises(ValueError, match="scores must be None or 'full' with Bayes decoding"):
        cs.calibration_function(loss, np.eye(2), surrogate="log", decoding="bayes")


def test_a_window_that_is_too_small_is_refused():
    class Narrow(ABSurrogate):
        window = (-3.0, 3.0)

        def a(self, f):
            return f, np.ones_like(f)

        def b(self, f):
            return np.logaddexp(0, -f), -1 / (1 + np.exp(f))

    with pytest.raises(ConsistructError, match="still falls at the end"):
        cs.calibration_function(zero_one(3), surrogate=Narrow)


# --- the registry ---


@pytest.mark.parametrize("name", SURROGATES)
def test_the_registry_tells_what_can_be_analyzed(name):
    entry = SURROGATES[name]
    assert entry.analyzed == (entry.cls.excess is not None)
    loss = cs.losses.CostMatrix([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    if entry.analyzed:
        by_name = cs.calibration_function(loss, surrogate=name)
        assert by_name.surrogate == name
        by_class = cs.calibration_function(loss, surrogate=entry.cls)
        assert by_class(1.0) == by_name(1.0)
    else:
        with pytest.raises(CapabilityError, match=r"'excess'.*analyzed are quadratic"):
            cs.calibration_function(loss, surrogate=name)


def test_square_is_the_quadratic_surrogate_with_full_scores():
    for L, _ in random_losses(9, 2):
        loss = cs.losses.CostMatrix(L, rows="pred")
        exact = cs.calibration_function(loss, "full")
        square = cs.calibration_function(loss, surrogate="square")
        for share in (0.3, 1.0):
            eps = share * exact.max_eps
            lower, upper = square.interval(eps)
            assert lower <= exact(eps) * (1 + 1e-9)
            assert upper >= exact(eps) * (1 - 1e-9)
            assert upper - lower <= 1e-6 * upper


def test_a_surrogate_object_is_taken_with_its_own_loss_and_scores():
    loss, other = cs.losses.Ordinal(3), cs.losses.Ordinal(4)
    built = cs.surrogates.LogisticSurrogate(loss)
    H = cs.calibration_function(loss, surrogate=built)
    assert H(1.0) == cs.calibration_function(loss, surrogate="logistic")(1.0)
    with pytest.raises(ValueError, match="was built for a different loss"):
        cs.calibration_function(other, surrogate=built)


def test_a_class_of_no_known_form_is_refused():
    class Perceptron(BaseSurrogate):
        def value_and_gradient(self, theta, true):
            raise NotImplementedError

    with pytest.raises(
        CapabilityError, match="derive it from ABSurrogate or DistributionSurrogate"
    ):
        cs.calibration_function(cs.losses.ZeroOne(3), surrogate=Perceptron)
