"""Time limits of fits: nothing is started that its own shorter fits say would end too late.

A fit cannot be interrupted where compiled code runs, and how long it takes is not known before. So
a model that is to be tried within a limit is first fitted on small parts of the rows, each twice
the one before, and its time is carried on to all rows. The first model of a portfolio is always
fitted: there must be one. A limit is so exceeded by at most the time of this first, fastest one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Deadline", "Duration", "duration", "now"]

PARTS = (1 / 16, 1 / 8, 1 / 4)  # of the rows: together less than half of a fit
LEAST_GROWTH, MOST_GROWTH = 1.0, 3.0  # of the time with the rows, as a power: factorizations have 3


def now() -> float:
    """Seconds of the clock that limits are measured by."""
    return time.perf_counter()


class Deadline:
    """The end of a fit that begins now; None is no limit."""

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self.end = math.inf if limit is None else now() + limit

    def before(self, seconds: float) -> Deadline:
        """The same limit, so many seconds earlier: they are kept for what must follow."""
        found = Deadline(self.limit)
        found.end = self.end - seconds
        return found

    @property
    def passed(self) -> bool:
        return self.left <= 0.0

    @property
    def left(self) -> float:
        """Seconds to the end."""
        return self.end - now()

    def allows(self, seconds: float) -> bool:
        """Whether something that takes so long ends in time."""
        return seconds <= self.left


@dataclass(frozen=True)
class Duration:
    """How long a fit takes: `seconds` on the last of the `PARTS`, growing with the rows."""

    seconds: float
    growth: float

    def of(self, share: float) -> float:
        """Seconds of a fit on this share of the rows."""
        return self.seconds * (share / PARTS[-1]) ** self.growth


def duration(fit: Callable[[float], object], deadline: Deadline) -> Duration | None:
    """The time of `fit`, a function of a share of the rows; None if its parts take too long."""
    seconds: list[float] = []
    for place, share in enumerate(PARTS):
        longest = seconds[-1] * (share / PARTS[place - 1]) ** MOST_GROWTH if seconds else 0.0
        if deadline.passed or not deadline.allows(longest):
            return None
        begun = now()
        fit(share)
        seconds.append(now() - begun)
    before, last = seconds[-2:]
    growth = math.log(last / before) / math.log(PARTS[-1] / PARTS[-2]) if before > 0 < last else 1.0
    return Duration(last, min(max(growth, LEAST_GROWTH), MOST_GROWTH))
