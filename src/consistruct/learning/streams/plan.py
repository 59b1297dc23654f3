"""The plan of a pass: everything fixed that rows must be summed by, on any machine alike.

    survey = sum(survey_batch(batch, …) for batch in batches)       labels, columns, a sample
    plan = make_plan(estimator, survey)                             loss, codes, features
    summary = sum(plan.summarize(batch) for batch in batches)       moments, and rows left out
    estimator = plan.finish(summary)                                penalty, weights, recalibration

Surveys and summaries are small, add up in any order, and travel; the rows stay where they are.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from consistruct._frames import as_array
from consistruct._validation import check_cost_scale
from consistruct.decisions.recalibration import Unchanged
from consistruct.decisions.statistics import Statistic
from consistruct.learning.encoding.fitted_classes import encode_again
from consistruct.learning.encoding.kinds import Rows, check_sample_weight, generator, table_inputs
from consistruct.learning.encoding.labels import prepare_labels
from consistruct.learning.models.base import OutOfFold
from consistruct.learning.models.features.feature_maps import FeatureMap
from consistruct.learning.models.ridge.from_moments import Examined
from consistruct.learning.models.ridge.model import Ridge
from consistruct.learning.recalibration import recalibrate
from consistruct.learning.streams.source import Batch
from consistruct.learning.streams.summary import Pass, Summary
from consistruct.learning.streams.survey import Survey
from consistruct.protocols import FloatArray

__all__ = ["Plan", "make_plan", "sample_size", "stream_model"]

SAMPLE_ENTRIES = 2**23  # inputs that are kept of the rows left out
MOST_ROWS, FEWEST_ROWS = 4096, 256
STREAM_COMPONENTS = 1024  # landmarks of model="auto": every row meets each of them
LARGEST = 16_384  # features × features numbers are held: 2 GiB


@dataclass(frozen=True, eq=False)
class Plan:
    """How rows are read and summed, and what becomes of the sums. Can be pickled.

    Attributes
    ----------
    estimator : TaskLossClassifier or StructuredPredictor
        Not fitted; it knows the columns.
    kind : Rows
        Loss and labels.
    model : Ridge
    statistic : Statistic
    features : FeatureMap
    class_weight : dict or None
    sample_size, seed : int
    key : str
        Identifies labels, loss and features; summaries of different plans do not mix.
    """

    estimator: Any
    kind: Rows
    model: Ridge
    statistic: Statistic
    features: FeatureMap
    class_weight: Any
    sample_size: int
    seed: int
    key: str

    def positive(self, batch: Batch) -> NDArray[np.intp]:
        """Rows of a batch that count."""
        n = batch.n_rows
        if batch.sample_weight is None and self.class_weight is None:
            return np.arange(n)
        return np.flatnonzero(self._weight(batch, n) > 0)

    def _weight(self, batch: Batch, n: int) -> FloatArray:
        weight = np.ones(n)
        if batch.sample_weight is not None:
            given = np.asarray(as_array(batch.sample_weight, "sample_weight"), dtype=np.float64)
            # a batch may hold nothing that counts, the data as a whole may not
            weight = given if n and not given.any() else check_sample_weight(given, n)
        if self.class_weight is not None:
            weight = weight * compute_sample_weight(self.class_weight, batch.labels)
        return weight

    @property
    def shows_faults(self) -> bool:
        """Whether the sums themselves tell that an input is not finite, as those of inputs do."""
        return self.features.keeps_inputs

    def inputs(self, X: Any, *, checked: bool = True) -> Any:
        """Checked inputs; plain arrays may go unchecked where the sums will show what is wrong."""
        plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype in (np.float32, np.float64)
        named = hasattr(self.estimator, "feature_names_in_")
        if plain and not checked and not named and X.shape[1] == self.estimator.n_features_in_:
            return X
        try:
            return table_inputs(self.estimator, X, self.model, reset=False)
        except ValueError as error:  # scikit-learn goes on for lines about missing values
            raise ValueError(str(error).partition("\n")[0]) from None

    def read(self, given: Any, *, checked: bool = True) -> Examined:
        """Inputs, codes and weights of a batch, without rows of no weight."""
        batch = Batch.of(given)
        X = self.inputs(batch.X, checked=checked)
        codes = encode_again(self.kind.labels, self.kind.loss, batch.labels)
        if len(codes) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and y has {len(codes)}")
        weight = self._weight(batch, len(codes))
        if (weight > 0).all():
            return Examined(X, codes, weight)
        chosen = np.flatnonzero(weight > 0)
        return Examined(X[chosen], codes[chosen], weight[chosen])

    def start(self) -> Pass:
        """A pass that has seen nothing yet."""
        return Pass(self)

    def summarize(self, batch: Any) -> Summary:
        """The summary of one batch: what every engine maps over its partitions."""
        passed = self.start()
        passed.add(batch)
        return passed.summary()

    def finish(
        self, summary: Summary, held_out: Iterable[Any] | None = None, into: Any = None
    ) -> Any:
        """The fitted estimator.

        Parameters
        ----------
        summary : Summary
            Of all rows.
        held_out : iterable of batches, optional
            Rows that took no part, by whose task loss the penalty is chosen.
        into : estimator, optional
            To be filled in; a copy of the plan's otherwise.
        """
        if summary.moments.key != self.key:
            raise ValueError("the summary was made by another plan; labels or features differ")
        estimator = copy.deepcopy(self.estimator) if into is None else into
        sample = summary.sample
        rows = Examined(sample.X, sample.y, sample.weight)
        model = clone(self.model).fit_moments(
            summary.moments,
            self.statistic,
            self.features,
            sample=rows,
            held_out=None if held_out is None else self._held_out(held_out),
        )
        for name in ("n_features_in_", "feature_names_in_", "columns_", "input_scale_"):
            if hasattr(self.estimator, name):
                setattr(estimator, name, getattr(self.estimator, name))
        estimator.stream_ = generator(estimator.random_state)  # partial_fit goes on from here
        estimator.kind_, estimator.loss_ = self.kind, self.kind.loss
        estimator.model_, estimator.statistic_ = model, model.statistic_
        if hasattr(type(estimator), "decision_function") and hasattr(estimator, "class_weight"):
            estimator.classes_ = self.kind.labels.class_names(self.kind.loss)
        estimator.path_, estimator.recalibration_ = dict(model.path_), Unchanged()
        left: OutOfFold = model.out_of_fold()
        estimator.recalibration_, compared = recalibrate(
            model.statistic_, left.expected, sample.y, sample.weight, summary.moments.mean_target
        )
        estimator.path_.update(compared)
        return estimator

    def _held_out(self, batches: Iterable[Any]) -> Iterator[Examined]:
        for batch in batches:
            yield self.read(batch)


def stream_model(estimator: Any) -> Any:
    """The model of a pass: `Ridge` by moments unless a model was given that can stream."""
    given = estimator.model
    if isinstance(given, str) and given == "auto":
        return Ridge("auto", n_components=STREAM_COMPONENTS, solver="moments")
    if isinstance(given, str) and given == "ridge":
        return Ridge(solver="moments")
    if isinstance(given, Ridge) and given.solver == "auto":
        return clone(given).set_params(solver="moments")
    if getattr(given, "can_stream", False):
        return given
    raise ValueError(
        f"model={given!r} cannot learn from batches; use 'auto', Ridge(solver='moments') for exact "
        f"sums, or Ridge or Linear with solver='sgd'"
    )


def sample_size(model: Any, n_features: int) -> int:
    """Rows that the survey must sample: none where the inputs themselves are the features."""
    if not isinstance(model, Ridge) or model.features == "linear":
        return 0
    return max(_kept_rows(n_features), model.n_components or 0)


def _kept_rows(n_features: int) -> int:
    return int(np.clip(SAMPLE_ENTRIES // max(1, n_features), FEWEST_ROWS, MOST_ROWS))


def make_plan(
    estimator: Any, survey: Survey | None, *, first: Any = None, classes: Any = None
) -> Plan:
    """Fix loss, labels and features from a survey, or from a first batch and the classes."""
    model = stream_model(estimator)
    if getattr(estimator, "cv", None) is not None:
        raise ValueError("cv= fits on folds, which a single pass does not have; omit it")
    rng = generator(estimator.random_state)
    seed = int(rng.integers(2**31))
    prepared = clone(estimator)
    shown = Batch.of(first) if survey is None else None
    structured = not hasattr(estimator, "class_weight")
    if shown is not None:
        example, labels = shown.X, shown.labels
    else:
        assert survey is not None
        example, labels = _example_row(survey), survey.labels.rows
    table_inputs(prepared, example, model, reset=True)
    prepared.input_scale_ = 1.0  # the pass sees one batch at a time
    loss, encoding, _ = prepare_labels(
        estimator.loss_as_given(),
        labels,
        classes=classes if labels.ndim == 1 else None,
        structured=structured,
    )
    check_cost_scale(loss.max_value)
    kind = Rows(loss, encoding)
    statistic = model._own_statistic(kind.statistic(), None)
    features = _features(model, survey, shown, kind, prepared, statistic, rng)
    if features.n_sums > LARGEST:
        raise ValueError(
            f"{features.n_sums} features have {features.n_sums}² second moments, but at most "
            f"{LARGEST}² are stored; use Ridge(solver='sgd') for wide data"
        )
    return Plan(
        prepared,
        kind,
        model,
        statistic,
        features,
        _class_weight(getattr(estimator, "class_weight", None), survey),
        _kept_rows(prepared.n_features_in_),
        seed,
        _key(statistic, encoding, features),
    )


def _features(
    model: Ridge,
    survey: Survey | None,
    shown: Batch | None,
    kind: Rows,
    prepared: Any,
    statistic: Statistic,
    rng: np.random.Generator,
) -> FeatureMap:
    model = clone(model)
    if survey is not None and survey.sample is not None:
        rows = survey.sample
        X = table_inputs(prepared, rows.X, model, reset=False)
        codes = encode_again(kind.labels, kind.loss, rows.y)
        weight = np.where(rows.weight > 0, rows.weight, 1.0)
        return model.stream_features(X, codes, weight, statistic, rng)
    if model.features != "linear":
        raise ValueError(
            f"features={model.features!r} are chosen on a sample of all rows, so batches must be "
            "readable twice: pass a list, or a function that returns an iterator"
        )
    example = np.zeros((1, prepared.n_features_in_))
    return model.stream_features(example, None, np.ones(1), statistic, rng)


def _example_row(survey: Survey) -> Any:
    """A row that shows the columns: their number, and their names where they have some."""
    if survey.columns is None:
        return np.zeros((1, survey.n_features))
    return [dict.fromkeys(survey.columns, 0.0)]


def _class_weight(given: Any, survey: Survey | None) -> Any:
    if given != "balanced":
        return given
    if survey is None:
        raise ValueError(
            "class_weight='balanced' counts the classes first, so batches must be readable twice: "
            "pass a list, or a function that returns an iterator"
        )
    labels = survey.labels
    share = labels.counts.sum() / (len(labels.counts) * labels.counts)
    return dict(zip(labels.rows.tolist(), share.tolist(), strict=True))


def _key(statistic: Statistic, encoding: Any, features: FeatureMap) -> str:
    digest = hashlib.sha256(repr(statistic).encode())
    _feed(digest, vars(encoding))
    _feed(digest, {"features": type(features).__name__, **vars(features)})
    kind = type(features).__name__
    return f"{kind}({features.n_outputs}), {statistic!r}, {digest.hexdigest()[:16]}"


def _feed(digest: Any, values: dict[str, Any]) -> None:
    """Add names and contents; arrays by their bytes, other objects by their attributes."""
    for name in sorted(values):
        value = values[name]
        digest.update(name.encode())
        if isinstance(value, np.ndarray) and value.dtype != object:
            digest.update(str((value.dtype, value.shape)).encode())
            digest.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, str | int | float | bool | None) or not hasattr(value, "__dict__"):
            digest.update(repr(value).encode())
        else:
            digest.update(type(value).__name__.encode())
            _feed(digest, vars(value))
