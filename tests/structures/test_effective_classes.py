"""k_eff: closed forms, and an independent dense computation where there is none."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from consistruct.losses import Block, CostMatrix, Hamming, Ordinal, ZeroOne
from consistruct.structures import Blocks, Chain, Classes, Full, Separable
from consistruct.structures.base import EffectiveClasses


def dense_effective_classes(L):
    """From a loss matrix alone: project on span[1, L], keep labels that can win, farthest pair.

    The kernel FḠ⁺Fᵀ of any basis F of the span is k times the orthogonal projector on it.
    """
    k = len(L)
    columns = np.column_stack([np.ones(k), L])
    left, singular, _ = np.linalg.svd(columns, full_matrices=False)
    basis = left[:, singular > 1e-10 * singular[0]]
    kernel = k * basis @ basis.T
    winners = []
    for c in range(k):
        others = [d for d in range(k) if d != c]
        # c wins if some score vector in the span has f_c ≥ f_d, and f_c > f_d where d comes first
        bound = [-1.0 if d < c else 0.0 for d in others]
        if not others:
            winners.append(c)
            continue
        result = linprog(
            np.zeros(basis.shape[1]), basis[others] - basis[c], bound, bounds=(None, None)
        )
        if result.status == 0:
            winners.append(c)
    pairs = [kernel[i, i] + kernel[j, j] - 2 * kernel[i, j] for i in winners for j in winners]
    return max(pairs) / 2


@pytest.mark.parametrize("k", [2, 3, 10, 1000, 2**300])
def test_zero_one_has_k(k):
    assert ZeroOne(k).score_space.effective_classes() == k


@pytest.mark.parametrize(("b", "s"), [(2, 1), (3, 5), (4, 25), (7, 2**200)])
def test_equal_blocks_have_b(b, s):
    assert Block((s,) * b).score_space.effective_classes() == b


@pytest.mark.parametrize(("T", "s"), [(1, 2), (5, 2), (1000, 2), (3, 4), (1000, 26)])
def test_hamming_has_states_times_parts(T, s):
    effective = Hamming(T, s).score_space.effective_classes()
    assert effective == s * T
    assert effective.exact
    assert effective.measure == "uniform"


@pytest.mark.parametrize("sizes", [(1, 2), (3, 5, 2), (1, 1, 7), (4, 4, 1, 2), (6,)])
def test_unequal_blocks_match_the_dense_computation(sizes):
    loss = Block(sizes)
    assert loss.score_space.effective_classes() == pytest.approx(
        dense_effective_classes(loss.matrix()), abs=1e-9
    )


@pytest.mark.parametrize("seed", range(12))
def test_random_cost_matrices_match_the_dense_computation(seed):
    rng = np.random.default_rng(seed)
    k, m, rank = rng.integers(2, 9), rng.integers(1, 9), rng.integers(1, 4)
    L = rng.random((k, rank)) @ rng.random((rank, m))
    if seed % 3 == 0:
        L = L[rng.integers(k, size=k)]  # merged predictions
    effective = CostMatrix(L, rows="pred").score_space.effective_classes()
    assert effective == pytest.approx(dense_effective_classes(L), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(
    "loss", [Ordinal(6), Ordinal(6, 2.0), Hamming(3), Hamming(2, 3), ZeroOne(5)], ids=repr
)
def test_other_losses_match_the_dense_computation(loss):
    effective = loss.score_space.effective_classes()
    assert effective == pytest.approx(dense_effective_classes(loss.matrix()), rel=1e-9)


def test_a_single_label_that_can_win_has_none():
    assert CostMatrix([[1, 1], [1, 1]]).score_space.effective_classes() == 0
    assert Full(1).effective_classes() == 0
    assert Full(1).effective_classes().log == -math.inf


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (1.0, 2.0, 5.0), (0.2, 0.2, 0.6)])
def test_full_scores_with_a_measure(weights):
    mu = np.array(weights) / np.sum(weights)
    light = np.sort(1 / mu)[::-1]
    effective = Full(Classes(3, reference=weights)).effective_classes()
    assert effective == pytest.approx((light[0] + light[1]) / 2)
    assert effective.measure == "weighted"


def test_chain_is_a_quadratic_form_in_agreements():
    # 2^12 labels: the dense maximum over pairs with the first label, by symmetry of the states
    space = Chain(6, 3)
    F = space.matrix()
    kernel = F @ space.gram().solve(F[:1]).T
    diameter = 2 * (space.rank - kernel.min())
    assert space.effective_classes() == pytest.approx(diameter / 2)


def test_log_stays_finite_where_the_float_overflows():
    effective = Full(2**3000).effective_classes()
    assert effective == math.inf
    assert effective.log == pytest.approx(3000 * math.log(2))
    for twin in (
        pickle.loads(pickle.dumps(effective)),
        copy.copy(effective),
        copy.deepcopy(effective),
    ):
        assert twin == effective
        assert (twin.log, twin.exact, twin.measure) == (effective.log, True, "uniform")


def test_from_numbers():
    assert EffectiveClasses(Fraction(7, 2), exact=True, measure="m").log == pytest.approx(
        math.log(3.5)
    )
    assert EffectiveClasses(2.5, exact=False, measure="m").log == pytest.approx(math.log(2.5))
    assert Blocks((4,)).effective_classes() == 0
    assert Separable(1).effective_classes() == 2
