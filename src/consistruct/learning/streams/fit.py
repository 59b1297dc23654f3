"""`fit_stream`: the plan of a pass on one machine, one batch after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct._threads import at_most, cores
from consistruct.learning.encoding.fitted_classes import encode_again
from consistruct.learning.encoding.kinds import (
    Examples,
    Rows,
    combined_weight,
    generator,
    table_inputs,
)
from consistruct.learning.encoding.labels import prepare_labels
from consistruct.learning.estimator import verbosity
from consistruct.learning.models.ridge.model import Ridge
from consistruct.learning.streams.plan import Plan, make_plan, sample_size, stream_model
from consistruct.learning.streams.source import Batch, Source
from consistruct.learning.streams.survey import Survey, survey_batch
from consistruct.losses.base import Loss

__all__ = ["Steps", "fit_stream", "plan_stream", "survey_stream"]


def fit_stream(
    estimator: Any, batches: Any, *, classes: Any = None, held_out: Any = None, passes: int = 1
) -> Any:
    """Fit `estimator` to batches; see `TaskLossClassifier.fit_stream`."""
    with at_most(cores()):
        return _fitted(estimator, batches, classes, held_out, passes)


def _fitted(estimator: Any, batches: Any, classes: Any, held_out: Any, passes: int) -> Any:
    source = Source(batches)
    model = stream_model(estimator)
    by_moments = model.by_sums
    if by_moments and passes != 1:
        raise ValueError(
            f"passes={passes} has an effect only with solver='sgd': sums need a single pass"
        )
    if not by_moments and held_out is not None:
        raise ValueError("held_out chooses the penalty of solver='moments'; omit it with SGD")
    if passes > 1 and not source.repeats:
        raise ValueError(
            f"passes={passes} reads the batches again: pass a list, or a function that returns an "
            "iterator"
        )
    with verbosity(estimator.verbose):
        if not by_moments:
            return _by_steps(estimator, model, source, classes, passes)
        # the first batch of an iterator that cannot start over is looked at, then summed
        waiting: list[Batch] = []
        plan = plan_stream(estimator, source, classes, waiting)
        passed = plan.start()
        for batch in waiting:
            passed.add(batch)
        for batch in source:
            passed.add(batch)
        estimator._forget()
        rows = None if held_out is None else Source(held_out)
        return plan.finish(passed.summary(), rows, into=estimator)


def plan_stream(
    estimator: Any, source: Source, classes: Any = None, waiting: list[Batch] | None = None
) -> Plan:
    """The plan for these batches, with a first look at them where one is needed."""
    model = stream_model(estimator)
    known = classes is not None or isinstance(estimator.loss, Loss)
    linear = isinstance(model, Ridge) and model.features == "linear"
    balanced = getattr(estimator, "class_weight", None) == "balanced"
    if known and linear and not balanced:
        first = next(iter(source), None)
        if first is None:
            raise ValueError("there are no batches to learn from")
        if not source.repeats and waiting is not None:
            waiting.append(first)
        return make_plan(estimator, None, first=first, classes=classes)
    return make_plan(estimator, survey_stream(estimator, source), classes=classes)


def survey_stream(estimator: Any, source: Source) -> Survey:
    """A first look over all batches."""
    if not source.repeats:
        raise ValueError(
            "labels and features are not known before the pass, and the iterator can be read "
            "once: pass classes= (or a loss object) and features='linear', or batches that can be "
            "read twice: a list, or a function that returns an iterator"
        )
    model = stream_model(estimator)
    seed = int(generator(estimator.random_state).integers(2**31)) if _fixed(estimator) else 0
    survey: Survey | None = None
    for batch in source:
        d = batch.X.shape[1] if hasattr(batch.X, "shape") else len(batch.X[0])
        size = sample_size(model, d)
        found = survey_batch(batch, size=size, seed=seed)
        survey = found if survey is None else survey + found
    if survey is None:
        raise ValueError("there are no batches to learn from")
    return survey


def _fixed(estimator: Any) -> bool:
    """Whether drawing a seed changes nothing: a generator would move on."""
    return not isinstance(estimator.random_state, np.random.Generator | np.random.RandomState)


def _by_steps(estimator: Any, model: Any, source: Source, classes: Any, passes: int) -> Any:
    """Averaged SGD: every pass reads the batches in another order, rows of a batch are shuffled."""
    survey = None
    if classes is None and not isinstance(estimator.loss, Loss):
        survey = survey_stream(estimator, source)
    estimator._forget()
    rng = generator(estimator.random_state)
    steps = Steps(estimator, model, survey, classes)
    for _ in range(passes):
        for batch in source.shuffled(rng):
            steps.add(batch)
    if steps.kind is None:
        raise ValueError("there are no batches to learn from")
    return estimator


class Steps:
    """Averaged SGD, batch after batch; the first one shows what rows and labels look like."""

    def __init__(self, estimator: Any, model: Any, survey: Survey | None, classes: Any) -> None:
        self.estimator, self.model, self.survey, self.classes = estimator, model, survey, classes
        self.kind: Rows | None = None

    def add(self, batch: Batch) -> None:
        """An epoch over the rows of a batch."""
        estimator = self.estimator
        X = table_inputs(estimator, batch.X, self.model, reset=self.kind is None)
        y = batch.labels
        if self.kind is None:
            self.kind = self._begin(y)
        codes = encode_again(self.kind.labels, self.kind.loss, y)
        weight = combined_weight(batch.sample_weight, getattr(estimator, "class_weight", None), y)
        estimator._stream(self.model, Examples(self.kind, X, codes, weight))

    def _begin(self, y: Any) -> Rows:
        estimator = self.estimator
        structured = not hasattr(estimator, "class_weight")
        shown = y if self.survey is None else self.survey.labels.rows
        loss, encoding, _ = prepare_labels(
            estimator.loss_as_given(), shown, classes=self.classes, structured=structured
        )
        estimator.kind_ = Rows(loss, encoding)
        if not structured:
            estimator.classes_ = encoding.class_names(loss)
        found: Rows = estimator.kind_
        return found
