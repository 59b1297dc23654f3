"""Sample complexity: closed forms of the theory, dense evaluations, huge label sets."""

from __future__ import annotations

import math

import numpy as np
import pytest

import consistruct as cs
from consistruct.guarantees import optimum_norm, plan_table, sample_complexity
from consistruct.guarantees.constants import log_gram_range, squared_target_norms, target_norm
from consistruct.losses import Block, CostMatrix, Hamming, Mixed, Ordinal, ZeroOne
from consistruct.losses.registry import LOSSES
from consistruct.structures import Blocks, Chain, Dense, Full, Separable


def xi(z):
    return z**2 + z


def dense_norms(loss, space):
    """‖u_y‖² by least squares in L²(μ): project every column of L, take off its mean."""
    L, F = loss.matrix(), space.matrix()
    root = np.sqrt(space.predictions.weights())[:, None]
    coefficients = np.linalg.lstsq(root * F, root * L, rcond=None)[0]
    P = F @ coefficients
    weights = space.predictions.weights()
    mean = weights @ P if space.contains_constant else np.zeros(P.shape[1])
    return weights @ (P - mean) ** 2


LISTED = [
    (ZeroOne(7), Full(7)),
    (Block((1, 5, 3)), Blocks((1, 5, 3))),
    (Block((1, 5, 3)), Full(9)),
    (Mixed((2, 4), 0.3), Full(6)),
    (Mixed((2, 4), 0.3), Blocks((2, 4))),
    (Mixed((2, 4), 0.3), Blocks((3, 3))),
    (Hamming(4), Separable(4)),
    (Hamming(3, 3), Chain(3, 3)),
    (Hamming(3), Full(Hamming(3))),
    (2.5 * Hamming(3), Separable(3)),
    (Ordinal(6, 2.0), Ordinal(6, 2.0).score_space),
    (Ordinal(5), Dense([[1.0, 0], [0, 1], [2, 1], [1, 3], [0, 0]])),  # no constant
    (ZeroOne(3), Dense(np.eye(3), reference=[0.5, 0.3, 0.2])),
    (CostMatrix([[0, 1], [1, 0], [0.3, 0.4]], rows="pred"), Full(3)),
]


@pytest.mark.parametrize(("loss", "space"), LISTED, ids=repr)
def test_target_norm_is_the_largest_variance_of_the_projected_loss(loss, space):
    found = target_norm(loss, space)
    assert found.exact
    assert math.exp(found.log_square) == pytest.approx(dense_norms(loss, space).max(), rel=1e-9)


@pytest.mark.parametrize(("loss", "space"), LISTED[:9], ids=repr)
def test_target_norms_of_given_true_labels(loss, space):
    true = loss.true_labels.enumerate()
    found = squared_target_norms(loss, space, true)
    np.testing.assert_allclose(found, dense_norms(loss, space), rtol=1e-9, atol=1e-14)


def test_without_a_list_of_labels_the_variance_of_a_bounded_variable_is_used():
    loss = 0.5 * Hamming(30) + 0.25 * Hamming(30, 2)  # merges into one term: exact
    assert target_norm(loss, Separable(30)).exact
    found = target_norm(ZeroOne(5000), Dense(np.ones((5000, 1))))
    assert not found.exact
    assert math.exp(found.log_square) == pytest.approx(0.25)


@pytest.mark.parametrize("z", [1.0, 0.5, 3.0])
@pytest.mark.parametrize("eps", [0.1, 0.5])
def test_sharp_constants_of_the_theory(z, eps):
    # with the paper's 2DM/√N: 64 ξ²/ε⁴ and 16 ξ²/ε⁴; from zero a quarter of that; ξ at z = QR
    for radius in (1.0, 2.0):
        arguments = {"eps": eps, "radius": radius, "q_bound": z / radius}
        unit = xi(z) ** 2 / eps**4
        k = 40
        found = sample_complexity(ZeroOne(k), **arguments).sharp
        assert found.iterations == pytest.approx(16 * (1 - 1 / k) ** 2 * unit, rel=1e-6)
        assert 4 * found.iterations <= 64 * unit
        b = 8
        found = sample_complexity(Block((3,) * b), **arguments).sharp
        assert found.iterations == pytest.approx(16 * (1 - 1 / b) ** 2 * unit, rel=1e-6)
        found = sample_complexity(Hamming(25), **arguments).sharp
        assert found.iterations == pytest.approx(4 * unit, rel=1e-6)
        assert pytest.approx(xi(z) / 100) == found.DM  # B² ξ, B² = 1/4T
        # step D/(M√N) and rate DM/√N = Ȟ at N*
        root = math.sqrt(found.iterations)
        assert found.step == pytest.approx(found.D / (found.M * root))
        assert found.DM / root == pytest.approx(eps**2 / 200, rel=1e-6)


