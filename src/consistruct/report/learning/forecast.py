"""How the learning curve of a report goes on, from the refits that it has anyway."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.report.learning.entries import CurveForecast, ForecastPoint

__all__ = ["continued"]

REACH = 4  # sizes from n/4 on tell how the curve goes on
FACTORS = (1, 1.5, 2, 3, 4, 6, 10)


def continued(
    loss: Loss,
    n: int,
    sizes: Sequence[int],
    refits: Sequence[FloatArray],
    losses: FloatArray,
) -> CurveForecast | None:
    """The forecast up to ten times the rows; None where too few sizes are near the end.

    Parameters
    ----------
    loss : Loss
    n : int
        Training examples.
    sizes : sequence of int
        Sizes of the parts that were refitted, in increasing order.
    refits : sequence of (draws, m) arrays
        Losses of the held-out rows by the fits on parts of each size.
    losses : (m,) array
        By the fit on all.
    """
    from consistruct.guarantees.forecasts import curve_of_draws
    from consistruct.guarantees.forecasts.forecast import Forecast
    from consistruct.guarantees.forecasts.learning_curve import PowerLaw

    near = [place for place, size in enumerate(sizes) if size >= n // REACH]
    if len(near) < 2:
        return None
    measured = [*(refits[place] for place in near), losses[None]]
    low, high = loss.value_range
    least, most = min(map(np.min, measured)), max(map(np.max, measured))
    data = curve_of_draws(
        np.array([*(sizes[place] for place in near), n], dtype=np.float64),
        measured,
        n,
        (min(low, float(least)), max(high, float(most))),
    )
    found = Forecast(n, PowerLaw(data), repr(loss))
    points = []
    for factor in FACTORS:
        at = found.at(factor * n)
        points.append(ForecastPoint(round(factor * n), at.estimate, at.low, at.high))
    floor = found.floor
    return CurveForecast(found.confidence, tuple(points), floor.estimate, floor.low, floor.high)
