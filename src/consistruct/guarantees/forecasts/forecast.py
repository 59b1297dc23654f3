"""What more rows would bring: the task loss forecast from a pilot data set."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from consistruct._html import Line, card, lines_svg, table
from consistruct._progress import showing
from consistruct._validation import check_number
from consistruct.guarantees.forecasts.learning_curve import CurveData, PowerLaw
from consistruct.learning.evaluation.intervals import Interval
from consistruct.learning.refits import Refits, nested_refits
from consistruct.protocols import FloatArray

__all__ = ["FACTORS", "Forecast", "RowsNeeded", "curve_of_draws", "forecast"]

FACTORS = (2, 4, 10)  # times the rows
FURTHEST = 100  # times the rows: nothing is stated beyond


@dataclass(frozen=True)
class RowsNeeded:
    """How many examples a loss takes.

    Attributes
    ----------
    value : float
        The loss (of a metric: its value) that was requested.
    rows, low, high : int or None
        At these numbers the middle, the lower and the upper end of the forecast reach it; None
        where that is beyond 100 times the examples there are, or never.
    text : str
        The same in one line.
    """

    value: float
    rows: int | None
    low: int | None
    high: int | None
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False)
class Forecast:
    """A learning curve that was measured, and how it goes on.

    Attributes
    ----------
    n : int
        Examples that there are.
    power_law : PowerLaw
        What was measured at growing numbers of examples (``power_law.data``), and what is believed
        of the curve after that.
    loss : str
        What is forecast.
    metric : str or None
        Name of a non-decomposable metric; the curve is then that of one minus its value.
    confidence : float
        Confidence level of the intervals.

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = cs.forecast(cs.TaskLossClassifier("zero_one", cs.models.Ridge()), X[:150], y[:150])
    >>> now, more = found.at(150), found.at(1500)
    >>> now.high > more.estimate > more.low >= 0
    True
    >>> str(found.rows_for(0.0)).partition(":")[0]
    'a loss of 0 is below what more rows can bring'
    """

    n: int
    power_law: PowerLaw
    loss: str
    metric: str | None = None
    confidence: float = 0.9

    @property
    def data(self) -> CurveData:
        """What was measured."""
        return self.power_law.data

    def at(self, n: float, *, measured_on: int | None = None) -> Interval:
        """The loss (of a metric: its value) after training on n examples.

        Parameters
        ----------
        n : float
            Examples; from those of the smallest refit to 100 times those that there are.
        measured_on : int, optional
            Interval of the mean over so many new examples, which adds their noise. None: of the
            true loss.
        """
        rows = check_number(n, "n", low=float(self.data.sizes[0]), high=float(FURTHEST * self.n))
        low, middle, high = self.power_law.quantiles(
            rows, self._probabilities, measured_on=measured_on
        )
        return self._shown(low, middle, high)

    def table(self) -> tuple[tuple[int, Interval], ...]:
        """(examples, loss) now and at 2, 4 and 10 times the examples."""
        return tuple((f * self.n, self.at(f * self.n)) for f in (1, *FACTORS))

    def measured(self) -> tuple[tuple[int, Interval], ...]:
        """(examples, out-of-fold loss) of the refits, with intervals over the held-out rows."""
        reach = float(ndtri(self._probabilities[2]))
        spread = reach * np.sqrt(np.diag(self.data.covariance))
        found = []
        for size, mean, error in zip(self.data.sizes, self.data.means, spread, strict=True):
            low = max(float(mean - error), self.data.low)
            found.append((int(size), self._shown(low, float(mean), float(mean + error))))
        return tuple(found)

    @cached_property
    def floor(self) -> Interval:
        """What no number of rows gets below by the power law (of a metric: above)."""
        return self._shown(*self.power_law.floor(self._probabilities))

    def rows_for(self, value: float) -> RowsNeeded:
        """How many examples a loss of `value` takes (of a metric: a value of it).

        Parameters
        ----------
        value : float
        """
        wanted = check_number(value, "value")
        loss = wanted if self.metric is None else 1.0 - wanted
        reached = [self._first(loss, end) for end in range(3)]
        low, rows, high = reached
        return RowsNeeded(wanted, rows, low, high, self._reported(wanted, low, rows, high))

    def _first(self, loss: float, end: int) -> int | None:
        """Fewest examples at which one end of the forecast is at most `loss`."""
        curve = self._curve[:, end]
        below = np.flatnonzero(curve <= loss)
        if not len(below):
            return None
        place = int(below[0])
        if place == 0:
            return math.ceil(self._grid[0])
        # between two sizes, in proportion
        before, after = curve[place - 1], curve[place]
        share = (before - loss) / (before - after)
        start, stop = np.log(self._grid[place - 1]), np.log(self._grid[place])
        return math.ceil(math.exp(start + share * (stop - start)))

    @cached_property
    def _grid(self) -> FloatArray:
        return np.geomspace(self.data.sizes[0], FURTHEST * self.n, 80)

    @cached_property
    def _curve(self) -> FloatArray:
        """(sizes, 3): ends and middle of the loss, by growing size."""
        return np.array(
            [self.power_law.quantiles(float(n), self._probabilities) for n in self._grid]
        )

    def _reported(self, value: float, low: int | None, rows: int | None, high: int | None) -> str:
        word = "loss" if self.metric is None else self.metric
        what = f"a {word} of {value:.4g}" if self.metric is None else f"{word} = {value:.4g}"
        if low is None:
            side = "below" if self.metric is None else "above"
            return f"{what} is {side} what more rows can bring: the floor is about {self.floor}"
        smallest = int(self.data.sizes[0])
        if high is not None and high <= smallest:
            return f"{what} takes no more than {smallest} rows"
        least = f"from {low}" if low > smallest else f"from {smallest} or fewer"
        most = f"to {high}" if high is not None else f"to more than {FURTHEST * self.n}"
        middle = f"about {rows}" if rows is not None else f"more than {FURTHEST * self.n}"
        return (
            f"{what} takes {middle} rows ({least} {most}, {self.confidence:.0%} interval; there "
            f"are {self.n})"
        )

    @property
    def _probabilities(self) -> tuple[float, float, float]:
        tail = 0.5 * (1.0 - self.confidence)
        return tail, 0.5, 1.0 - tail

    def _shown(self, low: float, middle: float, high: float) -> Interval:
        """In the units that users know: a metric is greater for better predictions."""
        if self.metric is None:
            return Interval(middle, low, high, self.confidence)
        return Interval(1.0 - middle, 1.0 - high, 1.0 - low, self.confidence)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "loss": self.loss,
            "metric": self.metric,
            "n": self.n,
            "confidence": self.confidence,
            "measured": [_point(n, found) for n, found in self.measured()],
            "forecast": [_point(n, found) for n, found in self.table()],
            "floor": [self.floor.estimate, *self.floor.as_list()],
            "rate": self.power_law.rate(),
        }

    def _repr_html_(self) -> str:
        name = "loss" if self.metric is None else self.metric
        rows = [
            (f"{n}{' (now)' if n == self.n else ''}", f"{at.estimate:.3g}", _between(at))
            for n, at in self.table()
        ]
        rows.append(("floor of the curve", f"{self.floor.estimate:.3g}", _between(self.floor)))
        seen, ahead = self.measured(), [n * self.n for n in (1, 1.5, 2, 3, 4, 6, 10)]
        found = [self.at(n) for n in ahead]
        picture = lines_svg(
            [
                Line(ahead, [at.low for at in found], [at.high for at in found]),
                Line([n for n, _ in seen], [at.estimate for _, at in seen], name="measured"),
                Line(ahead, [at.estimate for at in found], name="forecast, with its interval"),
            ],
            "rows",
            name,
            x_log=True,
            description=f"{name} over rows: measured, then forecast with its interval",
        )
        share = f"{self.confidence:.0%} interval"
        title = f"Forecast of {self.loss}, from {self.n} rows"
        return card(title, table(("rows", f"{name} expected", share), rows), picture)

    def __str__(self) -> str:
        name = "loss" if self.metric is None else self.metric
        lines = [f"{'rows':>10}  {name} [{self.confidence:.0%} interval]"]
        lines += [f"{n:>10}  {found}{'  now' if n == self.n else ''}" for n, found in self.table()]
        return "\n".join([*lines, f"{'floor':>10}  {self.floor}"])


def forecast(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    confidence: float = 0.9,
    random_state: Any = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Forecast:
    """Forecast the task loss at more rows than there are, with intervals.

    The estimator is refitted on nested parts of the rows, from a fifth of them up to four
    fifths, and evaluated on rows left out. A power law a + b·n^−c is fitted to what it loses, and
    the intervals count both what the refits do not tell (few rows are held out, other rows might
    have been drawn) and what the power law does not (many a, b and c fit, and no curve follows it
    exactly). They take the new rows to be of the same kind as these, and the same settings to be
    used; a model that is chosen by size ("auto") may do better than the forecast at ten times the
    rows.

    Parameters
    ----------
    estimator : TaskLossClassifier or StructuredPredictor
        Fitted or not; it is not changed. Its loss may be a non-decomposable metric,
        whose value is then forecast; one with a constraint is refused. With costs of each example:
        ``StructuredPredictor("cost-vectors", …)``, whose y are the costs.
    X, y, groups
        As its `fit` takes them; at least 50 examples.
    confidence : float
        Confidence level of the intervals.
    random_state : int or Generator
        Which rows are left out and which are in the parts.
    progress : callable, optional
        Called with (fits done, fits in all); there are 26.

    Returns
    -------
    forecast : Forecast

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = cs.forecast(cs.TaskLossClassifier("ordinal", cs.models.Ridge()), X, y)
    >>> [n for n, loss in found.table()]
    [150, 300, 600, 1500]
    """
    confidence = check_number(confidence, "confidence", low=0.5, high=0.999)
    with showing("refits for a forecast") as advance:
        refits = nested_refits(
            estimator, X, y, groups=groups, random_state=random_state, progress=progress or advance
        )
    power_law = PowerLaw(curve_data(refits))
    return Forecast(refits.n, power_law, refits.loss, refits.metric, confidence)


def curve_data(refits: Refits) -> CurveData:
    """What refits say of the curve: errors by the held-out rows and by those trained on."""
    sizes, k = refits.sizes, refits.n_folds
    # two folds' parts of s rows share so much of them
    shared = (k - 2) / (k - 1) * sizes / sizes[-1] if k > 1 else np.ones(len(sizes))
    # a fit on s rows varies by t/s over draws of them; fold means show what they do not share
    visible = (1.0 - shared) / sizes
    variance = max(0.0, float(refits.spreads @ visible / (visible @ visible)))
    larger = np.maximum.outer(np.arange(len(sizes)), np.arange(len(sizes)))
    of_mean = variance / sizes * (1.0 / k + (1.0 - 1.0 / k) * shared)
    return CurveData(
        sizes=sizes,
        means=refits.means,
        covariance=refits.covariance + of_mean[larger],  # nested: they share the smaller part
        training_variance=variance,
        row_variance=refits.row_variance,
        low=refits.bounds[0],
    )


def curve_of_draws(
    sizes: FloatArray, losses: Sequence[FloatArray], n: int, bounds: tuple[float, float]
) -> CurveData:
    """What fits on random parts of n examples say, all evaluated on the same held-out rows.

    Parameters
    ----------
    sizes : (J,) array
        Examples of each part, growing; the last may be n itself.
    losses : sequence of (draws, m) arrays
        For each size the losses of the held-out rows by each fit.
    n : int
    bounds : (float, float)
        Least and largest loss that is possible.
    """
    sizes = np.asarray(sizes, dtype=np.float64)
    rows = np.array([found.mean(axis=0) for found in losses])  # (J, m)
    m = rows.shape[1]
    # two parts of s rows share s/n of them; draws show the rest of t/s
    several = np.array([len(found) > 1 for found in losses])
    visible = np.where(several, np.maximum(1.0 / sizes - 1.0 / n, 0.0), 0.0)
    spread = np.array([f.mean(axis=1).var(ddof=1) if len(f) > 1 else 0.0 for f in losses])
    variance = float(spread @ visible / (visible @ visible)) if visible.any() else 0.0
    draws = np.array([len(found) for found in losses])
    own = variance * (1.0 / sizes - 1.0 / n) / draws
    largest = float(rows.max() - bounds[0]) or min(bounds[1] - bounds[0], 1.0)
    unseen = (largest / m) ** 2 * (1.0 + np.eye(len(sizes)))
    return CurveData(
        sizes=sizes,
        means=rows.mean(axis=1),
        covariance=np.atleast_2d(np.cov(rows)) / m + variance / n + np.diag(own) + unseen,
        training_variance=variance,
        row_variance=float(rows[-1].var()),
        low=bounds[0],
    )


def _between(found: Interval) -> str:
    return f"{found.low:.3g} to {found.high:.3g}"


def _point(n: int, found: Interval) -> dict[str, Any]:
    return {"n": n, "estimate": found.estimate, "low": found.low, "high": found.high}
