"""Guaranteed risk against known risk, for every registered loss and every policy that serves it,
by many draws of calibration rows from a population (CONSISTRUCT_NIGHTLY=1: 10,000 each, else 200).
"""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

from consistruct.guarantees.risk.policies import POLICIES
from consistruct.guarantees.risk.thresholds import calibrate
from tests.guarantees.risk.populations import population, served
from tests.guarantees.risk.test_thresholds import continuous_draw, exact_risk

DRAWS = 10_000 if os.environ.get("CONSISTRUCT_NIGHTLY") == "1" else 200
ROWS = 300
DELTA = 0.1
SERVED = served()


def most(share):
    """A share of draws and three standard errors."""
    return share + 3 * math.sqrt(share * (1 - share) / DRAWS)


@pytest.mark.parametrize(("name", "policy"), SERVED)
def test_mean_risk(name, policy, record_property):
    found = population(name, policy)
    risks = found.risks(DRAWS, ROWS, seed=11)
    record_property("cases", DRAWS)
    assert risks.mean() <= found.level + 3 * risks.std() / math.sqrt(DRAWS)


@pytest.mark.parametrize(("name", "policy"), SERVED)
def test_risk_with_confidence(name, policy, record_property):
    found = population(name, policy)
    risks = found.risks(DRAWS, ROWS, seed=12, confidence=1 - DELTA)
    record_property("cases", DRAWS)
    assert (risks > found.level).mean() <= most(DELTA)


@pytest.mark.parametrize(("name", "policy"), [pair for pair in SERVED if POLICIES[pair[1]].silent])
def test_selective_risk(name, policy, record_property):
    found = population(name, policy, selective=True)
    risks = found.risks(DRAWS, ROWS, seed=13, confidence=1 - DELTA, risk="selective")
    record_property("cases", DRAWS)
    assert (risks > found.level).mean() <= most(DELTA)


@pytest.mark.parametrize(("name", "policy"), [("fbeta", "threshold"), ("cost", "defer")])
def test_monotonized_losses(name, policy, record_property):
    found = population(name, policy)
    risks = found.risks(DRAWS, ROWS, seed=14, method="monotonized")
    record_property("cases", DRAWS)
    assert risks.mean() <= found.level + 3 * risks.std() / math.sqrt(DRAWS)


@pytest.mark.parametrize("n", [30, 300])
def test_conservativeness_of_a_continuous_family(n, record_property):
    rng = np.random.default_rng(15)
    level = 0.1
    risks = np.array(
        [
            exact_risk(calibrate(continuous_draw(n, rng), level=level, monotone=True).safety)
            for _ in range(5 * DRAWS)
        ]
    )
    error = 3 * risks.std() / math.sqrt(len(risks))
    record_property("cases", 5 * DRAWS)
    assert risks.mean() <= level + error
    assert level - risks.mean() <= 2.0 / n + error
