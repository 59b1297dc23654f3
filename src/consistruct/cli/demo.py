"""``consistruct demo``: what the package does, on embedded examples."""

from __future__ import annotations

import math
import time
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from consistruct import losses, scores
from consistruct.calibration import calibration_function
from consistruct.cli.report_files import write_file
from consistruct.exceptions import describe_count
from consistruct.losses.base import Loss
from consistruct.report import (
    calibration_charts,
    calibration_report,
    calibration_text,
    chart_picture,
)
from consistruct.scores.base import BaseScoreSpace

__all__ = ["demo", "register"]

# KDD Cup 1999 intrusion detection; rows here are predictions, as everywhere in this package
INTRUSION = losses.CostMatrix(
    [
        [0, 1, 2, 3, 4],
        [1, 0, 1, 2, 2],
        [2, 2, 0, 2, 2],
        [2, 2, 2, 0, 2],
        [2, 2, 2, 2, 0],
    ],
    ("normal", "probe", "DoS", "U2R", "R2L"),
    ("normal", "probe", "DoS", "U2R", "R2L"),
)

CASES: tuple[tuple[Loss, BaseScoreSpace | str | None], ...] = (
    (losses.ZeroOne(10), None),
    (losses.Block((25,) * 4), None),
    (losses.Mixed((5,) * 4, 0.1), None),
    (losses.Mixed((5,) * 4, 0.1), scores.Blocks((5,) * 4)),
    (losses.Hamming(1000), None),
    (losses.Hamming(1000), "full"),
    (INTRUSION, None),
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    folder: Path = typer.Option(Path("consistruct-report"), help="Where the pictures go."),
) -> None:
    """Show on embedded examples what the package does.

    Example: consistruct demo
    """
    console = Console()
    table = Table(title="How hard is a loss? Exact calibration functions at ε = half the range")
    for column in ("loss", "scores", "labels", "consistent to", "k_eff", "log H", "seconds"):
        table.add_column(column, justify="left" if column in ("loss", "scores") else "right")
    for loss, family in CASES:
        start = time.perf_counter()
        curve = calibration_function(loss, family)
        log_value = curve.log(curve.max_eps / 2)
        seconds = time.perf_counter() - start
        k_eff = curve.effective_classes
        table.add_row(
            type(loss).__name__,
            type(curve.scores).__name__,
            describe_count(loss.n_labels),
            f"{curve.consistency_level:g}",
            "—" if k_eff is None else f"{float(k_eff):.4g}",
            "−inf" if math.isinf(log_value) else f"{log_value:.2f}",
            f"{seconds:.3f}",
        )
    console.print(table)
    console.print("\nA real cost matrix in detail: intrusion detection, five classes\n")
    curve = calibration_function(INTRUSION)
    console.print(calibration_text(calibration_report(curve, [1.0, 2.0, 3.0, 4.0])))
    curve.certificate(2.0).check()
    console.print("certificate at ε = 2 checked: law, scores and multipliers prove the value")
    _learn(console)
    folder.mkdir(exist_ok=True)
    for name, loss in (("mixed", losses.Mixed((5,) * 4, 0.1)), ("hamming", losses.Hamming(6))):
        path = folder / f"calibration_{name}.png"
        report = calibration_report(calibration_function(loss, "full"))
        write_file(path, chart_picture(calibration_charts(report), "png"))
        console.print(f"{loss!r} with full scores: see {path}")


def _learn(console: Console) -> None:
    """Half of scikit-learn's digits to learn from, half to be judged on, by |read − written|."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    from consistruct.learning import TaskLossClassifier

    loss = losses.Ordinal(10)
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, random_state=0, stratify=y
    )
    ours = TaskLossClassifier(loss=loss, random_state=0)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    table = Table(title="Reading amounts: digits, judged by the distance to the right one")
    table.add_column("model")
    table.add_column("mean loss on test half", justify="right")
    table.add_column("fit, seconds", justify="right")
    for name, model in (
        ("consistruct, loss=Ordinal(10)", ours),
        ("logistic regression", logistic),
        ("RBF SVC, defaults", make_pipeline(StandardScaler(), SVC())),
    ):
        start = time.perf_counter()
        model.fit(X_train, y_train)
        seconds = time.perf_counter() - start
        value = loss(model.predict(X_test), y_test).mean()
        table.add_row(name, f"{value:.4f}", f"{seconds:.2f}")
    costs = logistic.predict_proba(X_test) @ loss.matrix().T
    value = loss(costs.argmin(axis=1), y_test).mean()
    table.add_row("logistic regression, Bayes decisions", f"{value:.4f}", "")
    console.print(table)
