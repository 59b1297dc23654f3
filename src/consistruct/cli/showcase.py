"""What ``consistruct demo`` shows: the package on embedded examples."""

from __future__ import annotations

import math
import time
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from consistruct import losses, scores
from consistruct.calibration import calibration_function
from consistruct.cli.report_files import write_file
from consistruct.exceptions import ConsistructError, describe_count
from consistruct.losses.base import Loss
from consistruct.report import (
    Section,
    calibration_charts,
    calibration_html,
    calibration_report,
    calibration_sections,
    chart_picture,
    learning_charts,
    learning_html,
    learning_report,
    learning_sections,
)
from consistruct.scores.base import BaseScoreSpace

__all__ = ["show"]

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


def show(folder: Path) -> None:
    """The hardness of some losses, the analysis of one, a model that is learnt for another."""
    console = Console()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConsistructError(f"{folder} cannot be made: {error.strerror}") from None
    console.print(_hardness_table())
    written = [*_analyse(console, folder), *_learn(console, folder)]
    console.print("\nOpen in a browser; nothing leaves your machine:")
    for path in written:
        typer.echo(f"  {path}")


def _hardness_table() -> Table:
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
    return table


def _analyse(console: Console, folder: Path) -> list[Path]:
    """A real cost matrix: five kinds of network traffic, and what it costs to mistake them."""
    console.print("\n[bold]A real cost matrix: intrusion detection, five classes[/bold]")
    curve = calibration_function(INTRUSION)
    report = calibration_report(curve, at=1.0)
    _print_answers(console, calibration_sections(report))
    curve.certificate(1.0).check()
    console.print("certificate at ε = 1 checked: law, scores and multipliers prove the value")
    return [
        write_file(folder / "calibration.html", calibration_html(report)),
        write_file(folder / "calibration.png", chart_picture(calibration_charts(report), "png")),
    ]


def _learn(console: Console, folder: Path) -> list[Path]:
    """Half of scikit-learn's digits to learn from, half to be judged on, by |read − written|."""
    from sklearn.datasets import load_digits
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
    console.print("\n[bold]Reading amounts: digits, judged by the distance to the right one[/bold]")
    model = TaskLossClassifier(loss=loss, random_state=0).fit(X_train, y_train)
    report = learning_report(
        model, X_test, y_test, X_train=X_train, y_train=y_train, bandwidths=False, repeats=1
    )
    table = Table()
    table.add_column("model")
    table.add_column("mean loss on the held-out half", justify="right")
    for score in report.scores:
        name = "consistruct, loss=Ordinal(10)" if score is report.scores[0] else score.name
        table.add_row(name, f"{score.mean:.4f} ± {score.standard_error:.4f}")
    peer = make_pipeline(StandardScaler(), SVC()).fit(X_train, y_train)
    table.add_row("RBF SVC, defaults", f"{loss(peer.predict(X_test), y_test).mean():.4f}")
    console.print(table)
    _print_answers(console, learning_sections(report))
    return [
        write_file(folder / "learning.html", learning_html(report)),
        write_file(folder / "learning.png", chart_picture(learning_charts(report), "png")),
    ]


def _print_answers(console: Console, sections: tuple[Section, ...]) -> None:
    for section in sections:
        console.print(Text(f"{section.question} ", style="bold"), Text(section.answer), sep="")
