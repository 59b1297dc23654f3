"""What ``consistruct demo`` shows: the package on embedded examples."""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from consistruct import losses, structures
from consistruct.calibration import calibration_function
from consistruct.charts import chart_picture
from consistruct.cli.report_files import write_file
from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss
from consistruct.report import calibration_report, learning_report
from consistruct.report.sections import Section
from consistruct.structures import Structure

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
    rows="pred",
)

# what a row (the prediction) costs if a column is true
TRIAGE = losses.CostMatrix(
    [[0, 3, 8, 20], [1, 0, 3, 8], [2, 1, 0, 3], [3, 2, 1, 0]],
    ("stable", "watch", "treat", "urgent"),
    ("stable", "watch", "treat", "urgent"),
    rows="pred",
)
GAPS = 0.05  # share of cells that are left out of the table

# how the table calls a loss and its scores, and what they are
CASES: tuple[tuple[str, str, Loss, Structure | str | None], ...] = (
    ("0-1, 10 classes", "per label", losses.ZeroOne(10), None),
    ("wrong block of 4", "per block", losses.Block((25,) * 4), None),
    ("mixed, 4 blocks", "per label", losses.Mixed((5,) * 4, 0.1), None),
    ("mixed, 4 blocks", "per block", losses.Mixed((5,) * 4, 0.1), structures.Blocks((5,) * 4)),
    ("Hamming, 1000 bits", "per bit", losses.Hamming(1000), None),
    ("Hamming, 1000 bits", "per label", losses.Hamming(1000), "full"),
    ("intrusion costs", "per label", INTRUSION, None),
)


def show(folder: Path) -> None:
    """The hardness of some losses, the analysis of one, a model that is learned for another."""
    console = Console()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConsistructError(f"{folder} cannot be made: {error.strerror}") from None
    console.print(_hardness_table())
    written = [*_analyze(console, folder), *_learn(console, folder)]
    console.print("\nOpen in a browser; nothing leaves your machine:")
    for path in written:
        typer.echo(f"  {path}")


def _hardness_table() -> Table:
    table = Table(title="How hard is a loss? Calibration functions at ε = half the range")
    for column in ("loss", "scores", "labels", "level", "k_eff", "log H", "seconds"):
        left = column in ("loss", "scores")
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    for name, spread, loss, family in CASES:
        start = time.perf_counter()
        curve = calibration_function(loss, family)
        log_value = curve.log(curve.max_eps / 2)
        seconds = time.perf_counter() - start
        k_eff = curve.effective_classes
        table.add_row(
            name,
            spread,
            _short(math.log(loss.n_labels or 1)),
            f"{curve.consistency_level:g}",
            "—" if k_eff is None else _short(k_eff.log),
            "−inf" if math.isinf(log_value) else f"{log_value:.2f}",
            f"{seconds:.3f}",
        )
    return table


def _short(log: float) -> str:
    """A count by its logarithm: in full while it is short, else as a power of two."""
    bits = log / math.log(2)
    return f"{math.exp(log):.5g}" if bits < 16 else f"2^{bits:.4g}"


def _analyze(console: Console, folder: Path) -> list[Path]:
    """A real cost matrix: five kinds of network traffic, and what it costs to mistake them."""
    console.print("\n[bold]A real cost matrix: intrusion detection, five classes[/bold]")
    curve = calibration_function(INTRUSION)
    report = calibration_report(curve, at=1.0)
    _print_answers(console, report.sections())
    curve.certificate(1.0).check()
    console.print(
        "certificate at ε = 1 checked: distribution, scores and multipliers prove the value"
    )
    return [
        write_file(folder / "calibration.html", report.to_html()),
        write_file(folder / "calibration.png", chart_picture(report.charts(), "png")),
    ]


def _learn(console: Console, folder: Path) -> list[Path]:
    """A raw table to a report: patients with words, dates and gaps, judged by costs of triage."""
    from consistruct.learning import TaskLossClassifier
    from consistruct.learning.files.data import read_data

    paths = _write_patients(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # dropped columns: the table below has them
        train, test = (read_data(path, target=["level"]) for path in paths)
    console.print(
        "\n[bold]A raw table: 442 patients, four levels of urgency and their costs[/bold]"
    )
    columns = Table(box=None, padding=(0, 2), show_header=False)
    for note in train.columns:
        columns.add_row(Text(note.name), Text(str(note)))
    console.print(columns)
    model = TaskLossClassifier(TRIAGE, random_state=0).fit(train.X, train.y)
    report = learning_report(
        model, test.X, test.y, X_train=train.X, y_train=train.y, columns=train.columns,
        bandwidths=False, repeats=1,
    )  # fmt: skip
    table = Table(title="Mean cost on 177 held-out patients (lower is better)")
    table.add_column("model")
    table.add_column("cost", justify="right")
    for score in report.scores:
        first = score is report.scores[0]
        name = "consistruct, weighted average of models" if first else score.name
        table.add_row(name, f"{score.mean:.3f} ± {score.standard_error:.3f}")
    console.print(table)
    _print_answers(console, report.sections())
    return [
        *paths,
        write_file(folder / "learning.html", report.to_html()),
        write_file(folder / "learning.png", chart_picture(report.charts(), "png")),
    ]


def _write_patients(folder: Path) -> tuple[Path, Path]:
    """scikit-learn's diabetes patients as people keep them: sex as a word, a date, gaps."""
    import csv
    import io
    from datetime import date, timedelta

    import numpy as np
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    data = load_diabetes(scaled=False)
    rng = np.random.default_rng(0)
    names = ["patient", *data.feature_names, "admitted", "level"]
    levels = np.array(TRIAGE.true_names)[np.digitize(data.target, [75, 140, 215])]
    rows = []
    for number, (x, level) in enumerate(zip(data.data.tolist(), levels.tolist(), strict=True)):
        cells: list[object] = [value if rng.random() > GAPS else "" for value in x]
        cells[1] = "female" if x[1] == 2 else "male"
        day = date(2024, 1, 1) + timedelta(days=int(rng.integers(365)))
        rows.append([f"p{number:03}", *cells, day.isoformat(), level])
    parts = train_test_split(rows, test_size=0.4, random_state=0, stratify=levels)
    written = []
    for name, part in zip(("patients_train.csv", "patients_test.csv"), parts, strict=True):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([names, *part])
        written.append(write_file(folder / name, text.getvalue()))
    return written[0], written[1]


def _print_answers(console: Console, sections: tuple[Section, ...]) -> None:
    for section in sections:
        console.print(Text(f"{section.question} ", style="bold"), Text(section.answer), sep="")