@pytest.mark.parametrize("T", [1, 2, 5, 8])
def test_paper_constants_of_hamming_are_those_of_its_basis(T):
    # F = [½, bits], listed: singular values, D, M, N* straight from the paper's formulas
    bits = (np.arange(2**T)[:, None] >> np.arange(T)) & 1
    F = np.column_stack([np.full(2**T, 0.5), bits])
    sigma = np.linalg.svd(F, compute_uv=False)
    k, r, R, Q, eps = 2**T, T + 1, 1.5, 2.0, 0.3
    D = math.sqrt(r) / sigma[-1] * math.sqrt(k) * Q
    M = sigma[0] ** 2 / k * D * R**2 + sigma[0] / math.sqrt(k) * R
    found = sample_complexity(Hamming(T), eps=eps, radius=R, q_bound=Q).paper
    assert pytest.approx(D) == found.D
    assert pytest.approx(M) == found.M
    N = 4 * D**2 * M**2 / (eps**2 / (8 * T)) ** 2
    assert found.iterations == pytest.approx(N, rel=1e-6)
    assert found.step == pytest.approx(2 * D / (M * math.sqrt(N)), rel=1e-6)
    kappa = (T + 2 + math.sqrt(T**2 + 4 * T)) / 2
    assert pytest.approx(xi(kappa * math.sqrt(r) * R * Q)) == found.DM


def test_paper_constants_take_the_smallest_non_zero_singular_value():
    space = Chain(3, 2)  # width 14, rank 6
    F = space.matrix()
    sigma = np.linalg.svd(F, compute_uv=False)
    assert sigma[-1] < 1e-12
    low, high = log_gram_range(space)
    assert math.exp(low) == pytest.approx(sigma[space.rank - 1] ** 2 / 8)
    assert math.exp(high) == pytest.approx(sigma[0] ** 2 / 8)
    found = sample_complexity(Hamming(3), space, eps=0.2).paper
    assert pytest.approx(math.sqrt(6 * 8) / sigma[5]) == found.D


def test_uneven_blocks_and_full_scores_have_their_own_spectrum():
    for space in (
        Blocks((1, 5, 3)),
        Full(9),
        Full(cs.structures.Classes(3, reference=[0.5, 0.3, 0.2])),
    ):
        root = np.sqrt(space.predictions.weights())[:, None]
        sigma = np.linalg.svd(root * space.matrix(), compute_uv=False)
        low, high = log_gram_range(space)
        assert (low, high) == pytest.approx((2 * math.log(sigma[-1]), 2 * math.log(sigma[0])))


def test_the_rate_meets_the_envelope_after_n_star_examples():
    found = sample_complexity(Mixed((2, 3), 0.3), eps=0.4)
    for column, factor in ((found.paper, 2), (found.sharp, 1)):
        assert column.excess_after(100) == pytest.approx(factor * column.DM / 10)
        reached = column.excess_after(column.iterations)
        assert reached == pytest.approx(math.exp(found.log_envelope))


def test_the_envelope_counts_and_not_h():
    # H of Hamming with full scores jumps: it is above every convex function below it
    loss, eps = Hamming(6), 0.9
    curve = cs.calibration_function(loss, "full")
    found = sample_complexity(loss, "full", eps=eps)
    assert found.log_envelope < curve.log(eps)
    N = (found.sharp.DM / curve.envelope(eps)(eps)) ** 2
    assert found.sharp.iterations == pytest.approx(N)


HUGE = [
    (Hamming(1000), None, 4.0),
    (ZeroOne(2**1200), None, 16.0),
    (Block((2**250,) * 4), None, 9.0),
    (Block((2**1100, 2**1101)), None, None),
    (Mixed((2**250, 2**250), 0.4), None, None),
    (Hamming(1000), "full", None),
]


@pytest.mark.parametrize(("loss", "scores", "constant"), HUGE, ids=str)
def test_astronomical_label_sets(loss, scores, constant):
    found = sample_complexity(loss, scores, eps=0.1)
    for column in (found.paper, found.sharp):
        assert math.isfinite(column.log10_iterations)
        assert column.log10_iterations > 0
    if constant is not None:
        assert found.sharp.iterations == pytest.approx(constant * 4e4, rel=1e-6)
    assert found.sharp.log_iterations <= found.paper.log_iterations


@pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")
@pytest.mark.parametrize("entry", LOSSES.values(), ids=list(LOSSES))
def test_every_small_loss_has_both_columns_and_sharp_is_not_worse(entry):
    for loss in entry.examples:
        if loss.true_labels.size is None or not 2 <= loss.n_labels <= 8:
            continue
        found = sample_complexity(loss, eps=0.5 * max(loss.max_value, 1e-3))
        assert found.sharp.log_iterations <= found.paper.log_iterations + 1e-9
        quantities = [quantity for quantity, _ in found.sharp.assumptions]
        assert quantities == ["D", "M", "Q", "R", "N"]


def test_below_the_level_nothing_suffices_and_above_the_range_nothing_is_needed():
    loss, blocks = Mixed((3, 3), 0.2), Blocks((3, 3))
    found = sample_complexity(loss, blocks, eps=0.1)  # the level is η/2
    assert found.consistency_level == pytest.approx(0.1)
    assert found.sharp.iterations == found.paper.iterations == math.inf
    assert found.sharp.step == 0
    assert found.approximation_error == pytest.approx(0.2)
    found = sample_complexity(loss, blocks, eps=1.5)
    assert found.sharp.iterations == 0
    assert math.isnan(found.sharp.step)


def test_constants_from_data():
    rng = np.random.default_rng(0)
    loss = Hamming(3)
    X = rng.normal(size=(50, 4))
    y = loss.true_labels.sample(50, rng)
    W = rng.normal(size=(4, 6))
    # ‖W‖ in the orthonormal centered basis: the second moment of centered scores, summed over
    # inputs
    F = loss.score_space.matrix()
    scores = F @ W.T
    D = math.sqrt(((scores - scores.mean(axis=0)) ** 2).mean(axis=0).sum())
    assert optimum_norm(loss.score_space, W) == pytest.approx(D)
    found = sample_complexity(loss, eps=0.2, features=X, true=y, optimum_norm=D).sharp
    assert pytest.approx(D) == found.D
    # M bounds the root mean square gradient of every W in the ball, on the sample itself
    norms = (X**2).sum(axis=1)
    B = math.sqrt(1 / 12)
    curvature = np.linalg.eigvalsh((X * norms[:, None]).T @ X / 50)[-1]
    assert pytest.approx(D * math.sqrt(curvature) + B * math.sqrt(norms.mean())) == found.M
    worst = sample_complexity(loss, eps=0.2, features=X, optimum_norm=D)
    assert worst.radius == pytest.approx(math.sqrt(norms.max()))
    assert found.M <= worst.sharp.M
    given = sample_complexity(loss, eps=0.2, gradient_second_moment=0.25).sharp
    assert pytest.approx(0.5) == given.M
    assert "given" in dict(given.assumptions)["M"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eps": 0.0}, "eps must be a finite number in"),
        ({"eps": 0.1, "radius": -1.0}, "radius must be"),
        ({"eps": 0.1, "q_bound": 0.0}, "q_bound must be"),
        ({"eps": 0.1, "radius": 2.0, "features": [[1.0]]}, "either radius or features"),
        ({"eps": 0.1, "true": [[0, 1]]}, "true was given without features"),
        ({"eps": 0.1, "features": [[1.0]], "true": [[0, 1], [1, 1]]}, "same length, got 1 and 2"),
        ({"eps": 0.1, "features": [[0.0]]}, "must not all be zero"),
        ({"eps": 0.1, "features": [1.0]}, "non-empty matrix of finite numbers"),
        ({"eps": 0.1, "optimum_norm": -1.0}, "optimum_norm must be"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message):
    with pytest.raises(ValueError, match=message) as raised:
        sample_complexity(Hamming(2), **arguments)
    assert "\n" not in str(raised.value)


def test_optimum_norm_checks_its_width():
    with pytest.raises(ValueError, match="one column per score parameter, 3, got 2"):
        optimum_norm(Full(3), [[1.0, 2.0]])


def test_table_reproduces_the_rates_of_the_paper():
    rows = plan_table(eps=0.1, sizes=(64, 256, 1024, 4096))
    for family, limit in (("zero-one", 16), ("block", 16), ("hamming", 4)):
        own = [row for row in rows if row.family == family]
        ratios = [row.paper_ratio for row in own]
        assert ratios == sorted(ratios, reverse=True)
        assert ratios[-1] == pytest.approx(1.0, abs=0.02)  # D·M/k, D·M/b, D·M/log³k tend to 1
        assert [row.sharp_ratio for row in own] == pytest.approx([limit] * 4, rel=0.04)
    mixed = [row.sharp_ratio for row in rows if row.family == "mixed"]
    assert mixed[-1] < 1.05 * mixed[0]  # bounded in k as well
