"""From a fitted model and held-out data to its learning report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from consistruct._threads import within_cores
from consistruct._validation import check_count
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray
from consistruct.report.formats import loss_title
from consistruct.report.learning.baselines import label_kind
from consistruct.report.learning.decisions import decisions_of
from consistruct.report.learning.entries import (
    BandwidthPoint,
    ColumnEntry,
    Confusion,
    CostlyExample,
    CurveFit,
    CurveForecast,
    LossBin,
    PathPoint,
    Profit,
    Selective,
)
from consistruct.report.learning.error_tables import confusion_of, part_errors
from consistruct.report.learning.example_costs import report_of_costs
from consistruct.report.learning.forecast import continued
from consistruct.report.learning.model import LearningReport
from consistruct.report.learning.parts import (
    MODEL,
    column_notes,
    described,
    loss_bins,
    portfolio_of,
    ridge_of,
    score_of,
    selective_of,
)
from consistruct.report.learning.profit import profit_of
from consistruct.report.learning.refits import Refits
from consistruct.report.learning.sequence_peers import sequence_measures, tag_confusion

if TYPE_CHECKING:  # scikit-learn takes a second to import, and calibration reports need none of it
    from consistruct.learning import StructuredPredictor, TaskLossClassifier

__all__ = ["learning_report"]

UNITS = {"rows": "example", "sequences": "sequence", "queries": "query"}
N_COSTLIEST = 5


@within_cores
def learning_report(
    model: TaskLossClassifier | StructuredPredictor,
    X: Any,
    y: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    groups: Any = None,
    groups_train: Any = None,
    costs: Any = None,
    rows: str | None = None,
    columns: Any = None,
    learning_curve: bool = True,
    bandwidths: bool = True,
    repeats: int = 3,
    label_names: Any = None,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> LearningReport:
    """Evaluate a fitted model by its task loss on held-out data, against what it should beat.

    Parameters
    ----------
    model : TaskLossClassifier or StructuredPredictor
        Fitted.
    X, y : (n, n_features) array, CSR or table, and true labels; or sequences and their tags; or
        items of queries and their relevance
        Held out: not used for fitting. Everything but penalty and bandwidth is measured on them.
        For a model that was fitted with costs= and no classes, y holds the costs (n, k).
    X_train, y_train : optional
        What the model was fitted on. With them the report has baselines, a learning curve and the
        bandwidths that were not taken; without them it has the rest.
    groups, groups_train : (N,) array, optional
        The sequence or query of each row, as in `fit`.
    costs : (n, k, k) array, optional
        Of each held-out example, what every decision costs for every true label, for a classifier
        with probabilities. The report then has a profit curve; what refits the model is left out.
    rows : "pred" or "true", optional
        What the second axis of `costs` stands for, unless the model was made with `rows`.
    columns : sequence of ColumnNote, optional
        What was made of each column of the table, as ``read_data(…).columns`` tells it. By default
        it is read off a DataFrame.
    learning_curve, bandwidths : bool
        Each takes about as long as a few fits.
    repeats : int
        Draws of the training examples for each size of the learning curve.
    label_names : sequence of str, optional
        Names of the labels of label sets, or of the decisions that costs are given for.
    random_state : int
        Which examples the learning curve draws.
    progress : callable, optional
        Called with (done, total) steps.

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_iris(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    >>> model = cs.TaskLossClassifier("ordinal", cs.models.Ridge(alpha=0.01, bandwidth=1.0))
    >>> model = model.fit(X_train, y_train)
    >>> report = cs.learning_report(model, X_test, y_test, X_train=X_train, y_train=y_train,
    ...                             learning_curve=False, bandwidths=False)
    >>> report.scores[1].name, report.scores[1].mean > report.scores[0].mean
    ('best constant', True)
    """
    _check_model(model)
    if (X_train is None) != (y_train is None):
        raise ValueError("pass X_train and y_train together, or neither")
    repeats = check_count(repeats, "repeats")
    if len(y) == 0:
        raise ValueError("y is empty: a report needs at least one held-out example")
    found = columns
    if found is None:
        known = getattr(model, "columns_", None)
        found = column_notes(X if X_train is None else X_train, known)
    notes = tuple(ColumnEntry(note.name, str(note)) for note in found)
    if model.loss_.takes_cost_vectors:  # of all decisions, whatever the class: the true labels
        y, costs = _decision_costs(model, y if costs is None else costs), None
    if costs is not None:
        return report_of_costs(model, X, np.asarray(y), costs, rows=rows, columns=notes)
    if getattr(model, "example_costs_", False):
        raise ValueError(
            "the model was fitted with costs per example; pass costs= for the held-out examples"
        )
    from consistruct._frames import as_array, labels_by_name
    from consistruct.learning.encoding.labels import takes_any_labels

    y = labels_by_name(model, y)
    y_train = None if y_train is None else labels_by_name(model, y_train)
    kind, tabular = model.kind_, model.kind_.name == "rows"
    open_ended = takes_any_labels(model.loss_)
    y_true = np.asarray(as_array(y, complete=not open_ended)) if tabular else y
    inputs = model._read(X, groups)
    predicted = model._codes(inputs)
    test = kind.codes(inputs, y_true)
    losses = np.asarray(kind.losses(inputs, predicted, y_true))
    reasons: dict[str, str] = {}
    scores = [score_of(MODEL, losses, losses, None, model.loss_)]
    fits: tuple[CurveFit, ...] = ()
    forecast: CurveForecast | None = None
    candidates: tuple[BandwidthPoint, ...] = ()
    shared: int | None = None
    n_train: int | None = None
    if X_train is None:
        for part in ("baselines", "learning_curve", "bandwidths"):
            reasons[part] = "the training data were not given"
    else:
        refits = Refits(
            model, X_train, y_train, groups_train, inputs, y_true, test, random_state, progress
        )
        n_train, shared = len(refits.train), refits.overlap()
        refits.plan(learning_curve, bandwidths, repeats)
        scores += refits.baselines(losses)
        if refits.missing is not None:
            reasons["baselines"] = refits.missing
        fits = refits.learning_curve(losses) if learning_curve else ()
        if fits:
            sizes = sorted(refits.sizes)
            forecast = continued(model.loss_, n_train, sizes, refits.refits, losses)
        candidates, why = refits.bandwidths() if bandwidths else ((), "not requested")
        if why is not None:
            reasons["bandwidths"] = why
        if not fits:
            reasons["learning_curve"] = (
                "too few training examples" if learning_curve else "not requested"
            )
    path, criterion = _path(model)
    if not path:
        reasons["path"] = "the penalty was given, or the solver compares none"
    bins: tuple[LossBin, ...] = ()
    correlation: float | None = None
    selective: Selective | None = None
    try:
        expected = model.predict_expected_loss(X, **({} if tabular else {"groups": groups}))
        bins, correlation = loss_bins(expected, losses)
        selective = selective_of(expected, losses)
    except ConsistructError as error:
        reasons["expected_loss"] = getattr(error, "instead", str(error))
    labels = label_kind(model.loss_, test) if tabular else kind.name
    confusion = _confusion(model, labels, predicted, y_true, test)
    if confusion is None and labels != "sets":
        reasons["confusion"] = "errors can be counted only by class, by tag or by label of a set"
    ridge = ridge_of(model)
    return LearningReport(
        loss=repr(model.loss_),
        loss_title=loss_title(model.loss_),
        estimator=type(model).__name__,
        model=described(model),
        unit=UNITS[kind.name],
        portfolio=portfolio_of(model),
        n_train=n_train,
        n_test=len(losses),
        max_value=_largest(model.loss_, test, losses),
        alpha=None if ridge is None else float(ridge.alpha_),
        contrast=float(getattr(model.recalibration_, "contrast", 1.0)),
        scores=tuple(scores),
        criterion=criterion,
        path=path,
        bandwidths=candidates,
        learning_curve=fits,
        confusion=confusion,
        parts=part_errors(predicted, test, label_names) if labels == "sets" else (),
        bins=bins,
        rank_correlation=correlation,
        reasons=tuple(reasons.items()),
        profit=_profit(model, X, y_true, label_names),
        decisions=decisions_of(model, X, y_true, label_names) if tabular else None,
        selective=selective,
        forecast=forecast,
        columns=notes,
        measures=_measures(model, inputs, predicted, y_true),
        costliest=() if tabular else _costliest(losses, inputs, groups),
        overlap=shared,
    )


def _confusion(model: Any, labels: str, predicted: Any, y_true: Any, test: Any) -> Confusion | None:
    if labels == "sequences":
        return tag_confusion(model, predicted, test)
    return confusion_of(model, predicted, y_true, test) if labels == "classes" else None


def _decision_costs(model: Any, costs: Any) -> FloatArray:
    """Costs (n, k) in the order of the decisions of the model; a data frame is read by name."""
    from consistruct.learning.encoding.costs import CostLabels, example_costs

    labels = model.label_encoding_
    if not isinstance(labels, CostLabels):
        return np.asarray(costs, dtype=np.float64)
    return example_costs(costs, None, labels.predictions)[0]


def _profit(model: Any, X: Any, costs: Any, label_names: Any) -> Profit | None:
    """Where the true labels are the costs of all decisions, what acting gains."""
    if not model.loss_.takes_cost_vectors:
        return None
    n, k = costs.shape
    # costs do not depend on a class then: any code will do
    tensor = np.repeat(np.asarray(costs, dtype=np.float64)[:, :, None], k, axis=2)
    names = getattr(model, "classes_", None) if label_names is None else label_names
    return profit_of(np.arange(n) % k, model.expected_losses(X), tensor, names=names)


def _measures(model: Any, inputs: Any, predicted: Any, y_true: Any) -> Any:
    """What people quote besides the loss."""
    if model.kind_.name != "sequences":
        return ()
    from consistruct.learning.encoding.tags import pack_tags

    marks = inputs.offsets[1:-1]
    true = np.split(np.array(pack_tags(y_true, inputs.offsets), dtype=object), marks)
    pred = np.split(np.array(model.label_encoding_.decode(predicted.values), dtype=object), marks)
    return sequence_measures(true, pred)


def _costliest(losses: FloatArray, inputs: Any, groups: Any) -> tuple[CostlyExample, ...]:
    """The sequences or queries that lose most."""
    sizes = np.diff(inputs.offsets)
    named = groups is not None and len(groups) == int(inputs.offsets[-1])
    order = np.argsort(-losses, kind="stable")[:N_COSTLIEST]
    if named:
        first = np.asarray(getattr(inputs, "positions", np.arange(len(groups))))
        names = np.asarray(groups)[first[inputs.offsets[:-1]]]
    else:
        names = np.arange(1, len(losses) + 1)
    return tuple(
        CostlyExample(str(names[row]), int(sizes[row]), float(losses[row]))
        for row in order.tolist()
        if losses[row] > 0
    )


def _largest(loss: Any, test: Any, losses: FloatArray) -> float:
    """Largest loss that was possible; of decisions, whose costs have no limit, on these rows."""
    if loss.solver is None:
        return float(loss.max_value)
    if not loss.solver.binary:
        return float(losses.max())
    signed = loss.signed(test)
    most = np.maximum(signed, 0.0).sum(axis=1) + loss.offset(test)
    return float(most.max())


def _check_model(model: Any) -> None:
    from consistruct.learning import StructuredPredictor, TaskLossClassifier

    if not isinstance(model, TaskLossClassifier | StructuredPredictor):
        raise TypeError(
            "model must be a TaskLossClassifier or StructuredPredictor, got "
            f"{type(model).__name__}; compare other models with learning.task_loss"
        )
    if not hasattr(model, "loss_"):
        raise ValueError("the model must be fitted first: call model.fit(X, y)")


def _path(model: Any) -> tuple[tuple[PathPoint, ...], str | None]:
    """What the solver compared, by increasing penalty."""
    found = getattr(model, "path_", None) or {}
    if "alphas" not in found or len(found["alphas"]) < 2:
        return (), None
    criterion = next((name for name in ("gcv", "surrogate_risk") if name in found), None)
    if criterion is None:
        return (), None
    order = np.argsort(found["alphas"])
    has_loss = "task_loss" in found
    points = tuple(
        PathPoint(
            alpha=float(found["alphas"][n]),
            task_loss=float(found["task_loss"][n]) if has_loss else None,
            task_error=float(found["task_error"][n]) if "task_error" in found else None,
            criterion=float(found[criterion][n]),
        )
        for n in order
    )
    return points, "task_loss" if has_loss else criterion
