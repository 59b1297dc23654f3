"""From calibration rows to a safety: conformal risk control, or learn then test.

* **Conformal** (Angelopoulos et al. 2024): the least safety s with (Σ loss_i(s) + high)/(n + 1) ≤
  level. If losses never increase with s, the *expected* loss of the next row is at most the level,
  rows that give no rule counting as no loss.
* **Confidence** 1 − δ, losses that never increase: the least s from which on all evidence suffices
  (Bates et al. 2021). P(a rule is issued and its risk exceeds the level) ≤ δ over the rows.
* **Learn then test** (Angelopoulos et al. 2021), whatever the losses do: a fifth of the rows, the
  pilot, lists thresholds and states where to start; the others test them one after the other
  toward less safety, until the first that fails; P(issued and exceeded) ≤ δ. In expectation: δ is
  a tenth of the level, and the level tested is lowered so that level' + δ·(high − level') is the
  one guaranteed.

Whether losses never increase is for the policy to prove; it is not looked up in the rows.

None of this bounds P(exceeded | issued), unless a rule is always issued (`always_issued`): a level
that no rule keeps is refused most of the time, and whatever is issued all the same exceeds it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct.exceptions import RiskLevelError
from consistruct.guarantees.risk.guarantee import in_full
from consistruct.guarantees.risk.ladders import Ladder, Steps
from consistruct.learning.evaluation.evidence import (
    TESTS,
    binomial,
    capital,
    hoeffding_bentkus,
    rows_needed,
    stakes,
)
from consistruct.protocols import FloatArray

__all__ = [
    "METHODS",
    "Threshold",
    "always_issued",
    "by_segment",
    "calibrate",
    "check_rows",
    "choose_method",
]

METHODS = ("auto", "conformal", "monotonized", *TESTS)
PILOT = 5  # one row in so many
LARGEST_PILOT = 2000
CANDIDATES = 1000  # thresholds that are tested at most
ROUNDING = 1e-12  # of the largest loss, in a mean


@dataclass(frozen=True, eq=False)
class Threshold:
    """How safe to be.

    Attributes
    ----------
    safety : float
        For a row of weight 0 where rows are weighted, for every row otherwise.
    method : str
        What found it: "conformal", "monotonized", "betting" or "hoeffding-bentkus".
    n : int
        Calibration rows.
    safeties, room : (S,) arrays or None
        Weighted rows: a row of weight w needs the first safety with ``room`` ≥ w.
    """

    safety: float
    method: str
    n: int
    safeties: FloatArray | None = None
    room: FloatArray | None = None

    def of_weights(self, weights: FloatArray | None) -> float | FloatArray:
        """The safety of each row; one for all where calibration rows had no weights."""
        if self.safeties is None or self.room is None or weights is None:
            return self.safety
        found = np.searchsorted(self.room, weights - 1e-12)
        return np.append(self.safeties, np.inf)[found]


def by_segment(
    thresholds: dict[Any, Threshold], segments: np.ndarray, weights: FloatArray | None
) -> FloatArray:
    """The safety of each row, (n,), by the segment that it belongs to."""
    found, known = np.empty(len(segments)), np.zeros(len(segments), dtype=bool)
    for name, threshold in thresholds.items():
        rows = segments == name
        found[rows] = threshold.of_weights(None if weights is None else weights[rows])
        known |= rows
    if not known.all():
        stranger = segments[~known].tolist()[0]
        raise ValueError(
            f"segment {stranger!r} had no calibration rows; the known segments are "
            f"{', '.join(map(repr, thresholds))}"
        )
    return found


def choose_method(
    method: str,
    *,
    monotone: bool,
    risk: str,
    confidence: float | None,
    two_values: bool = False,
    weighted: bool = False,
) -> str:
    """The method that "auto" stands for, or an error where the one requested proves nothing."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if risk == "selective" and confidence is None:
        raise ValueError(
            "the selective risk, loss per answer, is controlled with a confidence; pass "
            "confidence=0.9, or risk='marginal'"
        )
    exact = ("conformal", "monotonized")
    if method == "auto":
        if confidence is None and monotone:
            return "conformal"
        return "binomial" if two_values and not weighted else "betting"
    if method in exact and confidence is not None:
        raise ValueError(
            f"method={method!r} guarantees the expected risk; with confidence= use 'auto' or one "
            f"of {', '.join(TESTS)}"
        )
    if method == "conformal" and not monotone:
        raise ValueError(
            "method='conformal' needs losses that never increase with safety, which is not proved "
            "for this policy and loss; use 'monotonized' or 'auto'"
        )
    if method == "hoeffding-bentkus" and risk == "selective":
        raise ValueError("the selective risk is tested by method='betting', not by a plain mean")
    if method == "binomial" and not two_values:
        raise ValueError(
            "method='binomial' needs a loss with only two values; use 'auto' or 'betting'"
        )
    if weighted and method in ("hoeffding-bentkus", "binomial"):
        raise ValueError("weighted rows are tested by method='betting'")
    return method


