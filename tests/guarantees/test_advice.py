"""Advice on score families."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import consistruct as cs
from consistruct.guarantees import advise, crossing_point, low_rank_truncations, sample_complexity
from consistruct.guarantees.families import block_merges, score_families
from consistruct.losses import CostMatrix, Hamming, Mixed, Ordinal
from consistruct.structures import Blocks, Dense, Full

LARGE = Mixed((5,) * 20, 0.1)


def chosen(advice):
    assert advice.recommended is not None
    return advice.recommended


def test_full_scores_for_small_eps_and_blocks_for_large_ones():
    start = time.perf_counter()
    small, large = advise(LARGE, eps=0.02), advise(LARGE, eps=0.5)
    assert time.perf_counter() - start < 60
    assert isinstance(chosen(small).scores, Full)
    assert "no approximation error" in small.reason
    assert chosen(large).scores == Blocks((5,) * 20)
    assert chosen(large).approximation_error == pytest.approx(0.1)
    assert "may lose up to 0.1 because only 20 labels can be predicted" in large.reason
    for advice in (small, large):
        assert "\n" not in advice.reason


def test_where_the_curves_cross():
    ((name, eps),) = advise(LARGE, eps=0.5).crossings
    assert name == "20 blocks"
    # ε/√(4k) against (ε − η/2)·(η/s + 1 − η)/((1 − η/2)√(4b)), both below η/(1 − η)
    k, b, s, eta = 100, 20, 5, 0.1
    slope = (eta / s + 1 - eta) / ((1 - eta / 2) * math.sqrt(4 * b))
    expected = slope * eta / 2 / (slope - 1 / math.sqrt(4 * k))
    assert expected < eta / (1 - eta)
    assert eps == pytest.approx(expected, rel=1e-9)
    assert round(expected, 4) == 0.0929


def test_curves_that_do_not_cross():
    H = cs.calibration_function(Hamming(5))
    assert crossing_point(H, cs.calibration_function(Hamming(5), "full")) is None


def test_every_entry_is_what_sample_complexity_states():
    for entry in advise(LARGE, eps=0.3).families:
        found = sample_complexity(LARGE, entry.scores, eps=0.3)
        assert entry.log_iterations == pytest.approx(found.sharp.log_iterations)
        assert entry.approximation_error == found.approximation_error
        assert entry.consistency_level == found.consistency_level


def test_counting_the_approximation_error_moves_the_choice():
    advice = advise(LARGE, eps=0.2, total=True)
    blocks = next(e for e in advice.families if isinstance(e.scores, Blocks))
    assert blocks.eps == pytest.approx(0.1)
    assert blocks.total == pytest.approx(0.2)
    assert isinstance(chosen(advice).scores, Full)
    assert isinstance(chosen(advise(LARGE, eps=0.2)).scores, Blocks)
    assert isinstance(chosen(advise(LARGE, eps=0.6, total=True)).scores, Blocks)


def test_a_budget_gives_the_accuracy_that_needs_it():
    for n in (10**4, 10**9):
        advice = advise(LARGE, n_samples=n)
        for entry in advice.families:
            assert entry.iterations == pytest.approx(n, rel=1e-6)
            needed = sample_complexity(LARGE, entry.scores, eps=entry.eps).sharp.iterations
            assert needed == pytest.approx(n, rel=1e-4)
        assert chosen(advice).total == min(e.total for e in advice.families)
    assert isinstance(chosen(advise(LARGE, n_samples=10**4)).scores, Blocks)
    assert isinstance(chosen(advise(LARGE, n_samples=10**9)).scores, Full)


def test_a_budget_that_guarantees_nothing_states_so():
    advice = advise(LARGE, n_samples=2)
    assert advice.recommended is None
    assert "no family has a guarantee" in advice.reason


def test_the_front_holds_what_nothing_beats():
    entries = advise(LARGE, eps=0.3).families
    for entry in entries:
        beaten = any(
            other.log_iterations <= entry.log_iterations
            and other.approximation_error <= entry.approximation_error
            and (other.log_iterations, other.approximation_error)
            != (entry.log_iterations, entry.approximation_error)
            for other in entries
        )
        assert entry.on_front == (not beaten)
    assert [e.on_front for e in advise(LARGE, eps=0.02).families] == [True, False]


def test_exponential_label_sets_compare_own_and_full_scores():
    advice = advise(Hamming(1000), eps=0.1)
    assert [entry.name for entry in advice.families] == ["own span", "full scores"]
    assert chosen(advice).name == "own span"
    assert advice.families[1].log_iterations > 1000


def test_families_of_an_ordinal_loss_and_own_candidates():
    loss = Ordinal(5)
    mine = Dense([[1.0, i] for i in range(5)])
    advice = advise(loss, eps=1.0, candidates=[mine])
    assert advice.families[-1].scores == mine
    assert advice.families[-1].name == "candidate 0"
    assert chosen(advice).name == "full scores (own span)"
    assert any(entry.name.startswith("rank") for entry in advice.families)


def test_what_is_too_large_to_search_is_named():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(45), 2)
    L = rng.uniform(0.5, 1.0, size=(90, 90))
    np.fill_diagonal(L, 0.0)
    loss = CostMatrix(L, rows="pred")
    from consistruct.exceptions import ConsistructError
    from consistruct.guarantees.advice import _curve
    from consistruct.guarantees.families import Family

    with pytest.raises(ConsistructError, match="45 predictable labels, more than the 40"):
        _curve(loss, Family("mine", Blocks(None, groups)))


def test_truncations_are_the_best_approximations_and_cut_at_gaps_only():
    loss = Ordinal(6)
    L = loss.matrix()
    singular = np.linalg.svd(L - L.mean(axis=0), compute_uv=False)
    for family in low_rank_truncations(loss, limit=None):
        F = family.scores.matrix()
        residual = L - F @ np.linalg.lstsq(F, L, rcond=None)[0]
        rank = family.scores.rank
        # Eckart–Young: what is left are the singular values that were cut
        assert np.linalg.norm(residual) ** 2 == pytest.approx((singular[rank - 1 :] ** 2).sum())
    (family,) = low_rank_truncations(LARGE, limit=None)  # all others lie within equal values
    assert family.scores == Blocks((5,) * 20)


def test_merges_find_blocks_in_any_order():
    assignment = np.array([0, 1, 2, 1, 0, 2, 2, 0, 1])
    loss = Mixed(None, 0.2, assignment=assignment)
    (family,) = block_merges(loss)
    assert isinstance(family.scores, Blocks)
    assert family.scores.assignment is not None
    assert family.scores.assignment.tolist() == assignment.tolist()
    assert len(score_families(loss)) == 2  # the truncation at rank 3 is the same space


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either n_samples"),
        ({"eps": 0.1, "n_samples": 5}, "either n_samples"),
        ({"eps": -0.1}, "eps must be"),
        ({"n_samples": 0}, "n_samples must be at least 1"),
        ({"n_samples": 5, "total": True}, "total=True is for eps"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message):
    with pytest.raises(ValueError, match=message):
        advise(Hamming(2), **arguments)


def test_families_of_an_array_are_refused_with_what_to_pass():
    with pytest.raises(TypeError, match=r"loss must be a consistruct loss .*CostMatrix\(M, rows="):
        low_rank_truncations(np.eye(3))
