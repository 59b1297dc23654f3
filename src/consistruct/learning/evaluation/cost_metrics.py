"""Metrics for costs that differ from example to example: what decisions cost, saved and earned.

`costs` has shape (n, k, k) throughout: with ``rows="pred"``, ``costs[i, c, t]`` is what deciding c
costs for example i if t is true; with ``rows="true"``, ``costs[i, t, c]`` is. Negative costs are
gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._frames import as_array, labels_in_order, refuse_missing_labels
from consistruct.decisions.classes import are_codes, distinct_labels, listed, lookup_codes
from consistruct.decisions.classes import shown as shown_label
from consistruct.losses.costs.tables import cost_tensor
from consistruct.losses.matrix import Axis
from consistruct.protocols import FloatArray, LabelArray

__all__ = ["ProfitCurve", "example_losses", "profit_curve", "savings"]


def example_losses(
    y_true: Any, y_pred: Any, costs: Any, *, rows: Axis | None = None, labels: Any = None
) -> FloatArray:
    """What each decision cost, (n,).

    Parameters
    ----------
    y_true, y_pred : (n,) arrays
    costs : (n, k, k) array
        Of each example, what every decision costs for every true label.
    rows : "pred" or "true"
        What the second axis of `costs` stands for; may be omitted only if all are symmetric.
    labels : (k,) array, optional
        The classes in the order of the axes of `costs`; by default 0..k−1 if labels are such
        codes, else the k different labels of `y_true` and `y_pred` in order.

    Returns
    -------
    losses : (n,) array

    Examples
    --------
    >>> from consistruct.metrics import example_losses
    >>> loan = [[[0, 50], [3, 0]], [[0, 900], [8, 0]]]  # refusing costs 3, a default 50 or 900
    >>> names = ["pays", "fails"]
    >>> example_losses(names, ["pays", "pays"], loan, rows="pred", labels=names)
    array([  0., 900.])
    """
    true, pred, tensor = _read(y_true, y_pred, costs, rows, labels)
    return np.asarray(tensor[np.arange(len(true)), pred, true])


def savings(
    y_true: Any,
    y_pred: Any,
    costs: Any,
    *,
    rows: Axis | None = None,
    labels: Any = None,
    sample_weight: Any = None,
) -> float:
    """Share of the cost of the best single decision for all that the predictions save.

    1 is free of cost, 0 as good as treating every example alike, negative is worse than that
    (Correa Bahnsen, Aouada, Ottersten 2014).

    Parameters
    ----------
    y_true, y_pred : (n,) arrays
    costs, rows
        See `example_losses`.
    labels : (k,) array, optional
        The classes in the order of the axes of `costs`.
    sample_weight : (n,) array, optional

    Returns
    -------
    savings : float

    Examples
    --------
    >>> from consistruct.metrics import savings
    >>> costs = [[[0, 10], [1, 0]], [[0, 2], [1, 0]], [[0, 2], [1, 0]]]
    >>> savings([1, 0, 0], [1, 0, 0], costs, rows="pred")
    1.0
    >>> savings([1, 0, 0], [1, 1, 0], costs, rows="pred")  # one refused for nothing; all cost 2
    0.5
    """
    true, pred, tensor = _read(y_true, y_pred, costs, rows, labels)
    weight = _weight(sample_weight, len(true))
    index = np.arange(len(true))
    baseline = float((weight @ tensor[index, :, true]).min())
    _check_baseline(baseline)
    return 1.0 - float(weight @ tensor[index, pred, true]) / baseline


@dataclass(frozen=True, eq=False)
class ProfitCurve:
    """What is gained by acting on the most promising examples first.

    Attributes
    ----------
    share : (p,) array
        Share of the examples (of their weight) acted on, from 0 to 1.
    profit : (p,) array
        Mean gain per example over taking the base decision for all: cost saved, or money earned.
    savings : (p,) array
        The same as a share of the cost of the base decision; NaN if that is not positive.
    expected_gain : (p,) array
        Expected gain of the last example acted on, the first entry being infinite: act where the
        expected gain is at least this.
    base : label
        The decision for examples that are not acted on.
    chosen : int
        Position of the point where examples with a positive expected gain are acted on, which are
        the decisions of least expected cost.
    """

    share: FloatArray
    profit: FloatArray
    savings: FloatArray
    expected_gain: FloatArray
    base: Any
    chosen: int

    @property
    def best(self) -> int:
        """Position of the largest profit, in hindsight; of equal ones, the smallest share."""
        return int(self.profit.argmax())


def profit_curve(
    y_true: Any,
    expected: Any,
    costs: Any,
    *,
    rows: Axis | None = None,
    base: Any = None,
    labels: Any = None,
    sample_weight: Any = None,
) -> ProfitCurve:
    """Profit and savings against the share of examples acted on, most promising first.

    Acting on an example means the decision other than `base` that is expected to cost least.
    Examples are acted on in the order of what acting is expected to gain; those with equal
    expectations are acted on together, so the order of rows does not matter.

    Parameters
    ----------
    y_true : (n,) array
    expected : (n, k) array
        Expected cost of each decision, as ``expected_losses`` of a fitted classifier gives it;
        for probabilities p (n, k) it is ``np.einsum("ict,it->ic", costs, p)``.
    costs, rows
        See `example_losses`.
    base : label, optional
        The decision for all others, such as "no offer"; by default the best single decision.
    labels : (k,) array, optional
        The classes in the order of the axes of `costs`.
    sample_weight : (n,) array, optional

    Returns
    -------
    curve : ProfitCurve

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.metrics import profit_curve
    >>> costs = np.array([[[0, 10], [1, 0]], [[0, 20], [1, 0]], [[0, 5], [1, 0]]])
    >>> chance = np.array([[0.5, 0.5], [0.9, 0.1], [0.95, 0.05]])
    >>> expected = np.einsum("ict,it->ic", costs, chance)
    >>> curve = profit_curve([1, 0, 0], expected, costs, rows="pred", base=0)
    >>> curve.profit.round(2), curve.chosen  # acting on the third is expected to lose
    (array([0.  , 3.33, 3.  , 2.67]), 2)
    """
    true, _, tensor = _read(y_true, None, costs, rows, labels)
    names = _names(labels, np.asarray(y_true), tensor.shape[1])
    expected = labels_in_order(expected, [str(one) for one in names], "expected")
    prices = np.asarray(as_array(expected), dtype=np.float64)
    if prices.ndim != 2 or len(prices) != len(y_true):
        raise ValueError(
            f"expected must have shape ({len(y_true)}, decisions), the expected cost of each "
            f"decision, got {prices.shape}"
        )
    if not np.isfinite(prices).all():
        raise ValueError("expected costs must be finite, got NaN or infinite entries")
    if prices.shape[1] != tensor.shape[1]:
        raise ValueError(
            f"expected has {prices.shape[1]} columns, but costs are for {tensor.shape[1]} decisions"
        )
    weight = _weight(sample_weight, len(true))
    index = np.arange(len(true))
    # (n, k): what each decision costs, now that the true label is known
    real = tensor[index, :, true]
    code = int((weight @ real).argmin()) if base is None else _code_of(base, names)

    others = np.where(np.arange(prices.shape[1]) == code, np.inf, prices)
    action = others.argmin(axis=1)
    expected = prices[:, code] - others[index, action]
    gained = weight * (real[:, code] - real[index, action])
    order = np.argsort(-expected, kind="stable")
    last = np.flatnonzero(np.append(np.diff(expected[order]) != 0, True))  # of each tied group
    baseline = float(weight @ real[:, code])
    profit = np.append(0.0, np.cumsum(gained[order])[last])
    share = np.append(0.0, np.cumsum(weight[order])[last])
    threshold = np.append(np.inf, expected[order][last])
    return ProfitCurve(
        share=share / share[-1],  # ends at 1 exactly
        profit=profit,
        savings=profit / baseline if baseline > 0 else np.full_like(profit, np.nan),
        expected_gain=threshold,
        base=names[code],
        chosen=int((threshold > 0).sum()) - 1,
    )


# --- checks --------------------------------------------------------------------------------------


def _read(
    y_true: Any, y_pred: Any, costs: Any, rows: Axis | None, labels: Any
) -> tuple[LabelArray, LabelArray, FloatArray]:
    """Codes of both label arrays and the costs (n, k, k)."""
    true = np.asarray(as_array(y_true, "y_true"))
    refuse_missing_labels(true, "y_true")
    pred = true if y_pred is None else np.asarray(as_array(y_pred, "y_pred"))
    if true.ndim != 1 or true.shape != pred.shape:
        raise ValueError(
            f"y_true and y_pred must be label arrays of one length, got shapes {true.shape} and "
            f"{pred.shape}"
        )
    if len(true) == 0:
        raise ValueError("y_true is empty; there is nothing to judge")
    shape = np.shape(costs)
    size = shape[-1] if len(shape) == 3 else len(distinct_labels(np.concatenate([true, pred])))
    tensor = cost_tensor(costs, len(true), size, rows)
    names = _names(labels, np.concatenate([true, pred]), size)
    found = []
    for values, name in ((true, "y_true"), (pred, "y_pred")):
        codes = lookup_codes(values, names)
        if (codes < 0).any():
            unknown = shown_label(values[codes < 0][0])
            raise ValueError(f"{name} contains {unknown}, which is not one of {listed(names)}")
        found.append(codes)
    return found[0], found[1], tensor


def _names(labels: Any, present: Any, size: int) -> Any:
    """The classes in the order of the axes of the costs."""
    if labels is not None:
        names = np.asarray(labels)
        if names.shape != (size,) or len(set(names.tolist())) < size:
            raise ValueError(
                f"labels must contain the {size} classes that costs are for, each once, got "
                f"{listed(names.ravel())}"
            )
        return names
    distinct = distinct_labels(present)
    if are_codes(distinct, size):
        return np.arange(size)
    if len(distinct) != size:
        raise ValueError(
            f"costs are for {size} classes, but the labels are {listed(distinct)}; pass labels= "
            "in the order of the axes of costs"
        )
    return distinct


def _code_of(label: Any, names: Any) -> int:
    found = [code for code, name in enumerate(names.tolist()) if name == label]
    if not found:
        raise ValueError(f"base is {shown_label(label)}, which is not one of {listed(names)}")
    return found[0]


def _weight(sample_weight: Any, n: int) -> FloatArray:
    """Shares of the examples, (n,), which sum to one."""
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,) or not (weight >= 0).all() or not 0 < weight.sum() < np.inf:
        raise ValueError(
            f"sample_weight must contain {n} non-negative finite numbers, not all zero"
        )
    return np.asarray(weight / weight.sum())


def _check_baseline(baseline: float) -> None:
    if not baseline > 0:
        raise ValueError(
            f"the best single decision costs {baseline:.6g} on average, and savings are a share "
            "of a positive cost; compare the means of example_losses instead"
        )
