"""Sample reports to open in a browser: hostile names, jumps, huge numbers, a fitted model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification, make_multilabel_classification

from consistruct import StructuredPredictor, TaskLossClassifier, losses
from consistruct.models import Chain, Ridge
from consistruct.report import learning_report
from consistruct.report.calibration.output import calibration_html
from consistruct.report.learning.output import learning_html
from tests.report.settings import HOSTILE, report_of

CALIBRATION = ("hostile names", "jumps", "underflow", "inconsistent", "hinge, a witness")


def classes_report(**options):
    """Four classes with hostile names and their costs, half of the data held out."""
    X, y = make_classification(
        400, 8, n_informative=5, n_classes=4, n_clusters_per_class=1, random_state=0
    )
    names = np.array(HOSTILE)[y]
    costs = losses.CostMatrix(
        1.0 - np.eye(4) + np.diag([2.0] * 3, 1), HOSTILE, HOSTILE, rows="pred"
    )
    model = TaskLossClassifier(costs, Ridge(), random_state=0).fit(X[:200], names[:200])
    training = {"X_train": X[:200], "y_train": names[:200]}
    return learning_report(model, X[200:], names[200:], **training, **options)


def sets_report(loss="fbeta", **options):
    """Sets of five labels, half of the data held out."""
    X, y = make_multilabel_classification(300, 10, n_classes=5, random_state=0)
    model = TaskLossClassifier(loss, Ridge(), random_state=0).fit(X[:150], y[:150])
    return learning_report(model, X[150:], y[150:], X_train=X[:150], y_train=y[:150], **options)


def write_sample_reports(folder: Path) -> list[Path]:
    """HTML pages that between them hold every kind of figure, number and name."""
    written = []
    for name in CALIBRATION:
        top = 1.5 if name == "hostile names" else 1.0
        page = calibration_html(report_of(name, np.linspace(0, top, 21)))
        written.append(_write(folder, name, page))
    written.append(_write(folder, "learning classes", learning_html(classes_report(repeats=2))))
    written.append(_write(folder, "learning sets", learning_html(sets_report(repeats=2))))
    return written


LONG = ("customer service, written complaints", "customer service, telephone calls", "returns")


def write_learning_reports(folder: Path) -> list[Path]:
    """A raw table with long names and test rows that were trained on, tags, and a ranking."""
    return [
        _write(folder, name, learning_html(report))
        for name, report in (("table", table_report()), ("tags", tags_report()),
                             ("ranking", ranking_report()))
    ]  # fmt: skip


def table_report():
    """Words, dates and gaps; costs between departments; half of the test rows were trained on."""
    rng = np.random.default_rng(0)
    y = np.array(LONG)[rng.integers(3, size=240)]
    table = pd.DataFrame(
        {
            "age": np.where(rng.random(240) < 0.2, np.nan, rng.normal(size=240)),
            "channel": np.where(rng.random(240) < 0.7, [name[-5:] for name in y], "other"),
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(300, size=240), "D"),
        }
    )
    costs = pd.DataFrame([[0, 1, 5], [1, 0, 5], [9, 9, 0]], index=LONG, columns=LONG)
    costs.index.name = "true\\pred"
    model = TaskLossClassifier(costs, random_state=0).fit(table[:160], y[:160])
    return learning_report(
        model, table[80:], y[80:], X_train=table[:160], y_train=y[:160], repeats=1
    )


def tags_report():
    """Names in sentences."""
    X, y = [], []
    rng = np.random.default_rng(0)
    for _ in range(80):
        words = ["Ada", "Lovelace", "met", str(rng.choice(["Alan", "nobody"])), "here"]
        tags = ["B-PER", "I-PER", "O", "B-PER" if words[3] == "Alan" else "O", "O"]
        seen = [word if rng.random() < 0.7 else "?" for word in words]
        X.append([[f"w={word}"] for word in seen])
        y.append(tags)
    model = StructuredPredictor("hamming", Chain(alpha=0.01), random_state=0).fit(X[:50], y[:50])
    return learning_report(model, X[50:], y[50:], X_train=X[:50], y_train=y[:50], repeats=1)


def ranking_report():
    """Queries of five items."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.clip(np.round(1 + X[:, 0] + 0.5 * rng.normal(size=400)), 0, 2).astype(int)
    groups = np.repeat(np.arange(80), 5)
    model = StructuredPredictor("ndcg", random_state=0).fit(X[:250], y[:250], groups=groups[:250])
    return learning_report(
        model, X[250:], y[250:], groups=groups[250:], X_train=X[:250], y_train=y[:250],
        groups_train=groups[:250], repeats=1,
    )  # fmt: skip


def _write(folder: Path, name: str, page: str) -> Path:
    path = folder / f"{name.replace(' ', '_').replace(',', '')}.html"
    path.write_text(page, encoding="utf-8")
    return path
