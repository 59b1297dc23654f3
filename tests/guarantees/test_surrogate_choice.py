"""Which surrogate: the comparison inside `advise`."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from consistruct import cli
from consistruct.calibration import compare_surrogates
from consistruct.guarantees import advise, choose_surrogate
from consistruct.losses import CostMatrix, FBeta, Hamming, Mixed, Ordinal, ZeroOne

K = 10


def by_name(advice):
    return {entry.name: entry for entry in advice.entries}


def test_the_zero_one_loss_has_closed_forms():
    """H and S from MATH: among those with ε² the quadratic surrogate needs the fewest draws."""
    eps = 0.5
    found = by_name(choose_surrogate(ZeroOne(K), eps=eps))
    entropy = (1 + eps) * math.log(1 + eps) + (1 - eps) * math.log(1 - eps)
    # S = ½ E_c Var L = (k − 1)/2k², H = ε²/4k
    assert found["quadratic"].draws_most == pytest.approx((K - 1) / (2 * K**2) / (eps**2 / (4 * K)))
    # S = (k − 1)/2 by Wilks, H = ½[…]
    assert found["log, Bayes decoding"].draws_most == pytest.approx((K - 1) / 2 / (entropy / 2))
    assert found["logistic"].lower == pytest.approx(entropy / K)
    smooth = [entry for entry in found.values() if entry.name != "linear-regret"]
    assert min(smooth, key=lambda entry: entry.draws_most).name == "quadratic"
    # S = (k − 1)/2k; two other labels tie with the best one, so H = ε/3 + ε²/3 at ε = ½
    linear = found["linear-regret"]
    assert linear.draws_most == pytest.approx((K - 1) / (2 * K) / (eps / 3 + eps**2 / 3))
    best = choose_surrogate(ZeroOne(K), eps=eps).recommended
    assert best is not None
    assert best.name == "linear-regret"


def test_it_is_what_the_engine_compares():
    loss = Ordinal(5)
    advice = choose_surrogate(loss, eps=0.7)
    choices = ("quadratic", "logistic", ("log", "bayes"), "linear-regret")
    engine = compare_surrogates(loss, choices, eps=[0.7])
    assert [entry.name for entry in advice.entries] == [curve.name for curve in engine.curves]
    for entry, curve in zip(advice.entries, engine.curves, strict=True):
        assert (entry.draws_least, entry.draws_most) == curve.draws[0]
        assert entry.lower <= entry.upper
    draws = [math.inf if e.draws_most is None else e.draws_most for e in advice.entries]
    best = advice.entries[int(np.argmin(draws))]
    assert advice.recommended is best
    assert "the fewest;" in advice.reason
    assert "\n" not in advice.reason


def test_hamming_is_a_tie_that_the_log_loss_wins_by_little():
    found = by_name(choose_surrogate(Hamming(1000), eps=0.3))
    assert found["quadratic"].draws_most == pytest.approx(1 / 0.3**2)
    assert found["log, Bayes decoding"].draws_most < found["quadratic"].draws_most
    assert found["logistic"].draws_most is None


def test_bounds_say_that_they_are_bounds():
    advice = choose_surrogate(Mixed((5,) * 20, 0.1), eps=0.5)
    found = by_name(advice)
    assert found["logistic"].status == "bounds"
    assert "more than 32 labels" in found["logistic"].method
    assert "the fewest that are guaranteed" in advice.reason
    assert "logistic at most" in advice.reason


def test_what_takes_too_long_is_refused_with_a_reason():
    rng = np.random.default_rng(0)
    advice = choose_surrogate(CostMatrix(rng.random((24, 24)), rows="pred"), eps=0.5)
    ((name, reason),) = advice.refused
    assert name == "logistic"
    assert "above 20 labels, and there are 24" in reason
    assert "compare_surrogates" in reason


def test_nothing_to_prove_above_the_largest_excess():
    advice = choose_surrogate(ZeroOne(3), eps=2.0)
    assert advice.recommended is None
    assert all("no excess risk is above 1" in reason for _, reason in advice.refused)


def test_losses_without_a_uniform_measure_are_compared_by_bounds():
    found = by_name(choose_surrogate(FBeta(4), eps=0.3))
    assert found["log, Bayes decoding"].status == "bounds"
    assert math.isnan(found["logistic"].consistency_level)
    for entry in found.values():
        assert entry.lower <= entry.upper


def test_advise_compares_where_it_was_requested():
    loss = Mixed((2, 2), 0.2)
    advice = advise(loss, eps=0.4)
    assert advice.surrogates is not None
    assert advice.surrogates.eps == 0.4
    assert advise(loss, eps=0.4, surrogates=False).surrogates is None
    budget = advise(loss, n_samples=100_000)
    assert budget.surrogates is not None
    assert budget.recommended is not None
    assert budget.surrogates.eps == budget.recommended.eps
    hopeless = advise(loss, n_samples=1)
    assert hopeless.recommended is None
    assert hopeless.surrogates is not None
    assert hopeless.surrogates.eps == 0.5  # half the largest excess


def test_the_command_prints_it_as_text_and_json(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    run = CliRunner().invoke(cli.app, ["advise", "mixed:20x5:0.1", "--eps", "0.5"])
    assert run.exit_code == 0
    assert "quadratic: n(ε) = S/H(ε) at ε = 0.5 is 24.29 draws" in run.output
    assert "linear-regret at most 29.84" in run.output
    assert "logistic: bounds: more than 32 labels" in run.output
    run = CliRunner().invoke(cli.app, ["advise", "zero-one:4", "--eps", "0.5", "--json"])
    found = json.loads(run.output)["surrogates"]
    assert found["recommended"] == "linear-regret"
    assert {entry["name"] for entry in found["entries"]} >= {"quadratic", "logistic"}
    arguments = ["advise", "zero-one:4", "--eps", "0.5", "--json", "--no-surrogates"]
    assert json.loads(CliRunner().invoke(cli.app, arguments).output)["surrogates"] is None