def _tested(level: float, confidence: float | None) -> tuple[float, float]:
    """Level (losses in [0, 1]) and δ of the tests; both lowered where none was requested."""
    if confidence is not None:
        return level, 1.0 - confidence
    delta = 0.1 * level
    return (level - delta) / (1.0 - delta), delta


def check_rows(
    n: int,
    *,
    level: float,
    bounds: tuple[float, float],
    confidence: float | None,
    monotone: bool,
    method: str,
    safest: float,
    where: str = "",
) -> None:
    """Raise one line that states how many rows it takes, or that no number of rows would do."""
    low, high = bounds
    if high <= low or level >= high:
        return
    if safest >= level:
        raise RiskLevelError(
            f"level {in_full(level)}{where} cannot be guaranteed: the safest prediction may cost "
            f"{safest:g}; choose a higher level, or another policy"
        )
    scaled, least = (level - low) / (high - low), (safest - low) / (high - low)
    if method in ("conformal", "monotonized"):
        needed = rows_needed(scaled, safest=least)
    else:
        tested, delta = _tested(scaled, confidence)
        needed = rows_needed(tested, 1.0 - delta, safest=min(least, 0.999 * tested), test=method)
        if not (monotone and confidence is not None):  # some rows are the pilot's
            while needed - _pilot_size(needed) < rows_needed(
                tested, 1.0 - delta, safest=min(least, 0.999 * tested), test=method
            ):
                needed += 1
    if n < needed:
        with_confidence = "" if confidence is None else f" with confidence {in_full(confidence)}"
        raise RiskLevelError(
            f"too few rows{where} for level {in_full(level)}{with_confidence}: it takes at least "
            f"{needed}, got {n}"
        )


def always_issued(*, monotone: bool, risk: str, weighted: bool) -> bool:
    """Whether rows that pass `check_rows` give a rule whatever they contain.

    The safest predictions then cost at most what `check_rows` was given, and so many rows prove
    that to be below the level. Weights may leave too few rows that count; tests in sequence start
    at a pilot's guess, which need not pass.
    """
    return monotone and risk == "marginal" and not weighted


def calibrate(
    ladder: Ladder,
    *,
    level: float,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence: float | None = None,
    monotone: bool,
    risk: str = "marginal",
    method: str = "auto",
    two_values: bool = False,
    weights: FloatArray | None = None,
    rng: np.random.Generator | None = None,
) -> Threshold:
    """The least safety that the rows allow.

    Parameters
    ----------
    ladder : Ladder
        Safer predictions of the calibration rows.
    level : float
    bounds : (float, float)
        Least and largest loss that can occur.
    confidence : float, optional
        One minus the probability that a threshold is returned whose risk exceeds the level; None
        bounds the expected risk.
    monotone : bool
        Whether it is proved that losses never increase along a ladder.
    risk : "marginal" or "selective"
    method : one of `METHODS`
    two_values : bool
        Whether losses are known to be one or the other of the bounds, never between.
    weights : (n,) array, optional
        How much more often such rows will come than they came here.
    rng : Generator, optional
        Draws the pilot.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sure = rng.random(1000)  # a row is wrong with probability 1 − sure
    >>> wrong = rng.random(1000) > sure
    >>> ladder = Ladder(
    ...     sure[:, None], np.column_stack([wrong, np.zeros(1000)]),
    ...     np.tile([True, False], (1000, 1)), np.ones((1000, 2)),
    ... )
    >>> found = calibrate(ladder, level=0.1, monotone=True)
    >>> bool(ladder.at(found.safety).mean() <= 0.1), found.method
    (True, 'conformal')
    """
    chosen = choose_method(
        method,
        monotone=monotone,
        risk=risk,
        confidence=confidence,
        two_values=two_values,
        weighted=weights is not None,
    )
    low, high = bounds
    if level >= high:
        return Threshold(-np.inf, chosen, len(ladder))
    if chosen in ("conformal", "monotonized"):
        counted = ladder if chosen == "conformal" else ladder.monotonized()
        return _conformal(counted, level, high, weights, chosen)
    scaled = Ladder(
        ladder.thresholds, (ladder.losses - low) / (high - low), ladder.answered, ladder.sizes
    )
    tested, delta = _tested((level - low) / (high - low), confidence)
    problem = _Tests(tested, delta, risk == "selective", chosen)
    relative = None if weights is None else weights / weights.max()
    if monotone and risk == "marginal" and confidence is not None:
        found = _last_failure(scaled, problem, relative)
    else:
        found = _fixed_sequence(scaled, problem, relative, rng or np.random.default_rng(0))
    if found is None:
        raise RiskLevelError(
            f"level {in_full(level)} cannot be guaranteed from these {len(ladder)} rows: no "
            "prediction rule was shown to be safe enough; choose a higher level or more rows"
        )
    return Threshold(found, chosen, len(ladder))


