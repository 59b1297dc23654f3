"""Fit, predict and evaluate on a folder: one pass, checkpoints of the sums, resumed bit by bit."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from consistruct.distributed.folder import Folder, Place
from consistruct.exceptions import DataFileError
from consistruct.learning.estimator import verbosity
from consistruct.learning.files.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from consistruct.learning.files.data.base import kind_of, numbers_or_names
from consistruct.learning.models.ridge.model import Ridge
from consistruct.learning.streams.fit import fit_stream, survey_stream
from consistruct.learning.streams.plan import make_plan, stream_model
from consistruct.learning.streams.source import Batch, Source
from consistruct.learning.streams.summary import Pass
from consistruct.learning.streams.survey import Labels, Survey
from consistruct.losses.base import Loss

__all__ = ["FolderScore", "Progress", "evaluate_folder", "fit_folder", "predict_folder"]

EVERY = 60.0  # seconds between checkpoints

Progress = Callable[[int, int, int], None]  # bytes done, bytes in all, rows done


def fit_folder(
    estimator: Any,
    folder: Folder,
    *,
    checkpoint: str | Path | None = None,
    every: float = EVERY,
    resume: bool = False,
    held_out: Folder | None = None,
    passes: int = 1,
    progress: Progress | None = None,
) -> Any:
    """Fit an estimator to the files of a folder in one pass; memory is that of a batch.

    Parameters
    ----------
    estimator : TaskLossClassifier or StructuredPredictor
        With a model that can learn from batches, see `fit_stream`.
    folder : Folder
    checkpoint : path, optional
        File that keeps the sums, replaced every `every` seconds and when the pass is interrupted.
        A process that is killed leaves the last one.
    every : float
    resume : bool
        Whether to go on from the checkpoint: the model is the same, bit by bit, as without the
        interruption. Files that changed in between are refused.
    held_out : Folder, optional
        Files that take no part, by whose task loss the penalty is chosen.
    passes : int
        For models that are trained by SGD.
    progress : function(bytes done, bytes in all, rows done), optional

    Returns
    -------
    estimator, fitted
    """
    model = stream_model(estimator)
    if not model.by_sums:
        if checkpoint is not None or resume:
            raise ValueError(
                "a checkpoint of a folder stores sums, so it needs Ridge(solver='moments'); omit "
                "it with SGD"
            )
        _labels(folder)
        looks = passes + (0 if isinstance(estimator.loss, Loss) else 1)
        return fit_stream(estimator, _Watched(folder, progress, looks), passes=passes)
    if folder.columns.hash_bits is not None:
        raise ValueError(
            "hashed columns are too many for sums of their products; use Ridge(solver='sgd') "
            "(--set solver=sgd)"
        )
    survey = _survey(estimator, folder, model)
    plan = make_plan(estimator, survey)
    identity = folder.identity()
    fingerprint = hashlib.sha256(f"{plan.key} {folder.batch_rows}".encode()).hexdigest()
    passed, place = plan.start(), None
    if resume:
        if checkpoint is None:
            raise ValueError("resume=True continues from a checkpoint; name its file")
        place = _resumed(passed, Path(checkpoint), fingerprint, identity)
    keeper = _Keeper(passed, checkpoint, every, fingerprint, identity)
    with verbosity(estimator.verbose):
        _run(passed, folder, place, keeper, progress)
        _refuse_changed(identity, folder.identity(), "the pass began")
        estimator._forget()
        return plan.finish(passed.summary(), held_out, into=estimator)


def _survey(estimator: Any, folder: Folder, model: Ridge) -> Survey:
    labels = _labels(folder)
    if model.features != "linear":
        return survey_stream(estimator, Source(folder))
    n_rows = int(labels.counts.sum())
    return Survey(n_rows, labels, None, None, folder.columns.n_features)


def _labels(folder: Folder) -> Labels:
    """All true labels of the folder, of one kind: a CSV file does not say which."""
    labels: Labels | None = None
    for y in folder.labels():
        found = Labels.of(y)
        labels = found if labels is None else labels + found
    if labels is None:
        raise DataFileError(f"{folder.path} contains no rows")
    if labels.rows.dtype.kind == "U":  # a CSV file does not say what its cells are
        shape = labels.rows.shape
        rows = labels.rows
        if folder.format != "parquet":
            rows = numbers_or_names(rows.ravel().tolist()).reshape(shape)
        folder.label_kind = kind_of(rows)
        labels = Labels(rows, labels.counts)
    else:
        folder.label_kind = kind_of(labels.rows)
    return labels


class _Watched:
    """A folder that is read several times, and tells how far it is."""

    def __init__(self, folder: Folder, progress: Progress | None, times: int) -> None:
        self.folder, self.progress = folder, progress
        sizes = np.array([file.stat().st_size for file in folder.files])
        self.sizes, self.total = sizes, times * int(sizes.sum())
        self.done = self.rows = 0

    def __iter__(self) -> Iterator[Batch]:
        return self._files(range(len(self.sizes)))

    def shuffled(self, rng: np.random.Generator) -> Iterator[Batch]:
        """The files in random order."""
        return self._files(rng.permutation(len(self.sizes)))

    def _files(self, numbers: Any) -> Iterator[Batch]:
        for number in numbers:
            for batch in self.folder.batches(int(number)):
                yield batch
                self.rows += batch.X.shape[0]
                if self.progress is not None:
                    self.progress(self.done, self.total, self.rows)
            self.done += int(self.sizes[number])
        if self.progress is not None:
            self.progress(self.done, self.total, self.rows)


class _Keeper:
    """Writes the state of a pass from time to time."""

    def __init__(
        self,
        passed: Pass,
        path: str | Path | None,
        every: float,
        fingerprint: str,
        identity: dict[str, str],
    ) -> None:
        self.passed, self.path, self.every = passed, path, every
        self.fingerprint, self.identity = fingerprint, identity
        self.last = time.monotonic()

    def maybe(self, place: Place, rows: int) -> None:
        if self.path is not None and time.monotonic() - self.last >= self.every:
            self.write(place, rows)

    def write(self, place: Place, rows: int) -> None:
        if self.path is None:
            return
        numbers = {
            "form": "pass",
            "file": place.file,
            "batch": place.batch,
            "rows": rows,
            "files": self.identity,
        }
        write_checkpoint(self.path, Checkpoint(self.passed.arrays(), numbers, self.fingerprint))
        self.last = time.monotonic()


def _run(
    passed: Pass,
    folder: Folder,
    place: Place | None,
    keeper: _Keeper,
    progress: Progress | None,
) -> None:
    sizes = np.array([file.stat().st_size for file in folder.files])
    total, rows = int(sizes.sum()), passed.sums.n_rows
    written = place
    try:
        for here, batch in folder.placed(place):
            rows += passed.add(batch)
            place = here
            keeper.maybe(here, rows)
            if progress is not None:
                progress(int(sizes[: here.file].sum()), total, rows)
    except KeyboardInterrupt:
        if place is not None and place != written:
            keeper.write(place, rows)
        raise
    if progress is not None:
        progress(total, total, rows)


def _resumed(passed: Pass, path: Path, fingerprint: str, identity: dict[str, str]) -> Place | None:
    """The place behind which to go on; None if nothing was kept yet."""
    found = read_checkpoint(path)
    if found is None:
        return None
    if found.numbers.get("form") != "pass":
        raise ValueError(f"{path.name} is not a checkpoint of a pass over a folder")
    _refuse_changed(found.numbers["files"], identity, "the checkpoint was written")
    if found.fingerprint != fingerprint:
        raise ValueError(
            f"checkpoint {path.name} belongs to a fit with other labels, features or parameters; "
            f"repeat the same command, or delete it"
        )
    passed.restore(found.arrays)
    return Place(int(found.numbers["file"]), int(found.numbers["batch"]))


def _refuse_changed(before: dict[str, str], now: dict[str, str], since: str) -> None:
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if changed:
        name = changed[0]
        what = "is gone" if name not in now else "is new" if name not in before else "has changed"
        raise DataFileError(
            f"{name} {what} since {since} ({len(changed)} such files); put it back, or start "
            "again without the checkpoint"
        )


@dataclass(frozen=True)
class FolderScore:
    """Mean task loss over a folder, with its standard error (None for a single row)."""

    n_rows: int
    mean_loss: float
    standard_error: float | None


def evaluate_folder(
    estimator: Any, folder: Folder, *, progress: Progress | None = None
) -> FolderScore:
    """Task loss of a fitted estimator over all rows, a batch at a time."""
    count, total, squares = 0, 0.0, 0.0
    for batch in _watched(folder, progress):
        losses = np.asarray(estimator.task_losses(batch.X, batch.y))
        count += len(losses)
        total += float(losses.sum())
        squares += float(losses @ losses)
    if not count:
        raise DataFileError(f"{folder.path} contains no rows")
    mean = total / count
    error = None
    if count > 1:
        error = float(np.sqrt(max(squares - count * mean**2, 0.0) / (count - 1) / count))
    return FolderScore(count, mean, error)


def predict_folder(
    estimator: Any,
    folder: Folder,
    *,
    expected_loss: bool = False,
    progress: Progress | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Predictions, and their expected losses where requested (else None), a batch at a time."""
    for batch in _watched(folder, progress):
        expected = estimator.predict_expected_loss(batch.X) if expected_loss else None
        yield np.asarray(estimator.predict(batch.X)), expected


def _watched(folder: Folder, progress: Progress | None) -> Iterator[Any]:
    sizes = np.array([file.stat().st_size for file in folder.files])
    rows = 0
    for place, batch in folder.placed():
        yield batch
        rows += batch.X.shape[0]
        if progress is not None:
            progress(int(sizes[: place.file].sum()), int(sizes.sum()), rows)
