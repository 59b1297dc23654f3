"""Ridge regression for every penalty from one eigendecomposition, and which penalty to take.

The problem, with weights w_i summing to N, features φ_i and targets y_i (width columns):

    min_W  (1/N) Σ_i w_i ‖y_i − b − Wᵀφ_i‖² + α ‖W‖²,      b free if there is an intercept.

Both the primal (d × d) and the dual (n × n) form lead to the same few numbers: eigenvalues s_j,
row coordinates z_i with Σ_i w_i z_i z_iᵀ = diag(s), and moments m = Σ_i w_i z_i (y_i − ȳ)ᵀ. Then

    fitted:    ŷ_i = ȳ + z_iᵀ diag(1/(s + Nα)) m
    leverage:  h_i = w_i (z_iᵀ diag(1/(s + Nα)) z_i + 1/N)         (1/N for the intercept)
    left out:  y_i − (y_i − ŷ_i)/(1 − τ_i h_i)

where τ_i is the share of row i that is left out: whole weights count repetitions, one of which is
left out, so that weighting a row and repeating it select the same penalty; else τ_i = 1.

Penalties are compared by what the out-of-fold estimates cost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from consistruct._members import frozen_array
from consistruct.decisions.statistics import Statistic
from consistruct.learning.statistics import rounded_scores
from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.structures import Structure

__all__ = [
    "LEVERAGE_LIMIT",
    "LOSS_SLACK",
    "SELECTION_ROWS",
    "SINGLE_PRECISION_MARGIN",
    "Choice",
    "KeptPredictions",
    "OutputPenalty",
    "PathScores",
    "Selection",
    "Spectrum",
    "ValidationRows",
    "least_penalty",
    "out_of_fold_share",
    "penalty_grid",
    "relative_grid",
    "row_chunks",
    "score_path",
]

logger = logging.getLogger(__name__)

CHUNK_BYTES = 32 * 2**20
LEVERAGE_LIMIT = 1.0 - 1e-10  # a row that is interpolated exactly has no leave-one-out residual
SELECTION_ROWS = 2048  # leave-one-out risks are averaged over at most so many rows
PENALTY_DECADES = (-9.0, 1.0)  # of the mean squared norm: the penalties that alpha="auto" tries
RISK_SLACK = 1e-3
LOSS_SLACK = 1e-6  # rows with next to no weight (class_weight) decide nothing
SINGLE_PRECISION_MARGIN = 64.0  # float32 roundings of the matrix that a penalty must exceed


class OutputPenalty:
    """Which outputs are penalized how much: tr(WᵀḠW) needs nothing, ‖W‖² the eigenbasis of Ḡ.

    In the eigenbasis E of Ḡ = E diag(g) Eᵀ the risk ½(θ+u)ᵀḠ(θ+u) + (α/2)‖W‖² splits into
    ridge problems with penalties α/g_e; directions with g_e = 0 change no score and stay zero.
    """

    def __init__(self, rotation: FloatArray | None, factor: FloatArray) -> None:
        self.rotation = rotation  # (width, rank), None for the identity
        self.factor = factor  # (rank,) multiplies α

    @classmethod
    def gram(cls, width: int) -> OutputPenalty:
        return cls(None, np.ones(width))

    @classmethod
    def weights(cls, space: Structure) -> OutputPenalty:
        values, vectors = np.linalg.eigh(space.gram().dense())
        kept = values > len(values) * float(np.finfo(np.float64).eps) * values[-1]
        return cls(np.ascontiguousarray(vectors[:, kept]), 1.0 / values[kept])

    def into(self, rows: FloatArray) -> FloatArray:
        return rows if self.rotation is None else rows @ self.rotation

    def back(self, rows: FloatArray) -> FloatArray:
        return rows if self.rotation is None else rows @ self.rotation.T


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The decomposed problem.

    Attributes
    ----------
    eigenvalues : (p,) array
        s, non-negative.
    moments : (p, rank) array
        m, in the output basis of `penalty`.
    total_weight : float
        N.
    mean_target : (width,) array
        ȳ, zeros without intercept.
    fit_intercept : bool
    penalty : OutputPenalty
    """

    eigenvalues: FloatArray
    moments: FloatArray
    total_weight: float
    mean_target: FloatArray
    fit_intercept: bool
    penalty: OutputPenalty

    def shrunk(self, alpha: float) -> FloatArray:
        """diag(1/(s + Nα)) m, (p, rank)."""
        return self.moments / self._denominators(alpha, self.penalty.factor)

    def _denominators(self, alpha: float, factor: FloatArray) -> FloatArray:
        values = self.eigenvalues[:, None] + self.total_weight * alpha * factor
        # a direction without data has no moment either: 0/0 is 0
        return np.where(values > 0, values, np.inf)

    def leave_one_out(
        self, rows: FloatArray, weight: FloatArray, share: FloatArray, y: FloatArray, alpha: float
    ) -> FloatArray:
        """Predictions (n, width) for rows z_i from the fit without the share of that row."""
        return next(self.leave_one_out_path(rows, weight, share, y, [alpha]))

    def leave_one_out_path(
        self,
        rows: FloatArray,  # (n, p): z_i
        weight: FloatArray,  # (n,)
        share: FloatArray,  # (n,)
        y: FloatArray,  # (n, width)
        alphas: Sequence[float] | FloatArray,
    ) -> Iterator[FloatArray]:
        """The same for one penalty after the other; products are made for many at once."""
        distinct, column = np.unique(self.penalty.factor, return_inverse=True)
        centered = self.penalty.into(y - self.mean_target)
        squares = rows**2
        size = max(1, CHUNK_BYTES // (8 * max(centered.size, self.moments.size, 1)))
        for start in range(0, len(alphas), size):
            some = [float(alpha) for alpha in alphas[start : start + size]]
            inverses = [1.0 / self._denominators(alpha, distinct) for alpha in some]
            square = np.split(squares @ np.hstack(inverses), len(some), axis=1)  # (n, distinct)
            fitted = np.split(rows @ np.hstack(list(map(self.shrunk, some))), len(some), axis=1)
            for norms, values in zip(square, fitted, strict=True):
                leverage = weight[:, None] * (norms + self.fit_intercept / self.total_weight)
                kept = 1.0 - np.minimum(share[:, None] * leverage, LEVERAGE_LIMIT)
                residual = (centered - values) / kept[:, column]
                yield self.mean_target + self.penalty.back(centered - residual)

    def generalized_cross_validation(self, target_squares: float, alphas: FloatArray) -> FloatArray:
        """N·RSS/(N − df)² of each penalty, summed over the outputs; needs no pass over the data."""
        values, total = self.eigenvalues[:, None], self.total_weight
        scores = np.empty(len(alphas))
        for position, alpha in enumerate(alphas):
            denominators = self._denominators(float(alpha), self.penalty.factor)
            explained = self.moments**2 * (2.0 / denominators - values / denominators**2)
            freedom = float((values / denominators).sum(axis=0).mean()) + self.fit_intercept
            remaining = max(1.0 - freedom / total, 1e-10)
            scores[position] = (target_squares - float(explained.sum())) / total / remaining**2
        return scores


# --- which penalty ---


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
        left: ValidationRows,
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
            scores = spectrum.generalized_cross_validation(target_squares, alphas)
            path = {"alphas": frozen_array(alphas), "gcv": scores}
            return Choice(least_penalty(alphas, scores), path)

        def out_of_fold(part: slice, y: FloatArray) -> Iterator[FloatArray]:
            return spectrum.leave_one_out_path(
                rows[part], left.weight[part], left.share[part], y, alphas
            )

        found = score_path(out_of_fold, left, alphas)
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

    Recalibration needs those of the penalty that wins, and they cost a factorization.
    """

    def __init__(self, predict: Callable[[float], FloatArray]) -> None:
        self._predict = predict  # alpha -> (n, width)
        self._least = np.inf
        self._kept: tuple[float, FloatArray] | None = None

    def scores(self, alpha: float, left: ValidationRows) -> PathScores:
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
class ValidationRows:
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
        return cls(statistic, true[chosen], weight[chosen], out_of_fold_share(weight)[chosen])

    def target(self, part: slice) -> FloatArray:
        """y = τ of a slice of the examples, (rows, width)."""
        return dense_target(self.statistic.values(self.true[part]))


def score_path(
    predict: Callable[[slice, FloatArray], Iterable[FloatArray]],
    left: ValidationRows,
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
            theta = rounded_scores(theta, y)
            risk[position] += weight[part] @ statistic.squared_error(theta - y)
            if loss.solver is None:
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


def out_of_fold_share(weight: FloatArray) -> FloatArray:
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
    """Penalties in `PENALTY_DECADES` times the mean squared norm of the (centered) features.

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
