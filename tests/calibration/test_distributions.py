"""Calibration functions over some distributions of the true label."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from consistruct import calibration_function, cli
from consistruct.calibration import Capped, Constrained, Noisy, WithMargin
from consistruct.calibration.problem.distributions import parse_distributions
from consistruct.calibration.proofs import from_json
from consistruct.exceptions import CertificateError, ConsistructError
from consistruct.losses import CostMatrix, Hamming, Mixed, Ordinal, ZeroOne
from consistruct.report import CalibrationReport, calibration_report
from consistruct.report.calibration.wording import calibration_sections
from consistruct.structures import Blocks, Dense, Full

pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")

RNG = np.random.default_rng(7)
COSTS = RNG.random((4, 4)) * (1 - np.eye(4))
WIDE = RNG.random((3, 5))  # more true labels than predictions
SCORES = np.column_stack([np.ones(4), RNG.standard_normal((4, 2))])


def restrictions(kind, q, m):
    """Lists of constraints, one list per polytope, from the definitions (not from vertices)."""
    if kind is None:
        return [[]]
    if isinstance(kind, Capped):
        return [[q <= 1 - kind.delta]]
    if isinstance(kind, WithMargin):
        return [[q[best] - q[t] >= kind.gamma for t in range(m) if t != best] for best in range(m)]
    if isinstance(kind, Noisy):
        found = []
        for best in range(m):
            rest = cp.Variable(m, nonneg=True)
            found.append(
                [cp.sum(rest) == 1, q == (1 - kind.eta) * np.eye(m)[best] + kind.eta * rest]
            )
        return found
    return [[np.array(kind.rows) @ q <= np.array(kind.bounds)]]


def slow_value(L, F, kind, eps, predictable):
    """H by cvxpy over all pairs and polytopes: ½·mean (f + P L q)² with f in the span of F."""
    k, m = L.shape
    projector = F @ np.linalg.pinv(F)
    best = math.inf
    for i, j in permutations(predictable, 2):
        q, theta = cp.Variable(m, nonneg=True), cp.Variable(F.shape[1])
        f = F @ theta
        common = [cp.sum(q) == 1, (L[j] - L[i]) @ q >= eps, f[j] >= f[predictable]]
        for extra in restrictions(kind, q, m):
            cost = cp.sum_squares(f + (projector @ L) @ q) / (2 * k)
            problem = cp.Problem(cp.Minimize(cost), common + extra)
            problem.solve(solver="CLARABEL")
            if problem.status in ("optimal", "optimal_inaccurate"):
                best = min(best, float(problem.value))
    return best


ROWS = Constrained(((1.0, -1.0, 0.0, 0.5), (0.0, 1.0, 1.0, 0.0)), (0.25, 0.625))
KINDS = [Capped(0.25), Capped(0.7), WithMargin(0.3), Noisy(0.2), ROWS]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.spec)
@pytest.mark.parametrize("scores", ["full", "few"])
def test_against_cvxpy(kind, scores):
    F = np.eye(4) if scores == "full" else SCORES
    loss = CostMatrix(COSTS, rows="pred")
    H = calibration_function(loss, Full(loss) if scores == "full" else Dense(F), distributions=kind)
    predictable = H.scores.predictable().indices
    kept = list(range(4)) if predictable is None else predictable.tolist()
    for share in (0.3, 0.7, 0.97):
        eps = share * H.max_eps
        low, high = H.interval(eps)
        assert low <= high
        expected = slow_value(COSTS, F, kind, eps, kept)
        assert expected == pytest.approx(high, rel=1e-5, abs=1e-9)
        if high > 1e-12:
            assert high - low <= 1e-6 * high


@pytest.mark.parametrize("kind", [Capped(0.3), WithMargin(0.4), Noisy(0.3)], ids=lambda k: k.spec)
def test_more_true_labels_than_predictions(kind):
    H = calibration_function(CostMatrix(WIDE, rows="pred"), "full", distributions=kind)
    eps = 0.5 * H.max_eps
    expected = slow_value(WIDE, np.eye(3), kind, eps, [0, 1, 2])
    assert H.interval(eps)[1] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("k", "eta"), [(3, 0.1), (5, 0.3)])
def test_noise_and_the_zero_one_loss_by_hand(k, eta):
    # a wrong answer is worse by 1 − 2η at least: below that H does not move
    H = calibration_function(ZeroOne(k), distributions=Noisy(eta))
    for eps in (0.01, 0.2, 1 - 2 * eta, 0.95):
        assert H(eps) == pytest.approx(max(eps, 1 - 2 * eta) ** 2 / (4 * k), rel=1e-6)


def test_a_margin_and_the_zero_one_loss_by_hand():
    # predicting the second best costs γ at least
    H = calibration_function(ZeroOne(4), distributions=WithMargin(0.25))
    for eps in (0.1, 0.25, 0.6):
        assert H(eps) == pytest.approx(max(eps, 0.25) ** 2 / 16, rel=1e-6)


@pytest.mark.parametrize("kind", [Capped(0.0), WithMargin(0.0), Noisy(1.0), Constrained((), ())])
def test_no_restriction_is_none(kind):
    loss = CostMatrix(COSTS, rows="pred")
    restricted = calibration_function(loss, SCORES, distributions=kind)
    everything = calibration_function(loss, SCORES)
    assert restricted.max_eps == pytest.approx(everything.max_eps)
    assert restricted.consistency_level == pytest.approx(everything.consistency_level)
    assert restricted.approximation_error == pytest.approx(everything.approximation_error)
    eps = np.array([0.4, 0.8]) * everything.max_eps
    np.testing.assert_allclose(restricted(eps), everything(eps), rtol=1e-6, atol=1e-12)


def test_fewer_distributions_are_never_harder():
    loss = Ordinal(4)
    eps = np.array([0.3, 1.0, 2.0])
    values = [calibration_function(loss)(eps)] + [
        calibration_function(loss, distributions=Noisy(eta))(eps) for eta in (0.6, 0.3, 0.1)
    ]
    for larger, smaller in pairwise(values):
        assert (smaller >= larger * (1 - 1e-6)).all()


def test_the_level_by_linear_programming():
    """sup{ε : H = 0}: scores at their optimum let j win though i is better."""
    kind = Noisy(0.3)
    H = calibration_function(CostMatrix(COSTS, rows="pred"), SCORES, distributions=kind)
    P = SCORES @ np.linalg.pinv(SCORES) @ COSTS
    kept = H.scores.predictable().indices
    best = 0.0
    for i, j in permutations(range(4) if kept is None else kept.tolist(), 2):
        for top in range(4):
            q = cp.Variable(4, nonneg=True)
            others = [(P[c] - P[j]) @ q >= 0 for c in (range(4) if kept is None else kept)]
            problem = cp.Problem(
                cp.Maximize((COSTS[j] - COSTS[i]) @ q),
                [cp.sum(q) == 1, q[top] >= 0.7, *others],
            )
            problem.solve(solver="CLARABEL")
            if problem.status == "optimal":
                best = max(best, float(problem.value))
    assert H.consistency_level == pytest.approx(best, abs=1e-6)


# --- the polytopes ---


@pytest.mark.parametrize("kind", [Capped(0.25), Capped(0.625), WithMargin(0.5), Noisy(0.25)])
def test_vertices_against_linear_programs(kind):
    """The least of a linear function over the vertices is its least over the constraints."""
    m = 4
    for _ in range(5):
        cost = RNG.standard_normal(m)
        q = cp.Variable(m, nonneg=True)
        for polytope, extra in zip(kind.polytopes(m), restrictions(kind, q, m), strict=True):
            problem = cp.Problem(cp.Minimize(cost @ q), [cp.sum(q) == 1, *extra])
            problem.solve(solver="CLARABEL")
            assert min(cost @ polytope.matrix()) == pytest.approx(problem.value, abs=1e-7)


def test_cutting_the_simplex_gives_the_listed_vertices():
    m, delta = 4, 0.625
    cut = Constrained(tuple(tuple(row) for row in np.eye(m).tolist()), (1 - delta,) * m)
    assert set(cut.polytopes(m)[0].vertices) == set(Capped(delta).polytopes(m)[0].vertices)
    gamma = 0.25
    rows = [[1.0 if t == s else -1.0 if t == 0 else 0.0 for t in range(m)] for s in range(1, m)]
    cut = Constrained(tuple(map(tuple, rows)), (-gamma,) * (m - 1))
    assert set(cut.polytopes(m)[0].vertices) == set(WithMargin(gamma).polytopes(m)[0].vertices)
    for polytope in WithMargin(gamma).polytopes(m):
        assert all(sum(vertex) == 1 and min(vertex) >= 0 for vertex in polytope.vertices)


def test_columns_are_exact():
    L = np.array([[0.1, 0.7, 0.3]])
    (polytope,) = Capped(0.1).polytopes(3)
    exact = [
        sum(Fraction(a) * b for a, b in zip(L[0].tolist(), v, strict=True))
        for v in polytope.vertices
    ]
    assert polytope.columns(L)[0] == exact


# --- certificates, reports, the command line, errors ---


@pytest.mark.parametrize("scores", [None, SCORES], ids=["own", "few"])
def test_certificates_cover_every_polytope(scores):
    H = calibration_function(CostMatrix(COSTS, rows="pred"), scores, distributions="noise:0.25")
    eps = 0.5 * (H.consistency_level + H.max_eps)
    proof: Any = H.certificate(eps)
    proof.check()
    assert len(proof.parts) == 4
    distribution = np.array(proof.distribution)
    again: Any = from_json(proof.to_json())
    assert again.distribution == proof.distribution
    from_json(proof.to_json()).check()
    assert distribution.sum() == pytest.approx(1.0)
    assert distribution.max() >= 0.75 - 1e-9
    i, j = proof.pair
    assert (COSTS[j] - COSTS[i]) @ distribution >= eps - 1e-9
    for forged in (
        replace(proof, lower=float(proof.upper) * 1.001),
        replace(proof, upper=float(proof.lower) * 0.999),
        replace(proof, distributions=Noisy(0.3)),
        replace(proof, parts=proof.parts[1:]),
        replace(proof, parts=(None,) * 4),
        replace(proof, parts=(*proof.parts[1:], proof.parts[0])),
        replace(proof, loss=(2 * COSTS).tolist()),
        replace(proof, winner=9),
        replace(proof, eps=eps * 1.01),
    ):
        with pytest.raises(CertificateError):
            forged.check()


def test_twenty_labels_take_the_compiled_route():
    L = np.random.default_rng(3).random((20, 20)) * (1 - np.eye(20))
    H = calibration_function(CostMatrix(L, rows="pred"), "full", distributions="noise:0.05")
    assert H.method == "explicit active sets, noise:0.05"
    everything = calibration_function(CostMatrix(L, rows="pred"), "full")
    low, high = H.interval(0.2)
    assert everything(0.2) <= low <= high
    H.certificate(0.2).check()


def test_labels_of_other_shapes_keep_their_names():
    H = calibration_function(Hamming(3), distributions="noise:0.1")
    point: Any = H.curve(0.3)[0]
    assert all(isinstance(label, tuple) and len(label) == 3 for label in point.pair)


def test_the_report_states_how_much_easier():
    H = calibration_function(ZeroOne(5), distributions="noise:0.1")
    report = calibration_report(H, at=0.08)
    assert CalibrationReport.from_dict(json.loads(json.dumps(report.as_dict()))) == report
    section = next(s for s in calibration_sections(report) if s.key == "distributions")
    assert "certain apart from noise at rate 0.1" in section.question
    assert "100 times as large" in section.answer  # (1 − 2η)²/ε²
    assert dict(section.facts)["distributions"] == "noise:0.1"
    plain = calibration_report(calibration_function(ZeroOne(5)), at=0.08)
    assert plain.restriction is None
    assert all(s.key != "distributions" for s in calibration_sections(plain))


def test_where_a_level_goes_away():
    # two true labels of one block must be about as likely for block scores to go wrong
    loss, blocks = Mixed((2, 2, 2), 0.2), Blocks((2, 2, 2))
    assert calibration_function(loss, blocks).consistency_level == pytest.approx(0.1)
    H = calibration_function(loss, blocks, distributions="noise:0.05")
    assert H.consistency_level == 0.0
    sections = calibration_sections(calibration_report(H, at=0.08))
    section = next(s for s in sections if s.key == "distributions")
    assert "it becomes possible at all" in section.answer


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["consistruct", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    captured = capsys.readouterr()
    return stopped.value.code, captured.out, captured.err


def test_the_command_line(monkeypatch, capsys):
    code, out, _ = run(
        monkeypatch, capsys, "analyze", "zero-one:3", "--distributions", "margin:0.2", "--json",
        "--points", "3",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["restriction"]["spec"] == "margin:0.2"
    code, out, _ = run(
        monkeypatch, capsys, "analyze", "zero-one:3", "--distributions", "noise:0.1",
        "--points", "3",
    )  # fmt: skip
    assert code == 0
    assert "How much easier is it" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("zero-one:3", "--distributions", "sure"), "cap:DELTA, margin:GAMMA or noise:ETA"),
        (("zero-one:3", "--distributions", "noise:x"), "needs a number, for example noise:0.1"),
        (("zero-one:3", "--distributions", "noise:2"), "eta must be a finite number in"),
        (("zero-one:3", "--distributions", "cap:0.9"), "no distribution over 3 true labels"),
        (("hamming:40", "--distributions", "noise:0.1"), "needs labels that can be listed"),
        (
            ("zero-one:20", "--distributions", "margin:0.1"),
            "extreme distributions over 20 true labels",
        ),
        (
            ("zero-one:3", "--distributions", "noise:0.1", "--surrogate", "log"),
            "distributions= works only with the quadratic surrogate",
        ),
    ],
)
def test_what_is_not_supported_is_one_line(monkeypatch, capsys, arguments, message):
    code, _, error = run(monkeypatch, capsys, "analyze", *arguments)
    assert code == 2
    assert message in error
    assert error.count("\n") == 1


def test_bad_arguments():
    with pytest.raises(TypeError, match="distributions must be a spec such as"):
        calibration_function(ZeroOne(3), distributions=0.1)
    with pytest.raises(ValueError, match="one finite bound for each row"):
        Constrained(((1.0, math.nan),), (1.0,))
    with pytest.raises(ValueError, match="one number per true label, 3"):
        calibration_function(ZeroOne(3), distributions=Constrained(((1.0, 0.0),), (0.5,)))
    with pytest.raises(ConsistructError, match="no distribution satisfies"):
        calibration_function(ZeroOne(2), distributions=Constrained(((1.0, 1.0),), (0.5,)))
    with pytest.raises(ValueError, match="delta must be below 1"):
        Capped(1.0)
    assert parse_distributions("cap:0.1") == Capped(0.1)
