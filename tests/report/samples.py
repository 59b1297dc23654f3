"""Sample reports to open in a browser: hostile names, jumps, huge numbers, a fitted model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification, make_multilabel_classification

from consistruct import TaskLossClassifier, losses
from consistruct.learning.models.ridge.model import Ridge
from consistruct.report import calibration_html, learning_html, learning_report
from tests.report.settings import HOSTILE, report_of

CALIBRATION = ("hostile names", "jumps", "underflow", "inconsistent", "hinge, a witness")


def classes_report(**options):
    """Four classes with hostile names and their costs, half of the data held out."""
    X, y = make_classification(
        400, 8, n_informative=5, n_classes=4, n_clusters_per_class=1, random_state=0
    )
    names = np.array(HOSTILE)[y]
    costs = losses.CostMatrix(1.0 - np.eye(4) + np.diag([2.0] * 3, 1), HOSTILE, HOSTILE)
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


def _write(folder: Path, name: str, page: str) -> Path:
    path = folder / f"{name.replace(' ', '_').replace(',', '')}.html"
    path.write_text(page, encoding="utf-8")
    return path
