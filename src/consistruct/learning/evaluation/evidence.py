"""How strongly rows speak for "the risk is at most the level": bets, Hoeffding and Bentkus.

Losses lie in [low, high], rows are independent. The null hypothesis "risk above the level" may be
rejected at significance δ where log-evidence ≥ log(1/δ); a true null is rejected with probability
at most δ. Three forms of it:

* **Bets** (Waudby-Smith & Ramdas 2024). A gambler who stakes ν on every row multiplies a capital of
  1 by 1 + ν·(level − loss). Under the null the expected factor is at most 1, so by Markov a capital
  of 1/δ has probability at most δ. Several stakes, chosen from the number of rows alone, share the
  capital. A row that is not answered, or weighs less, is bet on less: the same argument covers the
  selective risk and weighted rows. The stakes do not look at the rows, so the order of the rows
  does not matter, and smaller losses never give less evidence.
* **Hoeffding-Bentkus** (Bates et al. 2021): from the mean and the number of rows alone.
* **Binomial**: the exact tail, where it is known beforehand that the loss has two values only.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr

from consistruct.protocols import FloatArray, IntArray

__all__ = [
    "TESTS",
    "binomial",
    "capital",
    "hoeffding_bentkus",
    "least_rows",
    "rows_needed",
    "stakes",
]

TESTS = ("betting", "hoeffding-bentkus", "binomial")
SHARES = (1.0, 1 / 3, 1 / 12, 1 / 60)  # of the rows that are thought to speak: few, or all
WEIGHTS = (0.55, 0.25, 0.12, 0.08)  # of the capital on each


def stakes(n: int, level: float, delta: float) -> FloatArray:
    """Stakes ν for losses in [0, 1], one per share of rows, from n, level and δ alone.

    Any stakes are valid. A coin whose bias lies d below the level is bet against best by ν =
    d/(level(1 − level)), and n tosses just convince if n·d²/(2·level(1 − level)) = log(1/δ).
    """
    variance = level * (1.0 - level)
    rows = np.maximum(n * np.array(SHARES), 1.0)
    found = np.sqrt(2.0 * math.log(1.0 / delta) / (rows * variance))
    return np.minimum(found, 0.999 / (1.0 - level))


def capital(logs: list[FloatArray]) -> FloatArray:
    """log Σ_j weight_j exp(logs_j): the log-capital of all stakes together."""
    stacked = np.stack([total + math.log(w) for total, w in zip(logs, WEIGHTS, strict=True)])
    peak = stacked.max(axis=0)
    return np.asarray(peak + np.log(np.exp(stacked - peak).sum(axis=0)))


def hoeffding_bentkus(mean: FloatArray, n: int, level: float) -> FloatArray:
    """log(1/p) of the mean of n losses in [0, 1] under "risk ≥ level"; −0 where it is no evidence.

    p = min(exp(−n·kl(mean, level)), e·P[Bin(n, level) ≤ ⌈n·mean⌉]).
    """
    mean = np.asarray(mean, dtype=np.float64)
    below = np.clip(mean, 0.0, level)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(below > 0, below * np.log(below / level), 0.0)
        hoeffding = n * (first + (1.0 - below) * np.log((1.0 - below) / (1.0 - level)))
        count = np.minimum(np.ceil(n * mean - 1e-9), n)
        bentkus = -np.log(bdtr(count, n, level)) - 1.0
    return np.where(mean < level, np.maximum(np.maximum(hoeffding, bentkus), 0.0), 0.0)


def binomial(errors: FloatArray, n: IntArray | int, level: float) -> FloatArray:
    """log(1/p) of so many errors in n rows under "P(error) ≥ level"."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(bdtr(np.rint(errors), n, level)))


def least_rows(n: int, level: float, delta: float, test: str, safest: float = 0.0) -> bool:
    """Whether n rows could convince at all: every one at the `safest` loss; losses in [0, 1]."""
    if test == "betting":
        logs = [np.array(n * math.log1p(v * (level - safest))) for v in stakes(n, level, delta)]
        found = float(capital(logs))
    elif test == "binomial":
        found = float(binomial(np.array(math.ceil(n * safest)), n, level))
    else:
        found = float(hoeffding_bentkus(np.array(safest), n, level))
    return found >= math.log(1.0 / delta)


def rows_needed(
    level: float,
    confidence: float | None = None,
    *,
    max_loss: float = 1.0,
    safest: float = 0.0,
    test: str = "betting",
) -> int:
    """Fewest calibration rows with which a level can be guaranteed at all.

    Parameters
    ----------
    level : float
    confidence : float, optional
        None: in expectation (conformal risk control).
    max_loss : float
        Largest loss that can occur.
    safest : float
        Loss of the safest prediction.
    test : "betting", "hoeffding-bentkus" or "binomial"

    Examples
    --------
    >>> rows_needed(0.05), rows_needed(0.05, 0.9, test="binomial")
    (19, 45)
    """
    if level >= max_loss:
        return 1
    if safest >= level:
        raise ValueError(
            f"level must be above the loss of the safest prediction, {safest:g}, got {level:g}"
        )
    if confidence is None:
        # n·safest + max_loss ≤ level·(n + 1)
        return max(1, math.ceil((max_loss - level) / (level - safest) - 1e-9))
    level, safest, delta = level / max_loss, safest / max_loss, 1.0 - confidence
    high = 1
    while not least_rows(high, level, delta, test, safest):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if least_rows(middle, level, delta, test, safest) else (
            middle,
            high,
        )  # fmt: skip
    return high
