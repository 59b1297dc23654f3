"""``analyze --surrogate … --decoding …``."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

import consistruct as cs
from consistruct import cli


def analyze(*arguments):
    return CliRunner().invoke(cli.app, ["analyze", *arguments])


def test_json_names_surrogate_and_decoding():
    result = analyze("zero-one:3", "--surrogate", "hinge", "--eps", "0.25,0.75", "--json")
    assert result.exit_code == 0
    found = json.loads(result.output)
    assert (found["surrogate"], found["decoding"]) == ("hinge", "argmax")
    assert found["consistency_level"] == pytest.approx(0.5)
    assert found["effective_classes"] is None
    assert [point["upper"] for point in found["curve"]] == pytest.approx([0.0, 0.5])


def test_certificates_of_hinges_are_checked(tmp_path):
    H = cs.calibration_function(cs.losses.Ordinal(4), surrogate="hinge")
    certificate: Any = H.certificate(1.5)
    path = tmp_path / "certificate.json"
    path.write_text(certificate.to_json(), encoding="utf-8")
    result = CliRunner().invoke(cli.app, ["check", str(path), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.output)["kind"] == "polyhedral"
    forged = replace(certificate, lower=certificate.upper * 1.01)
    path.write_text(forged.to_json(), encoding="utf-8")
    assert CliRunner().invoke(cli.app, ["check", str(path)]).exit_code == 1


def test_what_is_not_known_is_null_in_json_and_stated_in_text():
    arguments = ("hamming:4", "--surrogate", "hinge", "--eps", "0.5")
    found = json.loads(analyze(*arguments, "--json").output)
    assert found["consistency_level"] is None
    assert found["curve"][0]["status"] == "bounds"
    text = analyze(*arguments).output
    assert "not known" in text
    assert "ε²/4H" not in text


def test_bayes_decoding():
    found = json.loads(
        analyze(
            "ordinal:3", "--surrogate", "log", "--decoding", "bayes", "--eps", "1", "--json"
        ).output
    )
    assert found["consistency_level"] == 0
    assert found["curve"][0]["lower"] > 1 / 8  # ε²/2Lmax²


def test_bad_choices_are_one_line(monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv", ["consistruct", "analyze", "zero-one:3", "--surrogate", "perceptron"]
    )
    with pytest.raises(SystemExit) as raised:
        cli.main()
    assert raised.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("consistruct: surrogate must be one of quadratic, logistic")
    assert error.count("\n") == 1
