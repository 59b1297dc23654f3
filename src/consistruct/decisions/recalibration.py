"""Probabilities that rows with known labels correct: a temperature, or isotonic regression."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._members import Member
from consistruct.decisions.classes import UNSEEN
from consistruct.decisions.statistics import ClassProbabilities, Statistic
from consistruct.losses import ZeroOne
from consistruct.protocols import FloatArray, IntArray

__all__ = [
    "ENOUGH_ROWS",
    "FEWEST_ROWS",
    "LOSS_SLACK",
    "Recalibration",
    "Temperature",
    "Unchanged",
    "calibrated",
    "recalibrate_probabilities",
    "some_rows",
]

logger = logging.getLogger(__name__)

# Powers of probabilities that are tried, of which each is 2^(1/PER_OCTAVE) times the one before:
# squares of known powers give the next octave without another exponential.
PER_OCTAVE = 4
TEMPERATURES = tuple(float(t) for t in 2.0 ** (np.arange(-12, 13) / PER_OCTAVE))  # 1/8 to 8
# Added to each probability, in units of 1/classes: the log loss of a zero at the true class is
# infinite.
FLOORS = (1e-4, 1e-3, 1e-2, 1e-1)
# Fewer out-of-fold rows, counted with their weights, show nothing.
FEWEST_ROWS = 20
# Share of the log loss that a power must gain: smaller gains are not worth a change.
LEAST_GAIN = 0.02
# Relative difference of losses that counts as a tie, which goes to the smaller contrast.
LOSS_SLACK = 1e-6
# Rows that are looked at to choose a power and a floor, which are two numbers.
ENOUGH_ROWS = 8192


class Recalibration(Member, ABC):
    """Correct estimates of E[τ(y) | x], shape (n, width), before they are used.

    A subclass writes `for_decisions` and `for_reports`. They differ where a correction helps the
    argmin and is no estimate: contrast with the mean prediction, in `learning`.
    """

    @abstractmethod
    def for_decisions(self, expected: Any) -> Any:
        """Return the estimates that are decoded."""

    @abstractmethod
    def for_reports(self, expected: Any) -> Any:
        """Return the estimates that expected losses and probabilities are computed from."""

    def for_another_loss(self) -> Recalibration:
        """Return what remains of the correction where another loss judges the decisions."""
        return self


@dataclass(frozen=True, eq=False, repr=False)
class Unchanged(Recalibration):
    """Leave estimates as they are."""

    def for_decisions(self, expected: Any) -> Any:
        return expected

    def for_reports(self, expected: Any) -> Any:
        return expected


@dataclass(frozen=True, eq=False, repr=False)
class Temperature(Recalibration):
    """Sharpen or flatten probabilities, q_c ∝ (p_c + floor)^power.

    Parameters
    ----------
    power : float
        The inverse of the temperature: above 1 it sharpens, below 1 it flattens.
    floor : float
        What keeps probabilities off zero, where no power would move them.
    """

    power: float
    floor: float

    def for_decisions(self, expected: FloatArray) -> FloatArray:
        probabilities = np.maximum(expected, 0.0) + self.floor
        if self.power == 1.0:
            # log and exp would cost digits for nothing
            return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))
        logits = self.power * np.log(probabilities)
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=1, keepdims=True)
        return logits

    def for_reports(self, expected: FloatArray) -> FloatArray:
        return self.for_decisions(expected)


def recalibrate_probabilities(
    statistic: Statistic, expected: FloatArray, codes: Any, weight: FloatArray
) -> tuple[Recalibration, dict[str, FloatArray]]:
    """Return the temperature of least out-of-fold log loss, and what was compared.

        minimize over (power, floor):  −Σ_i w_i log q_{y_i}(x_i),  q_c ∝ (p_c + floor)^power

    Parameters
    ----------
    statistic : Statistic
        Of class probabilities.
    expected : (n, k) array
        Out-of-fold estimates; they are projected onto the simplex first.
    codes : (n,) array
        True labels as the loss writes them.
    weight : (n,) array

    Returns
    -------
    recalibration : Temperature, or Unchanged
        Unchanged where the gain is below `LEAST_GAIN`, or there are too few rows.
    compared : dict of arrays
        `powers`, `floors` and the `log_loss` of each pair, (floors, powers).
    """
    if weight.sum() < FEWEST_ROWS or statistic.loss.solver is not None:
        return Unchanged(), {}
    some = some_rows(len(weight), ENOUGH_ROWS)
    expected, codes, weight = expected[some], codes[some], weight[some]
    columns = statistic.loss.true_labels.index(codes)
    projected = statistic.project(expected)
    share = weight / weight.sum()
    losses = np.empty((len(FLOORS), len(TEMPERATURES)))
    ones = np.ones(statistic.width)
    for i, floor in enumerate(FLOORS):
        logs = np.log(projected + floor / statistic.width)
        logs -= logs.max(axis=1, keepdims=True)
        mean = float(share @ logs[np.arange(len(columns)), columns])
        # log loss = log Σ_c exp(power · log p_c) − power · log p_y, whose last term is linear in
        # the power; a power twice as large only squares the terms of the sum
        for first in range(PER_OCTAVE):
            powered = np.exp(TEMPERATURES[first] * logs)
            for j in range(first, len(TEMPERATURES), PER_OCTAVE):
                losses[i, j] = share @ np.log(powered @ ones) - TEMPERATURES[j] * mean
                np.square(powered, out=powered)
    best, found = np.inf, Temperature(1.0, FLOORS[0] / statistic.width)
    for (i, j), value in np.ndenumerate(losses):
        if value < best - LOSS_SLACK * abs(best if np.isfinite(best) else 1.0):
            best, found = value, Temperature(TEMPERATURES[j], FLOORS[i] / statistic.width)
    compared = {
        "powers": np.array(TEMPERATURES),
        "floors": np.array(FLOORS) / statistic.width,
        "log_loss": losses,
    }
    # against the best floor alone: a power must earn its place beside it
    plain = losses[:, TEMPERATURES.index(1.0)].min()
    if best > (1.0 - LEAST_GAIN) * plain:
        return Unchanged(), compared
    logger.info("probabilities: power %.3g, out-of-fold log loss %.4f", found.power, best)
    return found, compared


def some_rows(n: int, most: int) -> Any:
    """Return an index of all rows, or of `most` of them, drawn at random but always the same."""
    if n <= most:
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


# --- validation rows that users bring -------------------------------------------------------------

FOLDS = 5  # of the validation rows, to choose by rows that a correction was not fitted on
# Isotonic regression gives zeros, of which the log loss is infinite: what every state keeps,
# divided by the number of states. A hundredth of a per cent is less than a thousand rows can show.
LEAST_KEPT = 1e-4


@dataclass(frozen=True, eq=False, repr=False)
class Isotonic(Recalibration):
    """Map each probability by an increasing curve of its own, then divide by the row's sum.

    Parameters
    ----------
    curves : tuple of (x, y)
        Breakpoints of the piecewise linear curve of each state.
    """

    curves: tuple[tuple[FloatArray, FloatArray], ...]

    @classmethod
    def fit(cls, p: FloatArray, codes: IntArray) -> Isotonic:
        """Fit one curve per state, of the state against the rest (Zadrozny and Elkan, 2002)."""
        from sklearn.isotonic import IsotonicRegression

        curves = []
        for state in range(p.shape[1]):
            # clipped: probabilities beyond those of the validation rows take the last step
            fitted = IsotonicRegression(out_of_bounds="clip").fit(p[:, state], codes == state)
            curves.append((fitted.X_thresholds_, fitted.y_thresholds_))
        return cls(tuple(curves))

    def for_decisions(self, expected: FloatArray) -> FloatArray:
        pairs = zip(expected.T, self.curves, strict=True)
        return _normalized(np.column_stack([np.interp(p, *curve) for p, curve in pairs]))

    def for_reports(self, expected: FloatArray) -> FloatArray:
        return self.for_decisions(expected)


def calibrated(p: FloatArray, validation: FloatArray, codes: IntArray) -> tuple[FloatArray, str]:
    """Return corrected probabilities, and what was changed, in a sentence.

    The correction of least log loss, by cross-validation on the validation rows: none, a
    temperature, or isotonic regression. One that gains less than the standard error of its gain
    is not made.

    Parameters
    ----------
    p : (n, s) or (n, T, s) array
    validation : (m, s) or (m, T, s) array
        Probabilities of the same model on rows that it was not fitted on.
    codes : (m,) or (m, T) int array
        Their true states; labels of a set are pooled.
    """
    if len(validation) != len(codes):
        raise ValueError(f"calibrate= has {len(validation)} rows, but {len(codes)} true labels")
    if len(codes) < FEWEST_ROWS:
        raise ValueError(
            f"calibrate= needs at least {FEWEST_ROWS} validation rows, got {len(codes)}; omit it"
        )
    if (codes == UNSEEN).any():
        row = int(np.argmax((codes == UNSEEN).reshape(len(codes), -1).any(axis=1)))
        raise ValueError(f"y_val, row {row}: the label is none of the classes; drop this row")
    s = p.shape[-1]
    # the labels of one row stay in one fold: they are not independent of each other
    folds = np.random.default_rng(0).permutation(len(codes)) % FOLDS
    folds = np.repeat(folds, codes.size // len(codes))
    flat, true = _normalized(validation.reshape(-1, s)), codes.reshape(-1)
    statistic = ClassProbabilities(ZeroOne(s))

    def temperature(p: FloatArray, codes: IntArray) -> Recalibration:
        return recalibrate_probabilities(statistic, p, codes, np.ones(len(codes)))[0]

    ways = {
        "no change": lambda p, codes: Unchanged(),
        "a temperature": temperature,
        "isotonic regression": Isotonic.fit,
    }
    losses = {name: np.empty(len(true)) for name in ways}
    # each way is judged on folds that it was not fitted on: isotonic regression fits its own rows
    # better whatever they are
    for name, fit in ways.items():
        for fold in range(FOLDS):
            left = folds == fold
            found = fit(flat[~left], true[~left]).for_decisions(flat[left])
            losses[name][left] = -np.log(_normalized(found)[np.arange(left.sum()), true[left]])
    rows = {name: value.reshape(len(codes), -1).mean(axis=1) for name, value in losses.items()}
    best = min(rows, key=lambda name: rows[name].mean())
    gain = rows["no change"] - rows[best]
    # on few rows one of three ways is ahead by chance, and isotonic regression then does harm
    if gain.mean() <= gain.std() / np.sqrt(len(gain)):
        best = "no change"
    found = ways[best](flat, true)
    compared = ", ".join(f"{rows[name].mean():.4g} with {name}" for name in ways)
    power = f" (power {found.power:.3g})" if isinstance(found, Temperature) else ""
    note = f"probabilities: {best}{power}; log loss of {len(codes)} validation rows: {compared}"
    rows_of_p = p.reshape(-1, s)
    if best == "no change":  # one class against the rest: compared as shares of their sum
        sums = rows_of_p.sum(axis=1, keepdims=True)
        rows_of_p = np.where(np.abs(sums - 1.0) > LEAST_KEPT, rows_of_p / sums, rows_of_p)
    corrected = found.for_decisions(rows_of_p)
    return corrected.reshape(p.shape), note


def _normalized(p: FloatArray) -> FloatArray:
    """Return positive probabilities that sum to 1, (n, s)."""
    kept = np.maximum(p, 0.0) + LEAST_KEPT / p.shape[1]
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))
