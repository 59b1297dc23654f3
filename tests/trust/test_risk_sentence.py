"""What risk control with a confidence states, by draws from populations where all is known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import consistruct as cs
from consistruct.exceptions import RiskLevelError

CONFIDENCE, DRAWS, ROWS, POPULATION = 0.9, 120, 200, 20_000


def population(error):
    """Two classes distinguished by the sign of x, but wrong with probability `error(|x|)`."""

    def draw(n, rng):
        X = rng.uniform(-1.0, 1.0, (n, 1))
        wrong = rng.random(n) < error(np.abs(X[:, 0]))
        return X, (X[:, 0] > 0).astype(int) ^ wrong

    model = cs.TaskLossClassifier("zero_one", cs.models.Probabilities(LogisticRegression()))
    return draw, model.fit(*draw(300, np.random.default_rng(0)))


def issued(draw, model, **settings):
    """The true risk of every rule that some calibration set gave, and one of the guarantees."""
    rng = np.random.default_rng(1)
    X, y = draw(POPULATION, rng)
    risks, guarantee = [], None
    for _ in range(DRAWS):
        safe = cs.RiskControl(model, confidence=CONFIDENCE, policy="abstain", **settings)
        try:
            safe.fit(*draw(ROWS, rng))
        except RiskLevelError:
            continue
        found = safe.evaluate(X, y)
        selective = settings.get("risk") == "selective"
        risks.append((found.selective_risk if selective else found.risk).estimate)
        guarantee = safe.guarantee_
    return SimpleNamespace(risks=np.array(risks), guarantee=guarantee)


def test_few_calibration_sets_give_a_rule_that_breaks_the_level_but_all_of_these_may():
    draw, model = population(lambda distance: np.full(len(distance), 0.25))
    found = issued(draw, model, level=0.24, risk="selective")
    broken = (found.risks > 0.24).sum()
    assert broken / DRAWS <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / DRAWS)  # what is stated
    assert 0 < len(found.risks) < DRAWS
    # every answer is wrong with probability 0.25: rules that are issued are mostly broken
    assert broken / len(found.risks) > 0.5
    assert "no rule is issued that exceeds it" in str(found.guarantee)
    assert "of the rules that are issued a larger share may exceed it" in str(found.guarantee)
    assert not found.guarantee.always


def test_where_every_calibration_set_gives_a_rule_the_level_is_kept_by_ninety_of_a_hundred():
    draw, model = population(lambda distance: 0.4 * (1.0 - distance))
    found = issued(draw, model, level=0.1)
    assert len(found.risks) == DRAWS
    assert (found.risks > 0.1).mean() <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / DRAWS)
    assert found.risks.mean() > 0.05  # and not by answering nothing
    assert "this holds of 90 of 100 issued rules" in str(found.guarantee)
    assert found.guarantee.always


def test_levels_and_confidences_are_printed_as_they_were_requested():
    """0.12345649 was printed as 0.123456, which is below it, and 0.9999999 as 1."""
    draw, model = population(lambda distance: np.full(len(distance), 0.0))
    rows = draw(500, np.random.default_rng(1))
    for confidence in (0.9999999, 0.57):
        safe = cs.RiskControl(model, level=0.12345649, confidence=confidence, policy="abstain")
        stated = str(safe.fit(*rows).guarantee_)
        assert "at most 0.12345649 for" in stated
        assert f"with probability {confidence} over" in stated
        share = {0.9999999: "99.99999", 0.57: "57"}[confidence]
        assert f"this holds of {share} of 100 issued rules" in stated
    with pytest.raises(RiskLevelError, match=r"level 0\.12345649 with confidence 0\.9999999:"):
        safe.set_params(confidence=0.9999999).fit(*draw(20, np.random.default_rng(1)))


@pytest.mark.parametrize("name", ["risk.md", "howto/metrics.md"])
def test_the_documentation_states_nothing_else(name, request):
    text = (request.config.rootpath / "docs" / name).read_text(encoding="utf-8")
    assert "at least 90 of 100 calibration sets" not in text
    assert "a condition holds with probability `confidence`" not in text
