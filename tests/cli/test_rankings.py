"""fit, predict and evaluate on the items of queries, and on label sets."""

from __future__ import annotations

import csv
import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from consistruct.cli import app
from consistruct.learning import StructuredPredictor, load
from consistruct.learning.models.items.model import Items

RNG = np.random.default_rng(0)
LENGTHS = RNG.integers(1, 9, size=40)
QUERIES = np.repeat(np.arange(40), LENGTHS)
X = RNG.normal(size=(len(QUERIES), 3)).round(3)
GRADES = np.clip(np.round(X[:, 0] - X[:, 1] + 1), 0, 3).astype(int)


def run(*arguments: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    if code == 2:
        assert "Traceback" not in result.output
    return result


@pytest.fixture
def svmlight(tmp_path):
    path = tmp_path / "items.svm"
    lines = (
        f"{grade} qid:{query} " + " ".join(f"{j + 1}:{value}" for j, value in enumerate(row))
        for grade, query, row in zip(GRADES, QUERIES, X, strict=True)
    )
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "items.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "grade", "query"])
        for row, grade, query in zip(X.tolist(), GRADES, QUERIES, strict=True):
            writer.writerow([*row, grade, f"q{query}"])
    return path


def test_queries_of_an_svmlight_file(svmlight, tmp_path):
    model = tmp_path / "ranker.safetensors"
    fitted = json.loads(
        run(
            "fit", svmlight, "--format", "svmlight", "--loss", "ndcg", "--model", model, "--json"
        ).stdout
    )
    assert (fitted["n_queries"], fitted["n_examples"]) == (40, len(X))
    python = StructuredPredictor("ndcg", random_state=0)
    items = sp.csr_array(X)  # as the file holds them
    python.fit(items, GRADES, groups=QUERIES)
    assert fitted["training_loss"] == pytest.approx(-python.score(items, GRADES, groups=QUERIES))
    read = ("--format", "svmlight", "--json")
    evaluated = json.loads(run("evaluate", model, svmlight, *read).stdout)
    assert evaluated["n_queries"] == 40
    assert evaluated["mean_loss"] == pytest.approx(fitted["training_loss"])
    predicted = json.loads(run("predict", model, svmlight, *read).stdout)
    assert predicted["predictions"] == python.predict(items, groups=QUERIES).tolist()


def test_queries_of_a_table(table, tmp_path):
    model, out = tmp_path / "ranker.safetensors", tmp_path / "ranks.csv"
    columns = ("--target", "grade", "--groups", "query")
    ridge = ("--learner", "items", "--set", "model=ridge", "--set", "features=linear")
    run("fit", table, *columns, "--loss", "ndcg::5", *ridge, "--model", model)
    estimator = load(model)
    assert estimator.loss_.q == 5
    run("predict", model, table, "--out", out)
    lines = out.read_text().split()
    assert lines[0] == "rank"
    ranks = np.array(lines[1:], dtype=int)
    np.testing.assert_array_equal(ranks, estimator.predict(X, groups=QUERIES))
    assert run("evaluate", model, table, "--at-most", 0.2).exit_code == 0


def test_trees_by_name(table, tmp_path):
    model = tmp_path / "ranker.safetensors"
    columns = ("--target", "grade", "--groups", "query")
    trees = ("--learner", "items", "--set", "model=trees")
    fitted = json.loads(
        run("fit", table, *columns, "--loss", "ndcg", *trees, "--model", model, "--json").stdout
    )
    assert fitted["training_loss"] < 0.1
    python = StructuredPredictor("ndcg", Items("trees"), random_state=0)
    python.fit(X, GRADES, groups=QUERIES)
    predicted = json.loads(run("predict", model, table, "--json").stdout)
    assert predicted["predictions"] == python.predict(X, groups=QUERIES).tolist()


def test_ranking_without_queries_gets_one_line(table, tmp_path):
    result = run(
        "fit", table, "--target", "grade", "--ignore", "query", "--loss", "ndcg",
        "--model", tmp_path / "m.safetensors", code=2,
    )  # fmt: skip
    assert "name the query column with --groups" in " ".join(result.output.split())


def test_expected_loss_of_a_ranking_gets_one_line(svmlight, tmp_path):
    model = tmp_path / "ranker.safetensors"
    run("fit", svmlight, "--format", "svmlight", "--loss", "ndcg", "--model", model)
    result = run("predict", model, svmlight, "--format", "svmlight", "--expected-loss", code=2)
    assert "comparable only within a query" in " ".join(result.output.split())


def test_label_sets(tmp_path):
    sets = (X > 0).astype(int)
    path, model = tmp_path / "sets.csv", tmp_path / "sets.safetensors"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "red", "green", "blue"])
        writer.writerows([*row, *labels] for row, labels in zip(X.tolist(), sets, strict=True))
    targets = [part for name in ("red", "green", "blue") for part in ("--target", name)]
    run("fit", path, *targets, "--loss", "fbeta", "--model", model)
    assert load(model).loss_.sizes == tuple(np.unique(sets.sum(axis=1)).tolist())
    assert run("evaluate", model, path, "--at-most", 0.1).exit_code == 0
