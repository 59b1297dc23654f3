"""Which penalty: compared by what it costs on rows that are left out in turn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from consistruct._members import frozen_array
from consistruct.learning.models.ridge.spectrum import CHUNK_BYTES, Spectrum
from consistruct.learning.statistics import Statistic, settled
from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray, IntArray, LabelArray

__all__ = [
    "LOSS_SLACK",
    "SELECTION_ROWS",
    "SINGLE_PRECISION_MARGIN",
    "Choice",
    "JudgedRows",
    "KeptPredictions",
    "PathScores",
    "Selection",
    "evaluate_path",
    "least_penalty",
    "left_out_share",
    "penalty_grid",
    "relative_grid",
    "row_chunks",
    "score_path",
]

logger = logging.getLogger(__name__)

SELECTION_ROWS = 2048  # leave-one-out risks are averaged over at most so many rows
PENALTY_DECADES = (-9.0, 1.0)  # of the mean squared norm: the penalties that alpha="auto" tries
RISK_SLACK = 1e-3
LOSS_SLACK = 1e-6  # rows with next to no weight (class_weight) decide nothing
SINGLE_PRECISION_MARGIN = 64.0  # float32 roundings of the matrix that a penalty must exceed


@dataclass(frozen=True)
class Selection:
    """How the closed form chooses.

    Attributes
    ----------
    alpha : float, (p,) array, or None for a grid
    criterion : "task_loss", "surrogate" or "gcv"
    """

    alpha: float | FloatArray | None
    criterion: str

    def rows(self, n: int, rng: np.random.Generator, limit: int = SELECTION_ROWS) -> Any:
        """Sorted row numbers for the leave-one-out risks; None if there is nothing to compare."""
        one_candidate = isinstance(self.alpha, float)
        if one_candidate or self.criterion == "gcv":
            return None
        if n <= limit:
            return np.arange(n)
        return np.sort(rng.choice(n, size=limit, replace=False))

    def penalty(
        self,
        spectrum: Spectrum,
        rows: FloatArray,  # (n, p): z_i of the examples left out; none for "gcv"
        left: JudgedRows,
        target_squares: float,
        precision: float,
    ) -> Choice:
        """The penalty from a decomposed problem."""
        alphas = self.alpha
        if isinstance(alphas, float):
            return Choice(alphas, {})
        if alphas is None:
            alphas = relative_grid(spectrum, precision)
        if self.criterion == "gcv":
            scores = spectrum.generalised_cross_validation(target_squares, alphas)
            path = {"alphas": frozen_array(alphas), "gcv": scores}
            return Choice(least_penalty(alphas, scores), path)
        found = evaluate_path(spectrum, rows, left, alphas)
        best = found.best(self.criterion)
        logger.info(
            "closed form: alpha %.3g of %d, leave-one-out task loss %.4f",
            alphas[best],
            len(alphas),
            found.task_loss[best],
        )
        return Choice(float(alphas[best]), found.as_dict())


class KeptPredictions:
    """Leave-one-out predictions of one penalty after the other; the best ones are kept.

    Recalibration needs those of the penalty that wins, and they cost a factorisation.
    """

    def __init__(self, predict: Callable[[float], FloatArray]) -> None:
        self._predict = predict  # alpha -> (n, width)
        self._least = np.inf
        self._kept: tuple[float, FloatArray] | None = None

    def scores(self, alpha: float, left: JudgedRows) -> PathScores:
        """Risks of one penalty over all rows."""
        theta = self._predict(alpha)
        found = score_path(lambda part, _y: [theta[part]], left, [alpha])
        if found.task_loss[0] <= self._least:
            self._least = float(found.task_loss[0])
            self._kept = alpha, theta
        return found

    def at(self, alpha: float) -> FloatArray:
        """Predictions of that penalty, made again if another one of the same loss was kept."""
        if self._kept is None or self._kept[0] != alpha:
            self._kept = alpha, self._predict(alpha)
        return self._kept[1]


@dataclass(frozen=True)
class Choice:
    """What was chosen, and the risks of what was compared."""

    alpha: float
    path: dict[str, FloatArray]

    @property
    def task_loss(self) -> float:
        """That of the chosen penalty, where task losses were compared."""
        return float(self.path["task_loss"][np.flatnonzero(self.path["alphas"] == self.alpha)[0]])


@dataclass(frozen=True, eq=False)
class PathScores:
    """Leave-one-out risks along the path: task loss and surrogate risk of each penalty."""

    alphas: FloatArray
    task_loss: FloatArray
    surrogate_risk: FloatArray
    task_error: FloatArray  # standard error of each task loss
    loss_scale: float  # largest task loss on the path, all rows counting alike
    null_risk: float  # surrogate risk of the best constant, all rows counting alike

    @classmethod
    def joined(cls, parts: Sequence[PathScores]) -> PathScores:
        """One path from the paths of single penalties, over the same rows."""

        def whole(name: str) -> FloatArray:
            return np.concatenate([getattr(part, name) for part in parts])

        return cls(
            whole("alphas"),
            whole("task_loss"),
            whole("surrogate_risk"),
            whole("task_error"),
            max(part.loss_scale for part in parts),
            parts[0].null_risk,
        )

    def as_dict(self) -> dict[str, FloatArray]:
        return {
            "alphas": self.alphas,
            "task_loss": self.task_loss,
            "surrogate_risk": self.surrogate_risk,
            "task_error": self.task_error,
        }

    def best(self, criterion: str) -> int:
        """Position of the best penalty.

        ``"task_loss"`` keeps the penalties with the least task loss. Of these, or of all with
        ``"surrogate"``, it takes the largest one whose surrogate risk exceeds the least by no more
        than `RISK_SLACK` of the null risk: smaller differences are noise.
        """
        risk = self.surrogate_risk
        if criterion == "task_loss":
            tied = self.task_loss <= self.task_loss.min() + LOSS_SLACK * self.loss_scale
            risk = np.where(tied, risk, np.inf)
        good = np.flatnonzero(risk <= risk.min() + RISK_SLACK * self.null_risk)
        return int(good[np.argmax(self.alphas[good])])


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Examples that are left out in turn, and what their estimates are judged by.

    Attributes
    ----------
    statistic : Statistic
    true : (n, …) array
    weight : (n,) array
    share : (n,) array
        τ, how much of each is left out.
    """

    statistic: Statistic
    true: LabelArray
    weight: FloatArray
    share: FloatArray

    @classmethod
    def of(
        cls,
        statistic: Statistic,
        true: LabelArray,
        weight: FloatArray,
        chosen: IntArray | slice = slice(None),
    ) -> Self:
        """Some of the examples; all weights together say what their weights mean."""
        return cls(statistic, true[chosen], weight[chosen], left_out_share(weight)[chosen])

    def target(self, part: slice) -> FloatArray:
        """y = τ of a slice of the examples, (rows, width)."""
        return dense_target(self.statistic.values(self.true[part]))


