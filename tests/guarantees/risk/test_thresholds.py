"""Ladders, evidence and thresholds against their definitions, one row and one safety at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from consistruct.exceptions import RiskLevelError
from consistruct.guarantees.risk import rows_needed
from consistruct.guarantees.risk.ladders import Ladder
from consistruct.guarantees.risk.thresholds import calibrate, check_rows, choose_method
from consistruct.learning.evaluation.evidence import binomial, capital, hoeffding_bentkus, stakes


def random_ladder(n, n_rungs, rng, *, monotone=True):
    thresholds = np.sort(rng.integers(20, size=(n, n_rungs)) / 10, axis=1)  # with ties
    thresholds[rng.random(thresholds.shape).cumsum(axis=1) > 2.5] = np.inf
    losses = rng.random((n, n_rungs + 1))
    if monotone:
        losses = np.sort(losses, axis=1)[:, ::-1]
    answered = rng.random((n, n_rungs + 1)) < 0.8
    return Ladder(thresholds, losses, answered, np.ones((n, n_rungs + 1)))


def all_or_nothing(n):
    """Always wrong on the first rung, never on the second."""
    losses = np.tile([1.0, 0.0], (n, 1))
    return Ladder(np.zeros((n, 1)), losses, np.ones((n, 2), dtype=bool), np.ones((n, 2)))


def loss_at(ladder, row, safety):
    rung = sum(threshold <= safety for threshold in ladder.thresholds[row])
    return ladder.losses[row, rung]


def test_sums_over_rows_are_those_of_single_rows():
    rng = np.random.default_rng(0)
    ladder = random_ladder(40, 4, rng, monotone=False)
    steps = ladder.steps()
    assert steps.safeties[0] == -np.inf
    assert sorted(set(steps.safeties)) == list(steps.safeties)
    for safety, total in zip(steps.safeties, steps.totals(ladder.losses), strict=True):
        assert total == pytest.approx(sum(loss_at(ladder, row, safety) for row in range(40)))
        assert ladder.at(safety).sum() == pytest.approx(total)


def test_monotonized_losses_are_the_worst_of_all_safer_rungs():
    ladder = random_ladder(30, 3, np.random.default_rng(1), monotone=False)
    for row, found in enumerate(ladder.monotonized().losses):
        assert found.tolist() == [max(ladder.losses[row, rung:]) for rung in range(4)]


def test_conformal_is_the_least_safety_that_the_definition_allows():
    rng = np.random.default_rng(2)
    for level in (0.15, 0.3, 0.6):
        ladder = random_ladder(60, 4, rng)
        ladder.losses[:, -1] = 0.0
        fine = [
            safety
            for safety in ladder.steps().safeties
            if (sum(loss_at(ladder, row, safety) for row in range(60)) + 1.0) / 61 <= level
        ]
        if not fine:  # padded rows never reach their last rung
            with pytest.raises(RiskLevelError, match="even the safest"):
                calibrate(ladder, level=level, monotone=True)
            continue
        assert calibrate(ladder, level=level, monotone=True).safety == min(fine)


def test_weighted_rows_get_the_safety_that_the_definition_gives_their_weight():
    rng = np.random.default_rng(3)
    ladder = random_ladder(80, 3, rng)
    weights = rng.random(80)
    level = float(np.median(ladder.losses))
    found = calibrate(ladder, level=level, monotone=True, weights=weights)
    for own in (0.0, 0.3, 2.0, 50.0):
        fine = [
            safety
            for safety in ladder.steps().safeties
            if sum(weights[row] * loss_at(ladder, row, safety) for row in range(80)) + own
            <= level * (weights.sum() + own)
        ]
        expected = min(fine) if fine else np.inf
        assert found.of_weights(np.array([own])).tolist() == [expected]


def test_equal_weights_change_nothing():
    ladder = random_ladder(80, 3, np.random.default_rng(4))
    plain = calibrate(ladder, level=0.5, monotone=True)
    weighted = calibrate(ladder, level=0.5, monotone=True, weights=np.ones(80))
    assert weighted.of_weights(np.ones(1)).tolist() == [plain.safety]


def test_level_above_every_loss_needs_no_rows():
    ladder = random_ladder(3, 2, np.random.default_rng(5))
    assert calibrate(ladder, level=1.0, monotone=True).safety == -np.inf


# --- evidence ---


def test_stakes_never_lose_everything():
    for n in (1, 10, 1000):
        for level in (0.001, 0.05, 0.5, 0.99):
            for stake in stakes(n, level, 0.1):
                assert 1.0 + stake * (level - 1.0) > 0.0
                assert stake > 0.0


def test_capital_has_mean_at_most_one_under_the_null():
    # exact: all 2^8 outcomes of eight coins of bias = level
    n, level = 8, 0.3
    outcomes = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    chance = np.prod(np.where(outcomes, level, 1 - level), axis=1)
    bets = stakes(n, level, 0.1)
    logs = [np.log1p(stake * (level - outcomes)).sum(axis=1) for stake in bets]
    assert chance @ np.exp(capital(logs)) == pytest.approx(1.0)


def test_hoeffding_bentkus_is_the_published_formula():
    for n, mean, level in [(50, 0.02, 0.1), (200, 0.3, 0.35), (20, 0.0, 0.2)]:
        kl = (mean * math.log(mean / level) if mean else 0.0) + (1 - mean) * math.log(
            (1 - mean) / (1 - level)
        )
        p = min(math.exp(-n * kl), math.e * binom.cdf(math.ceil(n * mean), n, level))
        found = hoeffding_bentkus(np.array([mean]), n, level)[0]
        assert found == pytest.approx(max(-math.log(p), 0.0))
    assert hoeffding_bentkus(np.array([0.5]), 10, 0.3)[0] == 0.0


def test_binomial_is_the_exact_tail():
    assert binomial(np.array([3.0]), 50, 0.2)[0] == pytest.approx(-binom.logcdf(3, 50, 0.2))


@pytest.mark.parametrize("test", ["betting", "hoeffding-bentkus", "binomial"])
@pytest.mark.parametrize("level", [0.02, 0.1, 0.4])
def test_rows_needed_is_the_fewest_that_a_perfect_model_passes_with(test, level):
    needed = rows_needed(level, 0.9, test=test)

    def passes(n):
        ladder = all_or_nothing(n)
        try:
            options = {"confidence": 0.9, "two_values": True, "method": test}
            return calibrate(ladder, level=level, monotone=True, **options).safety == 0.0
        except RiskLevelError:
            return False

    assert passes(needed)
    assert not passes(needed - 1)


def test_rows_needed_in_expectation():
    ladder = all_or_nothing(19)
    assert rows_needed(0.05) == 19
    assert calibrate(ladder, level=0.05, monotone=True).safety == 0.0
    with pytest.raises(RiskLevelError):
        calibrate(ladder.take(np.arange(18)), level=0.05, monotone=True)
    assert rows_needed(0.5, max_loss=10.0) == 19
    assert rows_needed(2.0, max_loss=1.0) == 1
    with pytest.raises(ValueError, match="above the loss of the safest"):
        rows_needed(0.1, safest=0.2)


def test_too_few_rows_say_how_many_it_takes():
    settings = {"bounds": (0.0, 1.0), "monotone": True, "safest": 0.0}
    with pytest.raises(RiskLevelError, match=r"too few rows.* it takes at least 19, got 18"):
        check_rows(18, level=0.05, confidence=None, method="conformal", **settings)
    with pytest.raises(RiskLevelError, match=r"with confidence 0.9: it takes at least 45, got 44"):
        check_rows(44, level=0.05, confidence=0.9, method="binomial", **settings)
    check_rows(45, level=0.05, confidence=0.9, method="binomial", **settings)
    with pytest.raises(RiskLevelError, match=r"the safest prediction may cost 0\.2"):
        check_rows(
            10**6, level=0.1, bounds=(0.0, 1.0), confidence=None, monotone=True,
            method="conformal", safest=0.2,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        ({"method": "magic"}, "must be one of"),
        ({"risk": "selective", "confidence": None}, "pass confidence=0.9"),
        ({"method": "conformal", "confidence": 0.9}, "guarantees the expected risk"),
        ({"method": "conformal", "monotone": False}, "not proved"),
        ({"method": "hoeffding-bentkus", "risk": "selective", "confidence": 0.9}, "betting"),
        ({"method": "binomial"}, "two values"),
        ({"method": "hoeffding-bentkus", "weighted": True}, "weighted rows"),
    ],
)
def test_methods_that_prove_nothing_are_refused(requested, message):
    settings = {"method": "auto", "monotone": True, "risk": "marginal", "confidence": None}
    with pytest.raises(ValueError, match=message):
        choose_method(**(settings | requested))


# --- the guarantee where everything is known exactly ---


def continuous_draw(n, rng):
    """Doubt uniform on [0, 1], wrong with that probability: answering below τ costs τ²/2."""
    doubt = rng.random(n)
    wrong = rng.random(n) < doubt
    losses = np.column_stack([wrong, np.zeros(n)]).astype(float)
    return Ladder(-doubt[:, None], losses, np.tile([True, False], (n, 1)), np.ones((n, 2)))


def exact_risk(safety):
    return min(max(-safety, 0.0), 1.0) ** 2 / 2


@pytest.mark.parametrize("n", [50, 400])
def test_conformal_is_at_most_two_losses_over_n_below_the_level(n):
    rng = np.random.default_rng(6)
    level, draws = 0.1, 400
    found = [calibrate(continuous_draw(n, rng), level=level, monotone=True) for _ in range(draws)]
    risks = np.array([exact_risk(threshold.safety) for threshold in found])
    error = 3 * risks.std() / math.sqrt(draws)
    assert risks.mean() <= level + error
    assert risks.mean() >= level - 2.0 / n - error


@pytest.mark.parametrize("method", ["betting", "hoeffding-bentkus", "binomial"])
def test_confidence_is_kept(method):
    rng = np.random.default_rng(7)
    draws, delta = 300, 0.2
    risks = np.array(
        [
            exact_risk(
                calibrate(
                    continuous_draw(200, rng), level=0.1, confidence=1 - delta, monotone=True,
                    method=method, two_values=True,
                ).safety
            )
            for _ in range(draws)
        ]
    )  # fmt: skip
    assert (risks > 0.1).mean() <= delta + 3 * math.sqrt(delta * (1 - delta) / draws)
    assert risks.mean() > 0.05  # and not by answering nothing
