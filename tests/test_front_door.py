"""Where new users stumbled, one test each: raw tables, the README's cost file, the first screen."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import consistruct as cs
from consistruct.learning.files.data import read_data
from consistruct.models import Prepared, Ridge
from tests.page_blocks import blocks

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def fast(X):
    """A model behind encoders, with its settings given."""
    from consistruct.learning.selection.columns import Columns

    return Prepared(Columns.of(X).for_linear(), Ridge(alpha=0.1, bandwidth=3.0))


@pytest.mark.parametrize(
    ("column", "cells", "kind"),
    [
        ("a string", ["red", "blue", "green"], "category"),
        ("a missing value", [1.5, "", 3.0], "number"),
        ("a date", ["2024-02-29", "2023-01-01", "2022-12-31"], "date"),
        ("a boolean", ["True", "False", "True"], "category"),
    ],
)
def test_any_column_is_taken(tmp_path, column, cells, kind):
    """They were refused: "any string column, missing value or date is refused"."""
    rng = np.random.default_rng(0)
    rows = [f"{cells[n % 3]},{rng.normal():.3f},{'ab'[n % 2]}" for n in range(40)]
    path = tmp_path / "own.csv"
    path.write_text("\n".join([f"{column},x,y", *rows]) + "\n", encoding="utf-8")
    data = read_data(path, target=["y"])
    assert dict(zip(data.feature_names, data.layout.kinds, strict=True))[column] == kind
    model = cs.TaskLossClassifier("zero_one", fast(data.X)).fit(data.X, data.y)
    assert set(model.predict(data.X)) <= {"a", "b"}


def test_the_cost_file_of_the_readme_is_a_loss_when_pandas_reads_it():
    """It was refused as a loss."""
    text = next(block.code for block in blocks(README) if block.file == "costs.csv")
    frame = pd.read_csv(io.StringIO(text), index_col=0)
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.array(frame.columns)[np.digitize(X[:, 0], [-0.7, 0, 0.7])]
    model = cs.TaskLossClassifier(frame, Ridge(alpha=0.1, bandwidth=1.0)).fit(X, y)
    place = model.loss_.pred_names.index
    home, bed = place("stable"), place("urgent")
    assert model.loss_(pred=[home], true=[bed]) == 20  # sent home, was urgent
    assert model.loss_(pred=[bed], true=[home]) == 3  # a bed for nothing


def test_the_first_screen_of_the_documentation_is_for_practitioners():
    """It showed ``loss.score_space.decode([-(distribution @ loss.target(...))])``."""
    home = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").partition("## All pages")[0]
    for page in (home, README.partition("## What it gains")[0]):
        assert not re.search(r"decoder\(|\.target\(|distribution @", page)
        assert "pip install" in page
        assert ".fit(" in page
    first = home.partition("How hard are these costs")[0]
    assert re.search(r"!\[.+\]\(figures/.+\)", first), "one result picture"
    assert len(re.findall(r"\n```python\n", first)) == 1


def test_theory_stands_behind_folds():
    """Pages of the guide fold away what a practitioner may skip; every fold is closed again."""
    for name in ("calibration", "surrogates", "risk", "losses"):
        page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        assert page.count('<details class="theory"><summary>') == page.count("</details>") >= 1
        # headings inside a fold would break the table of contents
        for fold in re.findall(r"<details.*?</details>", page, re.S):
            assert not re.search(r"^#", re.sub(r"```.*?```", "", fold, flags=re.S), re.M)
