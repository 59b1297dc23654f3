"""The profit curve of a report: what acting on the most promising examples first would gain."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct.report.learning.entries import Profit, ProfitPoint

__all__ = ["profit_of"]

MOST_POINTS = 101  # drawn; every hundredth of the examples


def profit_of(y_true: Any, expected: Any, costs: Any, *, names: Any = None) -> Profit:
    """The curve of `consistruct.metrics.profit_curve`, at no more than 101 shares.

    Parameters
    ----------
    y_true : (n,) int array
        Codes 0..k−1 of the classes.
    expected : (n, k) array
        Expected cost of each decision for each example.
    costs : (n, k, k) array
        Of each example: what decision c costs if t is true.
    names : (k,) array, optional
        How the classes are called; by default by their codes.
    """
    from consistruct.learning.evaluation.cost_metrics import profit_curve

    curve = profit_curve(y_true, expected, costs, rows="pred")
    shares = np.linspace(0.0, 1.0, MOST_POINTS)
    # the last point of the curve that does not act on more than each share; ends, choice and best
    # point are kept exactly
    kept = np.searchsorted(curve.share, shares + 1e-12, side="right") - 1
    places = np.unique([0, *kept, curve.chosen, curve.best, len(curve.share) - 1])
    points = tuple(
        ProfitPoint(
            share=float(curve.share[place]),
            profit=float(curve.profit[place]),
            savings=None if np.isnan(curve.savings[place]) else float(curve.savings[place]),
        )
        for place in places.tolist()
    )
    return Profit(
        base=str(curve.base if names is None else names[curve.base]),
        points=points,
        chosen=int(np.searchsorted(places, curve.chosen)),
        best=int(np.searchsorted(places, curve.best)),
    )
