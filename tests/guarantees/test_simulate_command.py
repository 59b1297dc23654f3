"""``consistruct simulate``."""

from __future__ import annotations

import json
import sys

import pytest

from consistruct import cli
from consistruct.guarantees import constants
from consistruct.guarantees.simulation import curves


def run(monkeypatch, capsys, *arguments):
    """The command as a user runs it: exit code, stdout, stderr."""
    monkeypatch.setattr(sys, "argv", ["consistruct", "simulate", *arguments])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    captured = capsys.readouterr()
    return raised.value.code, captured.out, captured.err


def test_measured_beside_promised(monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "hamming:20", "--steps", "10,100", "--repeats", "3")
    assert code == 0
    for word in (
        "1048576 labels",
        "4 anchor distributions",
        "Th. 5",
        "below their bounds at every N",
    ):
        assert word in out
    arguments = ("mixed:4x3:0.1", "--scores", "blocks:4x3", "--constants", "paper", "--json")
    code, out, _ = run(monkeypatch, capsys, *arguments, "--steps", "10,100", "--seed", "5")
    found = json.loads(out)
    assert (code, found["holds"], found["variant"]) == (0, True, "paper")
    assert [point["n_steps"] for point in found["points"]] == [10, 100]
    assert found["effective_classes"] is None  # the blocks do not express the loss


def test_a_bound_that_fails_is_exit_code_1(monkeypatch, capsys):
    right = constants.sharp_constants

    def too_small(*arguments, **options):
        from dataclasses import replace

        found = right(*arguments, **options)
        return replace(found, factor=found.factor / 1e6)

    monkeypatch.setattr(curves, "sharp_constants", too_small)
    code, out, _ = run(monkeypatch, capsys, "zero-one:4", "--steps", "10,100", "--repeats", "3")
    assert code == 1
    assert "NOT below their bounds" in out


def test_the_study(monkeypatch, capsys):
    monkeypatch.setattr("consistruct.guarantees.simulation.hardness.STEPS", (10, 100, 1000))
    monkeypatch.setattr(
        "consistruct.guarantees.simulation.hardness.PROBLEMS",
        curves_problems(),
    )
    code, out, _ = run(monkeypatch, capsys, "--study", "--repeats", "2", "--eps", "0.05", "--json")
    assert code == 0
    found = json.loads(out)
    assert len(found["rows"]) == 2 * 9  # problems, and all anchors with all noises
    assert ["k_eff"] in [fit["explained_by"] for fit in found["fits"]]
    monkeypatch.setenv("COLUMNS", "160")
    code, out, _ = run(monkeypatch, capsys, "--study", "--repeats", "2", "--eps", "0.05")
    assert code == 0
    assert "explained by" in out


def curves_problems():
    from consistruct.losses import Hamming, ZeroOne

    return (("0-1", ZeroOne(4), None), ("Hamming", Hamming(5), None))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "pass a loss, for example hamming:20, or --study"),
        (("hamming:3", "--study"), "pass a loss, for example hamming:20, or --study"),
        (("hamming:3", "--steps", "10,x"), "--steps must be integers separated by commas"),
        (("hamming:3", "--constants", "mine"), "variant must be one of paper, sharp, known"),
        (("zero-one:100000",), "at most 4096 truths, or a Hamming or block loss"),
        (("hamming:3", "--noise", "-1"), "noise must be"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(monkeypatch, capsys, arguments, message):
    code, out, err = run(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