def evaluate_path(
    spectrum: Spectrum,
    rows: FloatArray,  # (n, p): z_i
    left: JudgedRows,
    alphas: Sequence[float] | FloatArray,
) -> PathScores:
    """Leave-one-out task loss and surrogate risk for every penalty, over the given rows."""
    return score_path(
        lambda part, y: spectrum.leave_one_out_path(
            rows[part], left.weight[part], left.share[part], y, alphas
        ),
        left,
        alphas,
    )


def score_path(
    predict: Callable[[slice, FloatArray], Iterable[FloatArray]],
    left: JudgedRows,
    alphas: Sequence[float] | FloatArray,
) -> PathScores:
    """Risks of leave-one-out predictions.

    ``predict(part, y)`` gives them, (rows, width), for a slice of the examples with targets y, by
    one penalty after the other.
    """
    statistic, true, weight = left.statistic, left.true, left.weight
    loss = statistic.loss
    n, width = len(weight), statistic.width
    task, plain, square = np.zeros((3, len(alphas)))
    risk = np.zeros(len(alphas))
    mean, squares = np.zeros(width), 0.0
    for part in row_chunks(n, width):
        y = left.target(part)
        mean += y.sum(axis=0)
        squares += float(statistic.squared_error(y).sum())
        for position, theta in zip(range(len(alphas)), predict(part, y), strict=True):
            theta = settled(theta, y)
            risk[position] += weight[part] @ statistic.squared_error(theta - y)
            if loss.decodes_cheaply:
                losses = loss(statistic.decode(theta), true[part])
            else:  # squared error stands for the task loss: no oracle is called to choose
                losses = statistic.squared_error(theta - y)
            task[position] += weight[part] @ losses
            plain[position] += losses.sum()
            square[position] += weight[part] @ losses**2
    total = weight.sum()
    spread = squares / n - float(statistic.squared_error(mean[None] / n)[0])
    return PathScores(
        np.asarray(alphas, dtype=np.float64),
        task / total,
        risk / total,
        np.sqrt(np.maximum(square / total - (task / total) ** 2, 0.0) / total),
        float(plain.max()) / n,
        max(spread, 0.0),
    )


def left_out_share(weight: FloatArray) -> FloatArray:
    """Share of each row that leave-one-out leaves out.

    Weights that are all whole numbers count repetitions, and one of them is left out. Other
    weights say how much a row matters, and all of it is left out.
    """
    if np.array_equal(weight, np.rint(weight)):
        return 1.0 / weight
    return np.ones(len(weight))


def row_chunks(n: int, width: int) -> Iterator[slice]:
    """Slices of rows whose scores take about `CHUNK_BYTES`."""
    size = max(1, CHUNK_BYTES // (8 * width))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def relative_grid(spectrum: Spectrum, precision: float) -> FloatArray:
    """Penalties in `PENALTY_DECADES` times the mean squared norm of the (centred) features.

    Two per decade; those that drown in the rounding of the products (`precision`) are left out.
    """
    trace = float(spectrum.eigenvalues.sum()) / spectrum.total_weight
    largest = float(spectrum.eigenvalues.max(initial=0.0)) / spectrum.total_weight
    return penalty_grid(trace, largest, precision)


def penalty_grid(mean_square: float, largest: float, precision: float) -> FloatArray:
    """The same from the mean squared norm and the largest eigenvalue of the second moment."""
    low, high = PENALTY_DECADES
    grid = (mean_square or 1.0) * 10.0 ** np.linspace(low, high, round(2 * (high - low)) + 1)
    return np.asarray(grid[grid >= 10.0 * precision * largest])


def least_penalty(alphas: FloatArray, scores: FloatArray) -> float:
    """The penalty with the least score, the largest of several."""
    return float(alphas[int(np.lexsort((-alphas, scores))[0])])
