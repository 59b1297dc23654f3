"""The commands on a folder of files: the same three, in one pass and in the memory of a batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from consistruct._atomic import atomic_write
from consistruct.cli.choices import choose_loss, choose_model
from consistruct.cli.file_checks import folder_checkpoint
from consistruct.cli.model_data import layout_of
from consistruct.cli.progress import byte_bar
from consistruct.cli.sequences import refuse_options

if TYPE_CHECKING:  # imported inside the functions: see cli/commands/learning.py
    from consistruct.distributed import Folder
    from consistruct.learning.files.persistence import ModelFile

__all__ = [
    "FOLDER_ONLY",
    "Every",
    "HeldOut",
    "NFeatures",
    "Passes",
    "Resume",
    "evaluate_folder",
    "fit_folder",
    "predict_folder",
]

Resume = Annotated[
    bool,
    typer.Option("--resume", help="Folder: continue from the checkpoint of an interrupted fit."),
]
Every = Annotated[float, typer.Option(help="Folder: seconds between checkpoints.")]
HeldOut = Annotated[
    str | None,
    typer.Option(
        help="Folder: files used only to choose the penalty by their task loss, such as "
        '"2026-11-*". Default: generalized cross-validation.'
    ),
]
Passes = Annotated[int, typer.Option(help="Folder, solver=sgd: how many times the files are read.")]
NFeatures = Annotated[
    int | None, typer.Option(help="Folder of svmlight files: how many columns there are.")
]
FOLDER_ONLY = ("resume", "every", "held_out", "passes", "n_features")
FIT_OPTIONS = (
    "data",
    "model",
    "target",
    "loss",
    "rows",
    "learner",
    "settings",
    "hash_bits",
    "checkpoint",
    "seed",
    "ignore",
    "drop_missing_target",
    "as_json",
    *FOLDER_ONLY,
)
PREDICT_OPTIONS = ("model", "data", "out", "expected_loss", "as_json")
EVALUATE_OPTIONS = ("model", "data", "target", "at_most", "drop_missing_target", "as_json")
REASON = "does not apply to a folder"


def fit_folder(
    context: typer.Context,
    data: Path,
    model: Path,
    *,
    target: list[str] | None,
    ignore: list[str] | None,
    loss: str,
    rows: str | None,
    learner: str,
    settings: list[str] | None,
    checkpoint: Path | None,
    seed: int,
    resume: bool,
    every: float,
    held_out: str | None,
    passes: int,
    n_features: int | None,
    hash_bits: int | None,
    drop_missing_target: bool,
) -> dict[str, Any]:
    """Fit in one pass, with checkpoints; what `fit` prints."""
    from consistruct.distributed import Folder
    from consistruct.distributed import fit_folder as fit
    from consistruct.learning.encoding.frames import Column, InputColumns
    from consistruct.learning.files.persistence import save

    refuse_options(context, FIT_OPTIONS, REASON)
    chosen = choose_model(learner, settings, None, None)
    by_steps = getattr(chosen, "solver", None) == "sgd"
    if by_steps and (checkpoint is not None or resume):
        raise ValueError(
            "--checkpoint and --resume store the sums over a folder, which solver=sgd does not use"
        )
    kept = None if by_steps else checkpoint or folder_checkpoint(model)
    if kept is not None and kept.exists() and not resume:
        raise ValueError(
            f"there is a checkpoint {kept} of an interrupted fit; continue from it with "
            "--resume, or delete it"
        )

    def folder(**part: Any) -> Folder:
        return Folder(
            data, target=target or (), ignore=ignore or (), n_features=n_features,
            hash_bits=hash_bits, drop_missing_target=drop_missing_target, **part,
        )  # fmt: skip

    source = folder(without=held_out)
    estimator = _estimator(source, choose_loss(loss, rows), chosen, seed)
    start = time.perf_counter()
    try:
        with byte_bar(f"fitting {data.name}/") as progress:
            fit(
                estimator,
                source,
                checkpoint=kept,
                every=every,
                resume=resume,
                held_out=None if held_out is None else folder(only=held_out),
                passes=passes,
                progress=progress,
            )
    except KeyboardInterrupt:
        if kept is not None and kept.exists():
            typer.echo(
                f"consistruct: the sums so far are in {kept}; continue with --resume", err=True
            )
        raise
    names = source.columns.features
    if names is not None and source.columns.hash_bits is None:  # hashed columns have no names
        estimator.columns_ = InputColumns(tuple(Column(name, "number") for name in names))
    save(estimator, model, notes={"layout": source.layout.as_dict()})
    if kept is not None:
        kept.unlink(missing_ok=True)
    moments = getattr(estimator.model_, "moments_", None)
    return {
        "command": "fit",
        "data": str(data),
        "n_files": len(source.files),
        "model": str(model),
        "loss": repr(estimator.loss_),
        "estimator": type(estimator).__name__,
        **({} if moments is None else {"n_examples": moments.n_rows}),
        "n_features": source.columns.n_features,
        "models": {type(estimator.model_).__name__: 1.0},
        "alpha": float(estimator.model_.alpha_),
        "seconds": time.perf_counter() - start,
    }


def _estimator(folder: Folder, loss: Any, model: Any, seed: int) -> Any:
    """A classifier for classes and 0/1 label matrices, a structured predictor for the rest."""
    from consistruct.learning import StructuredPredictor, TaskLossClassifier
    from consistruct.learning.streams.survey import Labels

    labels = next((Labels.of(y) for y in folder.labels() if y is not None), None)
    several = labels is not None and labels.rows.ndim > 1
    rows = None if labels is None else labels.rows
    indicator = several and rows is not None and set(np.unique(rows).tolist()) <= {0, 1, "0", "1"}
    estimator = StructuredPredictor if several and not indicator else TaskLossClassifier
    return estimator(loss=loss, model=model, random_state=seed)


def predict_folder(
    context: typer.Context,
    stored: ModelFile,
    model: Path,
    data: Path,
    out: Path | None,
    expected_loss: bool,
    header_and_rows: Callable[..., str],
) -> dict[str, Any]:
    """Write predictions batch by batch, in the order of the files; what `predict` prints."""
    from consistruct.distributed import Folder
    from consistruct.distributed import predict_folder as predict

    refuse_options(context, PREDICT_OPTIONS, REASON)
    if out is None:
        raise ValueError("predictions of a folder are written to a file; name it with --out")
    layout = layout_of(stored, model)
    folder = Folder(data, like=layout, with_target=False)
    count = 0
    with atomic_write(out) as stream, byte_bar(f"predicting {data.name}/") as progress:
        for predictions, expected in predict(
            stored.estimator, folder, expected_loss=expected_loss, progress=progress
        ):
            text = header_and_rows(predictions, expected, layout, ranks=False)
            stream.write((text if not count else text.partition("\n")[2]).encode())
            count += len(predictions)
    return {
        "command": "predict",
        "model": str(model),
        "data": str(data),
        "n_examples": count,
        "out": str(out),
    }


def evaluate_folder(
    context: typer.Context,
    stored: ModelFile,
    model: Path,
    data: Path,
    target: list[str] | None,
    drop_missing_target: bool,
) -> dict[str, Any]:
    """The mean task loss over all files; what `evaluate` prints."""
    from consistruct.distributed import Folder
    from consistruct.distributed import evaluate_folder as evaluate

    refuse_options(context, EVALUATE_OPTIONS, REASON)
    folder = Folder(
        data,
        target=target or (),
        like=layout_of(stored, model),
        drop_missing_target=drop_missing_target,
    )
    with byte_bar(f"evaluating {data.name}/") as progress:
        score = evaluate(stored.estimator, folder, progress=progress)
    return {
        "command": "evaluate",
        "model": str(model),
        "data": str(data),
        "loss": repr(stored.estimator.loss_),
        "n_examples": score.n_rows,
        "mean_loss": score.mean_loss,
        "standard_error": score.standard_error,
    }
