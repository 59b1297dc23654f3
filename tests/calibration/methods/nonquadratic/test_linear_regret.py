"""A surrogate of linear regret: H by definition, by formula, by proof, and without symmetry."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import consistruct as cs
from consistruct.calibration.methods.nonquadratic.mixed_decision import MixedDecisionSolver
from consistruct.calibration.proofs import from_json
from consistruct.calibration.proofs.smooth import TiesCertificate
from consistruct.exceptions import CertificateError
from consistruct.surrogates import LinearRegretSurrogate
from tests.calibration.methods.nonquadratic import brute_force
from tests.calibration.rational_pairs import ties_value


def curve(loss, **options):
    surrogate = LinearRegretSurrogate(loss, **options) if options else "linear-regret"
    return cs.calibration_function(loss, surrogate=surrogate)


@pytest.mark.parametrize("k", [2, 3, 5, 12])
@pytest.mark.parametrize("kappa", [1.0, 4.0])
def test_zero_one_formula_while_all_labels_can_tie(k, kappa):
    """All others tie with the best label, j has less by ε: ε/k + (ε²/2κ)(1 − 1/k), ε ≤ 1/(k−1)."""
    H = curve(cs.losses.ZeroOne(k), stiffness=kappa)
    for eps in (1e-3, 0.4 / (k - 1), 1 / (k - 1)):
        expected = eps / k + eps**2 / (2 * kappa) * (1 - 1 / k)
        lower, upper = H.interval(eps)
        assert lower <= expected * (1 + 1e-9)
        assert upper >= expected * (1 - 1e-9)
        assert upper - lower <= 1e-7 * expected
        H.certificate(eps).check()
    assert H.consistency_level == 0


def test_the_minimum_that_the_excess_refers_to_is_the_minimum():
    rng = np.random.default_rng(0)
    for _ in range(5):
        L, q = rng.random((4, 3)), rng.dirichlet(np.ones(3))

        def excess(f, L=L, q=q):
            return brute_force.excess_linear_regret(L, q, f, 0.7)

        found = minimize(excess, rng.normal(size=4))
        assert found.fun == pytest.approx(0.0, abs=1e-8)


def test_it_agrees_with_multistart():
    rng = np.random.default_rng(1)
    for shape in ((3, 3), (3, 2)):
        L = rng.random(shape)
        H = curve(cs.losses.CostMatrix(L, rows="pred"))
        for share in (0.1, 0.8):
            eps = share * H.max_eps

            def excess(L, q, f):
                return brute_force.excess_linear_regret(L, q, f, L.max())

            found = brute_force.multistart(excess, L, eps, lambda f: f, rng, starts=4)
            lower, upper = H.interval(eps)
            assert found >= lower - 1e-9
            assert found <= upper * (1 + 2e-3)
            H.certificate(eps).check()


def test_it_is_never_undercut_by_random_points():
    rng = np.random.default_rng(2)
    L = rng.random((4, 4))
    np.fill_diagonal(L, 0)
    H = curve(cs.losses.CostMatrix(L, rows="pred"))
    eps = 0.4 * H.max_eps
    best = np.inf
    for _ in range(4000):
        q = rng.dirichlet(np.full(4, rng.choice([0.3, 1.0, 5.0])))
        # scores whose mixed decision spreads over several labels, exactly tied or nearly
        f = rng.dirichlet(np.ones(4)) - (L @ q + rng.choice([0.0, 0.1]) * rng.normal(size=4))
        if (L @ q)[f.argmax()] - (L @ q).min() >= eps:
            best = min(best, brute_force.excess_linear_regret(L, q, f, L.max()))
    assert best >= H(eps) - 1e-9


@pytest.mark.parametrize(
    "loss",
    [cs.losses.Block((2, 3)), cs.losses.Mixed((2, 2), 0.3), cs.losses.Abstain(4, 0.3)],
    ids=repr,
)
def test_symmetry_changes_nothing(loss):
    class Plain(MixedDecisionSolver):
        @property
        def _swaps(self):
            return np.arange(len(self.L))

        @property
        def limits(self):
            limits = np.stack([(self.L - row).max(axis=1) for row in self.L])
            np.fill_diagonal(limits, -np.inf)
            return limits

    L = loss.matrix()
    reduced, plain = MixedDecisionSolver(L, 1.0), Plain(L, 1.0)
    eps = 0.3
    values = []
    for solver in (reduced, plain):
        pairs = np.argwhere(solver.limits >= eps).tolist()
        proofs = [solver.solve(i, j, eps, np.inf) for i, j in pairs]
        values.append((min(p.lower for p in proofs), min(p.upper for p in proofs)))
    assert values[0] == pytest.approx(values[1], rel=1e-7)
    assert len(np.argwhere(reduced.limits >= eps)) <= len(np.argwhere(plain.limits >= eps))


@pytest.mark.parametrize(
    "loss",
    [
        cs.losses.ZeroOne(4),
        cs.losses.Ordinal(4),
        cs.losses.CostMatrix([[0, 5, 1], [2, 0, 2], [1, 9, 0]], rows="pred"),
        cs.losses.Hamming(2),
    ],
    ids=repr,
)
def test_regret_is_linear_where_others_have_squares(loss):
    linear = curve(loss)
    small = 1e-3 * linear.max_eps
    assert linear(small) >= small / loss.n_labels
    assert linear(small) >= 0.45 * linear(2 * small)  # halving ε halves H …
    for name in ("quadratic", "logistic"):
        H = cs.calibration_function(loss, surrogate=name)
        assert H(small) <= 0.26 * H.interval(2 * small)[1]  # … and quarters it elsewhere


def test_beyond_the_limit_a_bound_with_its_reason():
    loss = cs.losses.Ordinal(9)
    H = curve(loss)
    (point,) = H.curve([2.0])
    assert point.status == "bounds"
    assert "sets of tied labels" in H.method
    assert point.lower == pytest.approx(2 / 9 + 4 / (4 * 8))
    assert point.lower <= point.upper
    # the same bounds on a size that is solved
    small = cs.losses.Ordinal(4)
    lower, upper = curve(small).interval(2.0)
    assert upper >= 2 / 4 + 4 / (4 * 3)
    assert lower > 0


def test_false_proofs_are_refused():
    H = curve(cs.losses.Ordinal(3))
    good = H.certificate(1.0)
    assert isinstance(good, TiesCertificate)
    good.check()
    from_json(good.to_json()).check()
    with pytest.raises(CertificateError, match="is bounded by"):
        replace(good, lower=good.upper * 1.0001).check()
    with pytest.raises(CertificateError, match="above upper"):
        replace(good, upper=good.lower * 0.9999).check()
    first, *others = good.pairs
    fewer = {**first, "boxes": first["boxes"][:-1]}  # sets of tied labels that nothing bounds
    with pytest.raises(CertificateError, match="in no box"):
        replace(good, pairs=[fewer, *others]).check()
    with pytest.raises(CertificateError, match="is not proved"):
        replace(good, pairs=[]).check()
    box = {**first["boxes"][0], "low": [0] * len(first["boxes"][0]["low"])}
    with pytest.raises(CertificateError, match="must contain j"):
        replace(good, pairs=[{**first, "boxes": [box]}, *others]).check()


def test_two_labels_agree_with_the_formula_exactly():
    rng = np.random.default_rng(31)
    for _ in range(20):
        L = rng.integers(0, 6, (2, 3)).astype(float) * 10.0 ** float(rng.choice([0, 3, -3]))
        H = curve(cs.losses.CostMatrix(L, rows="pred"))
        if H.max_eps == 0:
            continue
        eps = float(rng.choice([1e-3, 0.3, 1.0])) * H.max_eps
        found: Any = H.certificate(eps)
        found.check()
        loss = tuple(tuple(Fraction(x) for x in row) for row in L.tolist())
        true_value = ties_value(Fraction(found.kappa), loss, Fraction(eps))
        assert Fraction(found.lower) <= true_value <= Fraction(found.upper)


def test_settings():
    loss = cs.losses.ZeroOne(3)
    assert LinearRegretSurrogate(loss).kappa == 1.0
    assert LinearRegretSurrogate(loss, stiffness=2).kappa == 2.0
    with pytest.raises(ValueError, match="stiffness must be"):
        LinearRegretSurrogate(loss, stiffness=0.0)
    with pytest.raises(ValueError, match="only 'log' and 'sparsemax' estimate a distribution"):
        cs.calibration_function(loss, surrogate="linear-regret", decoding="bayes")
