"""Entries of a report about a fitted model: scores, curves, mistakes, columns; plain data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "BandwidthPoint",
    "ColumnEntry",
    "Confusion",
    "CostlyExample",
    "CurveFit",
    "CurveForecast",
    "DecisionChange",
    "ForecastPoint",
    "LossBin",
    "Measure",
    "ModelScore",
    "PartErrors",
    "PathPoint",
    "PortfolioEntry",
    "Profit",
    "ProfitPoint",
    "Selective",
    "SelectivePoint",
]


@dataclass(frozen=True)
class ModelScore:
    """Mean loss of a model on the examples held out, and its difference to the first one.

    Attributes
    ----------
    difference : float
        This mean minus that of the reported model, on the same examples: positive is worse.
    seconds : float or None
        To fit it; None where nothing was fitted for the report.
    low, high : float or None
        95 % interval of the mean, for any number of examples; None where the loss has no bounds.
    """

    name: str
    mean: float
    standard_error: float | None
    difference: float
    difference_error: float | None
    seconds: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class PathPoint:
    """One penalty that was compared: leave-one-out task loss with its error, and criterion."""

    alpha: float
    task_loss: float | None
    task_error: float | None
    criterion: float


@dataclass(frozen=True)
class PortfolioEntry:
    """One model that model="auto" considered: what became of it, its weight, its out-of-fold loss.

    `criterion` is what models are compared by, on out-of-fold examples: smaller is better.
    """

    name: str
    status: str
    weight: float
    task_loss: float | None
    seconds: float
    criterion: float | None = None


@dataclass(frozen=True)
class BandwidthPoint:
    """One bandwidth of the kernel: leave-one-out task loss at its best penalty."""

    bandwidth: float
    task_loss: float
    task_error: float
    chosen: bool


@dataclass(frozen=True)
class CurveFit:
    """Mean loss after training on so many examples; the error is over repeated draws of them."""

    model: str
    n_train: int
    mean: float
    standard_error: float | None


@dataclass(frozen=True)
class ForecastPoint:
    """What the loss is expected to be after training on so many examples, and between what."""

    n_train: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class CurveForecast:
    """How the learning curve goes on, see `consistruct.guarantees.forecast`.

    Attributes
    ----------
    confidence : float
        Confidence level of the intervals.
    points : tuple of ForecastPoint
        From the training examples there are to ten times as many.
    floor, floor_low, floor_high : float
        What no number of examples gets below by the power law.
    """

    confidence: float
    points: tuple[ForecastPoint, ...]
    floor: float
    floor_low: float
    floor_high: float


@dataclass(frozen=True)
class Confusion:
    """Counts of (prediction, true label), and what they cost: the mean loss, cell by cell.

    `cost[p][t]` is the part of the mean loss that comes from predicting p when t was true.
    """

    predictions: tuple[str, ...]
    true_labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    cost: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class PartErrors:
    """Errors on one label of a label set: shares of all examples."""

    name: str
    missed: float
    spurious: float


@dataclass(frozen=True)
class LossBin:
    """Examples with similar predicted loss: what was predicted, and what happened."""

    predicted: float
    observed: float
    standard_error: float | None
    n: int


@dataclass(frozen=True)
class ProfitPoint:
    """Mean gain per example if this share of the examples is acted on, most promising first."""

    share: float
    profit: float
    savings: float | None


@dataclass(frozen=True)
class Profit:
    """What acting gains over one decision for all, where every example has its own costs.

    Attributes
    ----------
    base : str
        The decision for examples that are not acted on: the best single one.
    points : tuple of ProfitPoint
        By growing share.
    chosen, best : int
        Positions of where expected gains end, and of the largest profit in hindsight.
    """

    base: str
    points: tuple[ProfitPoint, ...]
    chosen: int
    best: int


@dataclass(frozen=True)
class DecisionChange:
    """What choosing decisions for a metric changed, on rows left out while fitting.

    Attributes
    ----------
    held_out : float or None
        The metric on the examples of the report; None where a class is among them that training
        never saw.
    estimate, plain : float
        On out-of-fold rows, with the decisions chosen on others of them, and with the likeliest
        class.
    gap : float or None
        How far the rule is at most from the best one; of concave metrics.
    names : tuple of str
        Classes, or labels of a set.
    before, after : rows of shares
        Confusions behind `plain` and `estimate`, rows are predictions. Of label sets one row per
        label: rightly absent, missed, spurious, found.
    slack : tuple of float
        By how much each constraint held on out-of-fold rows.
    """

    metric: str
    held_out: float | None
    estimate: float
    plain: float
    gap: float | None
    out_of_fold_rows: int
    names: tuple[str, ...]
    before: tuple[tuple[float, ...], ...]
    after: tuple[tuple[float, ...], ...]
    slack: tuple[float, ...]


@dataclass(frozen=True)
class SelectivePoint:
    """Mean loss if this share of the examples is answered, surest first; 95 % by resampling."""

    coverage: float
    risk: float
    low: float
    high: float


@dataclass(frozen=True)
class Selective:
    """Risk against coverage.

    Attributes
    ----------
    points : tuple of SelectivePoint
        By growing coverage.
    area, low, high : float
        Mean risk over all coverages, with a 95 % interval.
    best_area, random_area : float
        The same for an oracle that knows the losses, and for answering examples at random.
    """

    points: tuple[SelectivePoint, ...]
    area: float
    low: float
    high: float
    best_area: float
    random_area: float


@dataclass(frozen=True)
class ColumnEntry:
    """What was made of a column of the table, in words."""

    name: str
    treatment: str


@dataclass(frozen=True)
class Measure:
    """Another number that people quote for such predictions, with a 95 % interval if it has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class CostlyExample:
    """A sequence or query that loses much: its name or number, its size and its loss."""

    name: str
    size: int
    loss: float
