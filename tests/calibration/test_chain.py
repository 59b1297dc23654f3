"""Hamming loss with binary chain scores: flows, the dynamic program, and its certificates."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.calibration.methods.orbits.chain import ChainFlow, balanced, flow_value, snapped
from consistruct.calibration.methods.orbits.chain_bounds import chain_bounds, pair_bound
from consistruct.calibration.proofs import from_json
from consistruct.certificates.chain import program
from consistruct.exceptions import CertificateError
from consistruct.losses import CostMatrix, Hamming
from consistruct.report import calibration_report
from consistruct.structures import Chain, Dense


def curve(T):
    H = calibration_function(Hamming(T), Chain(T, 2))
    assert H.method == ("chain flows" if T > 7 else "explicit quadratic programs")
    return H


# --- the slow reference: all pairs of all labels ---


@pytest.mark.parametrize(
    ("T", "eps"),
    [(3, 0.3), (3, 0.9), (4, 0.55), (4, 0.75), (4, 0.8), (5, 0.7), (5, 0.8), (6, 0.62), (6, 0.9)],
)
def test_flows_equal_the_program_over_all_pairs_of_labels(T, eps):
    matrix = CostMatrix(Hamming(T).matrix(), rows="pred")
    H = calibration_function(matrix, Dense(Chain(T, 2).matrix()))  # knows nothing of chains
    low, high = H.interval(float(snapped(eps, T)))
    found = ChainFlow(T).solve(eps)
    scale = 8 * T**2
    assert float(found.lower) / scale <= high * (1 + 1e-9)
    assert float(found.upper) / scale >= low * (1 - 1e-9)
    assert float(found.upper) / scale == pytest.approx(high, rel=2e-6)
    assert found.upper - found.lower <= found.upper * Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("T", "value"),
    [(8, 0.00925327034), (12, 0.00600335249), (30, 0.00234848485), (100, 0.000704545454),
     (300, 0.000234848485)],
)  # fmt: skip
def test_named_values(T, value):
    chain = curve(T)
    chain.interval(0.5)  # compile
    start = time.perf_counter()
    low, high = chain.interval(0.8)
    assert T > 100 or time.perf_counter() - start < 5  # under 1 s by itself; machines are shared
    assert low <= value * (1 + 2e-9)
    assert high >= value * (1 - 2e-9)
    assert high - low <= 1e-6 * high
    assert chain.curve(0.8)[0].status == "certified"


@pytest.mark.parametrize("T", [5, 10, 15, 40])
def test_four_fifths_in_closed_form(T):
    found = ChainFlow(T).solve(0.8)
    value = Fraction(31, 440 * T) * 8 * T**2
    assert found.lower <= value
    assert found.upper >= value
    assert found.upper - found.lower <= value / 10**6


def test_jumps_at_multiples_of_one_over_t():
    T = 30
    assert snapped(0.8, T) == Fraction(4, 5)
    assert snapped(math.nextafter(0.8, 1), T) == Fraction(4, 5)
    above = math.nextafter(math.nextafter(math.nextafter(0.8, 1), 1), 1)
    assert snapped(above, T) == Fraction(above)
    H = curve(T)
    assert H(0.8) * 1.015 < H(above)  # the float .8 itself lies above 4/5
    assert H.certificate(0.8).fraction == "4/5"


def test_random_lengths_and_accuracies_are_certified():
    rng = np.random.default_rng(5)
    for _ in range(40):
        T = int(rng.integers(8, 50))
        eps = float(rng.choice([rng.random(), rng.integers(1, T + 1) / T, 0.1 * rng.random()]))
        found = ChainFlow(T).solve(max(eps, 1e-3))
        assert 0 < found.lower <= found.upper
        assert found.upper - found.lower <= found.upper / 10**6


# --- the dynamic program ---


def lagrangian(differs, nu):
    """min Σz² + Σe² + 2νΣ(1−y) of one pattern, by a general solver."""
    import cvxpy as cp

    T = len(differs)
    z, y = cp.Variable(T + 1), cp.Variable(T)
    e = cp.Variable(T, nonneg=True)
    d = np.array(differs, dtype=float)
    x = cp.multiply(-d, y) + (1 - d)
    rows = [z[0] == 0, z[T] == 0, y <= 1, y >= -9, e >= z[:-1] - z[1:] - x]
    cost = cp.sum_squares(z) + cp.sum_squares(e) + 2 * nu * (d @ (1 - y))
    return float(cp.Problem(cp.Minimize(cost), rows).solve(solver="CLARABEL"))


@pytest.mark.parametrize("nu", [0.25, 0.8125, 1.0])
def test_the_program_minimizes_over_all_patterns(nu):
    T = 5
    exact, rounded = program(T, T, Fraction(nu)), chain_bounds(T, T, nu)
    for n in range(T + 1):
        patterns = [[t not in agree for t in range(T)] for agree in combinations(range(T), n)]
        value = min(lagrangian(pattern, nu) for pattern in patterns)
        assert float(exact[n]) == pytest.approx(value, abs=1e-6)
        assert rounded[n] <= exact[n] <= rounded[n] + Fraction(1, 10**6)


@pytest.mark.parametrize(("T", "nu"), [(9, 0.625), (12, 1.0), (14, 0.9375)])
def test_integers_stay_below_fractions(T, nu):
    pairs = zip(chain_bounds(T, 5, nu), program(T, 5, Fraction(nu)), strict=True)
    for rounded, exact in pairs:
        assert rounded <= exact <= rounded + Fraction(1, 10**6)


def test_theorem_7_of_every_pattern():
    T, eps = 6, Fraction(1, 3)
    space = Chain(T, 2)
    F = space.matrix()
    inverse = np.linalg.pinv(F.T @ F / len(F))
    labels = space.predictions.enumerate()
    for n in range(T):
        gaps = [F[0] - F[k] for k in range(len(F)) if (labels[k] == labels[0]).sum() == n]
        farthest = max(float(gap @ inverse @ gap) for gap in gaps)
        bound = 8 * T**2 * float(eps) ** 2 / (2 * farthest)
        assert float(pair_bound(T, n, eps)) <= bound * (1 + 1e-9)


# --- certificates ---


@pytest.fixture(scope="module")
def proof():
    return curve(12).certificate(0.8)


def test_certificates_check_themselves_as_plain_data(proof):
    proof.check()
    again = from_json(proof.to_json())
    assert again == proof
    again.check()
    long = curve(40).certificate(0.77)
    long.check()  # integers
    with pytest.raises(CertificateError, match="not proved"):
        replace(long, lower=long.upper).check()


BROKEN = {
    "lower": lambda c: replace(c, lower=c.lower * (1 + 1e-6)),
    "upper": lambda c: replace(c, upper=c.upper * (1 - 1e-12)),
    "upper at zero": lambda c: replace(c, upper=0.0),
    "eps up": lambda c: replace(c, fraction="9/10"),  # the upper end belongs to a smaller ε
    "eps down": lambda c: replace(c, fraction="7/10"),  # and the lower end to a larger one
    "eps": lambda c: replace(c, fraction="two"),
    "T": lambda c: replace(c, T=13),
    "T type": lambda c: replace(c, T=12.0),
    "nan": lambda c: replace(c, flow=(math.nan, *c.flow[1:])),
    "flow": lambda c: replace(c, flow=(9.0, *c.flow[1:])),
    "short": lambda c: replace(c, flow=c.flow[1:]),
    "multipliers": lambda c: replace(c, multipliers=()),
    "other multiplier": lambda c: replace(c, multipliers=(0.5,)),
    "no multiplier": lambda c: replace(c, multipliers=(-1.0,)),
    "pattern": lambda c: replace(c, differs=(*c.differs[::-1][1:], True)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_tampered_certificates_are_refused(proof, name):
    with pytest.raises(CertificateError):
        BROKEN[name](proof).check()


def test_documents_that_are_no_certificates(proof):
    data = json.loads(proof.to_json())
    for broken in ({**data, "more": 1}, {k: v for k, v in data.items() if k != "flow"}):
        with pytest.raises(CertificateError):
            from_json(json.dumps(broken))


def test_contrasts_above_one_do_not_count(proof):
    # y is cut to one: the distribution stays one
    forged = replace(proof, contrast=(5.0,) * len(proof.contrast))
    with pytest.raises(CertificateError):
        forged.check()
    assert flow_value((True, True), (0.0,), (7.0, 7.0), Fraction(1)) == 2


def test_the_distribution_has_the_marginals_and_costs_eps(proof):
    true_labels = np.array([true_label for true_label, _ in proof.distribution])
    distribution = np.array([share for _, share in proof.distribution])
    assert distribution.sum() == pytest.approx(1.0)
    i, j = (np.array(label) for label in proof.pair)
    worse = ((true_labels != j).mean(axis=1) - (true_labels != i).mean(axis=1)) @ distribution
    assert worse == pytest.approx(0.8)


def test_the_report_shows_the_distribution():
    report = calibration_report(curve(9), np.array([0.0, 0.5]), at=0.8)
    assert report.worst_case is not None
    assert report.worst_case.expected_predicted - report.worst_case.expected_better == (
        pytest.approx(0.8)
    )


def test_more_states_keep_their_interval():
    H = calibration_function(Hamming(6, 3), Chain(6, 3))
    assert H.method == "oracle cutting planes"
    assert any("two states" in reason for reason in H.refusals)
    low, high = H.interval(0.5)
    assert low <= high


def test_a_balanced_pattern():
    assert balanced(7, 2) == (True, False, True, True, True, False, True)
    assert balanced(4, 0) == (True,) * 4


def test_the_command_line_checks_it(proof, tmp_path):
    from typer.testing import CliRunner

    from consistruct import cli

    path = tmp_path / "proof.json"
    path.write_text(proof.to_json(), encoding="utf-8")
    result = CliRunner().invoke(cli.app, ["check", str(path)])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("proved: H(ε) in [0.0060")
    path.write_text(replace(proof, lower=proof.upper).to_json(), encoding="utf-8")
    result = CliRunner().invoke(cli.app, ["check", str(path)])
    assert result.exit_code == 1
    assert "not proved" in result.output
