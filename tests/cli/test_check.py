"""``consistruct check``: the verdict on a certificate file, by exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from typer.testing import CliRunner

import consistruct as cs
from consistruct.cli import app


@pytest.fixture
def certificate():
    return cs.calibration_function(cs.losses.Ordinal(4), "full").certificate(1.5)


def run(*arguments):
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def test_a_genuine_certificate(certificate, tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(certificate.to_json())
    done = run(path)
    assert done.exit_code == 0
    assert done.stdout.startswith("proved: H(ε) in [")
    assert "ε = 3/2 (= 1.5)" in done.stdout
    reported = json.loads(run(path, "--json").stdout)
    assert reported["verdict"] == "proved"
    assert (reported["eps"], reported["kind"]) == ("3/2", "listed")
    assert reported["interval"] == [certificate.lower, certificate.upper]
    assert Fraction(reported["lower"]) == Fraction(certificate.lower)
    assert Fraction(reported["upper"]) == Fraction(certificate.upper)


def test_a_forged_one(certificate, tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(replace(certificate, upper=certificate.upper / 2).to_json())
    done = run(path)
    assert done.exit_code == 1
    assert done.stdout.startswith("refused: this certificate proves nothing: the point has")
    reported = run(path, "--json")
    assert reported.exit_code == 1
    assert json.loads(reported.stdout)["verdict"] == "refused"


def test_half_a_certificate_is_refused(certificate, tmp_path):
    document = json.loads(certificate.to_json())
    del document["distribution"]
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(document))
    assert run(path).exit_code == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("{", "Expecting property name"),
        ("[1]", "not a certificate"),
        (b"\xff\xfe{}", "is not JSON: 'utf-8' codec"),
    ],
)
def test_other_files(tmp_path, text, message):
    path = tmp_path / "certificate.json"
    if isinstance(text, bytes):
        path.write_bytes(text)
    elif text is not None:
        path.write_text(text)
    done = run(path)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("kind", [["listed"], {"listed": 1}, None, 3])
def test_a_kind_that_is_no_word(certificate, tmp_path, kind):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps({**json.loads(certificate.to_json()), "kind": kind}))
    done = run(path)
    assert done.exit_code == 2
    assert "its kind must be one of" in done.output


def test_ends_may_be_fractions_or_beyond_floats(certificate, tmp_path):
    """They are reported rounded outward: never tighter than what was proved."""
    document = json.loads(certificate.to_json())
    document.update(lower="0/1", upper=f"{10**400}/3")
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(document))
    reported = json.loads(run(path, "--json").stdout)
    assert (reported["verdict"], reported["interval"]) == ("proved", [0.0, None])
    assert [int(part, 0) for part in reported["upper"].split("/")] == [10**400, 3]
    done = run(path)
    assert done.stdout.startswith("proved: H(ε) in [0, 3.3333333333333334e399] at ε = 3/2")
    document.update(upper="1/3")
    path.write_text(json.dumps(document))
    reported = json.loads(run(path, "--json").stdout)
    assert reported["interval"][1] > Fraction(1, 3) > reported["interval"][1] - 1e-16
    assert reported["upper"] == "1/3"


def test_numbers_beyond_floats_are_refused_in_one_line(certificate, tmp_path):
    document = json.loads(certificate.to_json())
    document["loss"] = [[10**400 * int(entry) for entry in row] for row in document["loss"]]
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(document))
    done = run(path)
    assert done.exit_code == 1
    assert done.stdout.startswith("refused: ")
    assert len(done.stdout.splitlines()) == 1
