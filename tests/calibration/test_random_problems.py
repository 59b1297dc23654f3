"""Random small problems against the definition: an independent solver, and a random search."""

from __future__ import annotations

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.losses import CostMatrix
from consistruct.structures import Dense
from tests.calibration.reference import (
    definition_value,
    excess_of,
    predictable_by_definition,
    random_problem,
)

pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")


def assert_contains_the_definition(seed, shares):
    L, F, mu = random_problem(seed)
    curve = calibration_function(CostMatrix(L, rows="pred"), Dense(F, reference=mu))
    weights = np.full(len(L), 1 / len(L)) if mu is None else mu
    predictable = predictable_by_definition(F)
    spread = L[predictable].max(axis=0) - L[predictable].min(axis=0)
    assert curve.max_eps == pytest.approx(spread.max(), abs=1e-12)
    if curve.max_eps == 0:
        assert curve(0.1) == np.inf
        return
    for share in shares:
        eps = share * curve.max_eps
        (point,) = curve.curve(eps)
        assert point.status in ("certified", "rounding")
        expected = definition_value(L, F, weights, eps)
        slack = 1e-6 * expected + 1e-9  # of the other solver
        assert point.lower <= expected + slack
        assert point.upper >= expected - slack
        assert point.lower <= point.upper
        curve.certificate(eps).check()


@pytest.mark.parametrize("seed", range(40))
def test_interval_contains_the_definition(seed):
    share = (0.15, 0.4, 0.75, 1.0)[seed % 4]
    assert_contains_the_definition(seed, [share])


@pytest.mark.parametrize("seed", range(12))
def test_random_search_stays_above(seed):
    """Random q and θ, decoded with the tie rule: no excess risk of ε is cheaper than H(ε)."""
    L, F, mu = random_problem(seed + 5000)
    weights = np.full(len(L), 1 / len(L)) if mu is None else mu
    curve = calibration_function(CostMatrix(L, rows="pred"), Dense(F, reference=mu))
    predictable = predictable_by_definition(F)
    rng = np.random.default_rng(seed)
    S = np.sqrt(weights)[:, None]
    # θ of least surrogate risk, per true label
    optimal = -np.linalg.lstsq(S * F, S * L, rcond=None)[0]
    grid = np.linspace(0.0, max(curve.max_eps, 1e-9), 9)
    lower = curve(grid)
    seen = 0
    for _ in range(600):
        q = rng.dirichlet(np.full(L.shape[1], rng.choice([0.1, 1.0])))
        theta = optimal @ q + rng.standard_normal(F.shape[1]) * rng.choice([0.0, 0.02, 0.1, 0.5])
        predicted = int(np.argmax(F @ theta))
        expected = L @ q
        excess_task = expected[predicted] - expected[predictable].min()
        excess_surrogate = excess_of(L, F, weights, theta, q)
        reached = grid <= excess_task - 1e-12
        assert (lower[reached] <= excess_surrogate + 1e-12).all()
        seen += int(reached[1:].any())
    assert seen > 0 or curve.max_eps == 0


@pytest.mark.parametrize("scale", [1e-12, 1e-5, 1e7])
def test_homogeneous_of_degree_two(scale):
    rng = np.random.default_rng(3)
    L, F = rng.random((4, 4)), rng.standard_normal((4, 2))
    base, scaled = (
        calibration_function(CostMatrix(L, rows="pred"), F),
        calibration_function(CostMatrix(L * scale, rows="pred"), F),
    )
    assert scaled.max_eps == pytest.approx(base.max_eps * scale, rel=1e-12)
    for share in (0.6, 1.0):
        low, high = base.interval(share * base.max_eps)
        (point,) = scaled.curve(share * scaled.max_eps)
        assert point.status == "certified"
        assert point.lower == pytest.approx(low * scale**2, rel=1e-5)
        assert point.upper == pytest.approx(high * scale**2, rel=1e-5)
    certificate = scaled.certificate(0.9 * scaled.max_eps)
    certificate.check()
    assert isinstance(certificate, ListedCertificate)
    assert sum(certificate.distribution) == 1
