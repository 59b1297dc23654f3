"""The cheat sheet is true: its specs parse, its hardness is computed, its estimators fit."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import consistruct as cs
from consistruct.losses import parse_loss
from consistruct.losses.metrics.registry import METRICS
from consistruct.losses.registry import LOSSES

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "cheatsheet.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
ROW = re.compile(r"^\| (.+?) \| `(.+?)` \| `(.+?)` \| `loss=(.+?)` \| ([\d.]+) \|$", re.MULTILINE)
METRIC_ROW = re.compile(
    r"^\| (.+?) \| (two classes|classes|label sets) \| `loss=\"(.+?)\"` \|$", re.M
)
METRIC_ROWS = METRIC_ROW.findall(SECTIONS["Metrics of the whole data set"])
ROWS = [(section, *row) for section, text in SECTIONS.items() for row in ROW.findall(text)]
rows = pytest.mark.parametrize(
    ("section", "criterion", "call", "spec", "argument", "hardness"),
    ROWS,
    ids=lambda value: str(value)[:30],
)


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """What costs.csv and animals.csv stand for."""
    shutil.copyfile(ROOT / "examples" / "triage_costs.csv", tmp_path / "costs.csv")
    shutil.copyfile(ROOT / "examples" / "animals_tree.csv", tmp_path / "animals.csv")
    monkeypatch.chdir(tmp_path)


def test_every_loss_is_on_the_page():
    assert {spec.split(":")[0] for _, _, _, spec, _, _ in ROWS} == set(LOSSES)
    table_lines = [line for line in PAGE.splitlines() if line.startswith("| ") and "`" in line]
    headings = [line for line in table_lines if line.startswith("| I am judged by")]
    assert len(ROWS) + len(METRIC_ROWS) == len(table_lines) - len(headings), (
        "a row is not read: mind its form"
    )


def test_every_metric_is_on_the_page():
    assert {spec.split(":")[0] for _, _, spec in METRIC_ROWS} | {"f-beta"} == set(METRICS)


@pytest.mark.parametrize(("criterion", "kind", "spec"), METRIC_ROWS, ids=lambda value: value[:30])
def test_estimator_of_a_metric_fits_and_predicts(criterion, kind, spec):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    X[:, 0] = X[:, 0] > 0
    scores = X[:, 1:] @ [2.0, 1.0] + rng.logistic(size=600)
    cuts = {"two classes": [0.5], "classes": [-2.0, 1.0]}.get(kind)
    if cuts is None:
        y = (X @ rng.normal(size=(3, 4)) + rng.logistic(size=(600, 4)) > 1.0).astype(int)
    else:
        y = np.searchsorted(cuts, scores)
    model = cs.TaskLossClassifier(spec, cs.models.Ridge("linear", alpha=1e-3)).fit(X, y)
    assert model.predict(X).shape == y.shape
    assert model.score(X, y) > 0


@rows
def test_loss_spec_and_hardness(section, criterion, call, spec, argument, hardness):
    loss = parse_loss(spec)
    assert call.split("(")[0] == type(loss).__name__
    digits = len(hardness.partition(".")[2])
    assert round(float(loss.score_space.effective_classes()), digits) == float(hardness)


@rows
def test_estimator_fits_and_predicts(section, criterion, call, spec, argument, hardness):
    rng = np.random.default_rng(0)
    loss = parse_loss(spec)
    given = eval(argument, {"cs": cs})
    n = 600 if section == "Classes" else 60  # more rows than classes
    X = rng.normal(size=(n, 3))
    if section.startswith("Rankings"):
        query = np.repeat(np.arange(12), 5)
        grades = rng.integers(0, 2, size=n)
        model = cs.StructuredPredictor(
            given, cs.models.Items("ridge", features="linear", alpha=1e-3)
        )
        model.fit(X, grades, groups=query)
        assert sorted(model.predict(X[:5], groups=query[:5]).tolist()) == [1, 2, 3, 4, 5]
        assert -1 <= model.score(X, grades, groups=query) <= 0
        return
    kind = cs.StructuredPredictor if section.startswith("Other") else cs.TaskLossClassifier
    true_labels = loss.true_labels.sample(n, rng)
    if section == "Classes":
        names = getattr(loss.true_labels, "names", None)
        true_labels = true_labels if names is None else np.array(names)[true_labels]
    model = kind(given, cs.models.Ridge("linear", alpha=1e-3)).fit(X, true_labels)
    assert len(model.predict(X)) == n
    assert -loss.max_value <= model.score(X, true_labels) <= 0
    assert type(model.loss_) is type(loss)


def test_the_heading_of_each_table_names_the_estimator_that_is_tried():
    for section, text in SECTIONS.items():
        if ROW.search(text):
            structured = section.startswith(("Other", "Rankings"))
            assert (
                f"`cs.{'StructuredPredictor' if structured else 'TaskLossClassifier'}(…)`" in text
            )
