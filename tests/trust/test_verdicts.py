"""`consistruct check` states what is proved, exactly, and compares it with one's own problem."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import consistruct as cs
from consistruct.calibration.proofs import from_json
from consistruct.calibration.proofs.base import PlainCertificate
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.cli import app
from consistruct.exceptions import CertificateError
from tests.frozen.adapters import CERTIFIED, SHARE


def run(*arguments):
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


@pytest.fixture(scope="module")
def genuine():
    """Each kind of certificate once, with its curve."""
    made = {}
    for case, make in CERTIFIED.items():
        H = make()
        made[case] = H, H.certificate(SHARE * H.max_eps)
    return made


def written(tmp_path, text):
    path = tmp_path / "certificate.json"
    path.write_text(text if isinstance(text, str) else text.to_json(), encoding="utf-8")
    return path


def near_two():
    """H(2 + 1e-18) of costs 0 and 5: ε²/4k, one pair."""
    base = cs.calibration_function(cs.losses.CostMatrix(5 * (1 - np.eye(3))), "full").certificate(2)
    assert isinstance(base, ListedCertificate)
    eps = 2 + Fraction(1, 10**18)
    value, share = eps**2 / 12, eps / 5
    i, j = base.pair
    distribution = [Fraction(0)] * 3
    distribution[i], distribution[j] = (1 + share) / 2, (1 - share) / 2
    return replace(
        base,
        eps=eps,
        lower=value,
        upper=value,
        distribution=distribution,
        level=Fraction(-5, 2),
        points={},
    )


def test_epsilon_is_printed_exactly(tmp_path):
    path = written(tmp_path, near_two())
    done = run(path)
    assert done.exit_code == 0
    assert "ε = 2000000000000000001/1000000000000000000" in done.stdout
    assert (
        json.loads(run(path, "--json").stdout)["eps"] == "2000000000000000001/1000000000000000000"
    )


def test_printed_intervals_contain_the_proved_one(tmp_path, genuine):
    certificates = [proof for _, proof in genuine.values()]
    for proof in [near_two(), *certificates]:
        path = written(tmp_path, proof)
        done, reported = run(path), json.loads(run(path, "--json").stdout)
        low, high = re.search(r"in \[(\S+), (\S+)\]", done.stdout).groups()
        lower, upper = (Fraction(x) * proof.scale for x in (proof.lower, proof.upper))
        assert Fraction(low) <= lower <= upper <= Fraction(high)
        assert Fraction(high) - Fraction(low) <= upper - lower + Fraction(1, 10**15) * upper
        assert (Fraction(reported["lower"]), Fraction(reported["upper"])) == (lower, upper)
        assert (
            Fraction(reported["interval"][0]) <= lower <= upper <= Fraction(reported["interval"][1])
        )


WORDS = {
    "listed": ("5 predictions × 4 true labels", "F of 5 × 4", "quadratic", "uniform", "all"),
    "listed, free scores": ("5 predictions", "one free score per prediction", "quadratic", "", ""),
    "mixed": ("block", "per block", "quadratic", "uniform", "all"),
    "hamming": ("6 with 2 states", "per prediction", "quadratic", "uniform", "all"),
    "hamming, separable": ("50 with 3 states", "per part and state", "quadratic", "", ""),
    "orders": ("8 items", "per item", "quadratic", "orders", "all"),
    "pairs": ("wrong order, 6 items", "pair of items", "quadratic", "orders", "all"),
    "states": ("5 with 3 states", "neighboring", "quadratic", "uniform", "all"),
    "chain": ("9 with 2 states", "neighboring", "quadratic", "uniform", "all"),
    "sizes": ("sets of 8 labels, beta = 1;", "own", "quadratic", "sizes of sets", "all"),
    "sets": ("sets of 4 labels, beta = 2;", "own", "quadratic", "sizes of sets", "all"),
    "restricted": (
        "5 predictions × 4 true labels",
        "F of 5 × 4",
        "quadratic",
        "",
        "noise at rate 1/4",
    ),
    "polyhedral": ("3 predictions", "per prediction", "hinge", "none", "all"),
    "polyhedral, max-min": ("6 predictions", "per prediction", "max-min", "none", "all"),
    "divergence": ("3 predictions × 3", "argmax", "log", "none", "all"),
    "divergence, sparsemax": ("", "least expected loss", "sparsemax", "none", "all"),
    "bregman": ("2 predictions", "per prediction", "logistic", "uniform", "all"),
    "ties": ("from 0 to 5", "per prediction", "linear regret with κ = 5", "none", "all"),
}


def test_the_verdict_states_the_problem_in_words(tmp_path, genuine):
    assert {case.partition(",")[0] for case in WORDS} == {
        case.partition(",")[0] for case in CERTIFIED
    }
    for case, words in WORDS.items():
        path = written(tmp_path, genuine[case][1])
        text, reported = run(path).stdout, json.loads(run(path, "--json").stdout)
        names = ("loss", "scores", "surrogate", "measure", "distributions")
        for name, part in zip(names, words, strict=True):
            assert part in reported[name], (case, name)
            assert reported[name] in text
        assert re.fullmatch("[0-9a-f]{64}", reported["sha256"])
        assert reported["sha256"] in text


def test_a_problem_has_one_hash_whatever_epsilon(genuine, tmp_path):
    def sha(proof):
        return json.loads(run(written(tmp_path, proof), "--json").stdout)["sha256"]

    H, proof = genuine["listed, free scores"]
    assert sha(proof) == sha(H.certificate(0.3 * H.max_eps))
    document = json.loads(proof.to_json())
    document["loss"] = [[str(Fraction(x)) for x in row] for row in document["loss"]]
    assert sha(json.dumps(document)) == sha(proof)
    hashes = [sha(proof) for _, proof in genuine.values()]
    assert len(set(hashes)) == len(hashes)


def test_every_kind_is_compared_with_ones_own_loss_and_scores(genuine):
    others = [cs.losses.Hamming(3), cs.losses.ZeroOne(4), cs.losses.FBeta(5), cs.losses.NDCG(4)]
    for H, proof in genuine.values():
        read = from_json(proof.to_json())
        read.check(H.loss)
        if H.surrogate in ("quadratic", "hinge", "max-min-margin"):
            read.check(H.loss, H.scores)
        for other in others:
            with pytest.raises(CertificateError, match="about another problem"):
                read.check(other)
        if H.loss.n_labels < 1000 and H.surrogate == "quadratic":
            size = H.loss.n_labels
            narrow = cs.structures.Dense(np.arange(2.0 * size).reshape(size, 2) ** 2)
            with pytest.raises(CertificateError, match="about another problem: its"):
                read.check(H.loss, narrow)


def test_the_command_compares_too(tmp_path):
    proof = cs.calibration_function("ordinal:4", "full").certificate(1.5)
    path = written(tmp_path, proof)
    assert run(path, "--loss", "ordinal:4", "--scores", "full").exit_code == 0
    for options in (("--loss", "ordinal:5"), ("--loss", "zero-one:4")):
        done = run(path, *options)
        assert done.exit_code == 1
        assert done.stdout.startswith(
            "refused: this certificate is about another problem: its loss"
        )
        assert len(done.stdout.splitlines()) == 1
    costs = tmp_path / "costs.csv"
    costs.write_text("0,1,2,3\n1,0,1,2\n2,1,0,1\n3,2,1.0000000000000002,0\n")
    done = run(path, "--loss", f"cost:{costs}", "--rows", "pred")
    assert done.exit_code == 1
    assert "4503599627370497/4503599627370496" in done.stdout
    F = tmp_path / "scores.csv"
    F.write_text("1,0\n1,1\n1,2\n1,3\n")
    done = run(path, "--loss", "ordinal:4", "--scores", f"matrix:{F}")
    assert done.exit_code == 1
    assert "its scores have rank 4" in done.stdout
    done = run(path, "--scores", "full")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)


def test_scores_are_compared_by_their_span(tmp_path):
    F = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 3.0], [1.0, 7.0]]) ** 2  # a curve: all can win
    F = np.column_stack([np.ones(4), np.array([0.0, 1.0, 2.0, 3.0]), F[:, 1]])
    loss = cs.losses.Ordinal(4)
    proof = cs.calibration_function(loss, cs.structures.Dense(F)).certificate(2.5)
    assert isinstance(proof, PlainCertificate)
    proof.check(loss, cs.structures.Dense(F @ [[2.0, 3.0, 1.0], [1.0, -1.0, 0.0], [0.0, 1.0, 1.0]]))
    F[3, 1] += 2.0**-40
    with pytest.raises(CertificateError, match="another space of rank 3"):
        proof.check(loss, cs.structures.Dense(F))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 2, "kind": "listed", "eps": 1, "eps": 2}', "has the key 'eps' twice"),
        ('{"schema": 2, "kind": "mixed", "points": {"a": 1, "a": 1}}', "has the key 'a' twice"),
        ("[" * 100_000 + "]" * 100_000, "nested deeper"),
        ('{"schema": 2, "kind": "listed", "loss": ' + "[" * 900 + "]" * 900 + "}", "nested deeper"),
        ('{"a": ' * 50_000 + "1" + "}" * 50_000, "nested deeper"),
        ('{"schema": 1, "kind": "listed"}', "certificates of schema 1 are not read"),
        ('{"kind": "listed"}', "certificates of schema None are not read"),
    ],
)
def test_what_is_no_certificate_is_refused_in_one_line(tmp_path, text, message):
    done = run(written(tmp_path, text))
    assert done.exit_code == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    with pytest.raises(CertificateError):
        from_json(text)


def test_a_second_key_cannot_hide_in_a_genuine_file(tmp_path, genuine):
    for _, proof in genuine.values():
        text = proof.to_json()
        done = run(written(tmp_path, text.replace('"lower"', '"lower": 0, "lower"', 1)))
        assert done.exit_code == 2
        assert "has the key 'lower' twice" in done.stderr
