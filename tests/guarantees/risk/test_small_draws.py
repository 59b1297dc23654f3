"""The guarantee, by a few draws for every kind of policy; tests/long has all of them."""

from __future__ import annotations

import math

import pytest

from tests.guarantees.risk.populations import population

DRAWS, ROWS = 40, 250


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("cost", "sets"),
        ("ordinal", "abstain"),
        ("tree", "ancestor"),
        ("fbeta", "grow"),
        ("fbeta", "threshold"),
        ("ndcg", "list"),
        ("zero-one", "defer"),
    ],
)
def test_the_risk_is_at_most_the_level(name, policy):
    found = population(name, policy)
    risks = found.risks(DRAWS, ROWS, seed=0)
    assert risks.mean() <= found.level + 3 * risks.std() / math.sqrt(DRAWS)
    sure = found.risks(DRAWS, ROWS, seed=1, confidence=0.8)
    assert (sure > found.level).mean() <= 0.2 + 3 * math.sqrt(0.16 / DRAWS)