def _conformal(
    ladder: Ladder, level: float, high: float, weights: FloatArray | None, method: str
) -> Threshold:
    n, steps = len(ladder), ladder.steps()
    weight = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    totals = steps.totals(ladder.losses * weight[:, None])
    # Σ w_i loss_i(s) + w·high ≤ level·(Σ w_i + w): how large w may be at each safety
    room = (level * weight.sum() - totals) / (high - level) + ROUNDING * weight.sum()
    room = np.maximum.accumulate(room)  # of rounding only: losses never increase
    if weights is None:
        first = int(np.searchsorted(room, 1.0))
        if first == len(room):
            raise RiskLevelError(
                f"level {in_full(level)} cannot be guaranteed from these {n} rows: even the "
                f"safest predictions have mean loss {totals[-1] / n:.4g}; choose a higher level or "
                "more rows"
            )
        return Threshold(float(steps.safeties[first]), method, n)
    kept = max(int(np.searchsorted(room, 0.0)), 0)
    safeties, room = steps.safeties[kept:], room[kept:]
    least = float(safeties[0]) if len(safeties) else np.inf
    return Threshold(least, method, n, safeties, room)


@dataclass(frozen=True)
class _Tests:
    level: float  # of losses in [0, 1]
    delta: float
    selective: bool
    test: str

    def evidence(self, ladder: Ladder, weights: FloatArray | None, steps: Steps) -> FloatArray:
        """log-evidence that the risk is at most the level, at each safety of the steps, (S,)."""
        if self.test == "hoeffding-bentkus":
            means = steps.totals(ladder.losses) / len(ladder)
            return hoeffding_bentkus(means, len(ladder), self.level)
        if self.test == "binomial":
            if not self.selective:
                return binomial(steps.totals(ladder.losses), len(ladder), self.level)
            answers = steps.totals(ladder.answered.astype(np.float64))
            errors = steps.totals(ladder.losses * ladder.answered)
            # given how many rows are answered, their errors are independent
            found = binomial(errors, np.maximum(np.rint(answers).astype(np.int64), 1), self.level)
            return np.where(answers > 0.5, found, 0.0)
        gain = self.level - ladder.losses
        if self.selective:
            gain = gain * ladder.answered
        if weights is not None:
            gain = gain * weights[:, None]
        found = stakes(len(ladder), self.level, self.delta)
        return capital([steps.totals(np.log1p(stake * gain)) for stake in found])

    @property
    def enough(self) -> float:
        return math.log(1.0 / self.delta)


def _last_failure(ladder: Ladder, problem: _Tests, weights: FloatArray | None) -> float | None:
    """The least safety from which on all evidence suffices; losses never increase."""
    steps = ladder.steps()
    fails = np.flatnonzero(problem.evidence(ladder, weights, steps) < problem.enough - 1e-9)
    first = 0 if len(fails) == 0 else int(fails[-1]) + 1
    return float(steps.safeties[first]) if first < len(steps.safeties) else None


def _pilot_size(n: int) -> int:
    return min(LARGEST_PILOT, max(1, n // PILOT))


def _fixed_sequence(
    ladder: Ladder, problem: _Tests, weights: FloatArray | None, rng: np.random.Generator
) -> float | None:
    """Test from where the pilot's evidence is greatest toward less safety; the last to pass."""
    shuffled = rng.permutation(len(ladder))
    size = _pilot_size(len(ladder))
    pilot, rest = np.sort(shuffled[:size]), np.sort(shuffled[size:])

    def part(rows: np.ndarray) -> FloatArray | None:
        return None if weights is None else weights[rows]

    steps = ladder.take(pilot).steps()
    guess = problem.evidence(ladder.take(pilot), part(pilot), steps)
    # candidates: fixed by the pilot, thus before the rows that test them are looked at
    start = int(guess.argmax())
    picked = np.unique(np.linspace(0, start, min(CANDIDATES, start + 1)).astype(np.int64))
    candidates = steps.safeties[picked][::-1]
    tests = ladder.take(rest).steps()
    evidence = problem.evidence(ladder.take(rest), part(rest), tests)
    place = np.searchsorted(tests.safeties, candidates, side="right") - 1
    passed = evidence[place] >= problem.enough - 1e-9
    count = len(passed) if passed.all() else int(np.argmin(passed))
    return float(candidates[count - 1]) if count else None
