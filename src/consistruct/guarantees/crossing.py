"""Where one calibration function overtakes another."""

from __future__ import annotations

import numpy as np

from consistruct.calibration import CalibrationFunction

__all__ = ["crossing_point"]


def crossing_point(
    first: CalibrationFunction, second: CalibrationFunction, *, n_grid: int = 200
) -> float | None:
    """The smallest ε found at which H of the second passes that of the first, or None.

    Looked for between neighbors of a grid up to the smaller `max_eps`, then by bisection on the
    certified lower ends; both curves should be exact.

    Examples
    --------
    >>> import consistruct as cs
    >>> loss = cs.losses.Mixed((5,) * 20, 0.1)
    >>> blocks = cs.calibration_function(loss, cs.structures.Blocks((5,) * 20))
    >>> round(crossing_point(cs.calibration_function(loss), blocks), 4)
    0.0929
    """
    grid = np.linspace(0.0, min(first.max_eps, second.max_eps), n_grid + 1)[1:]
    above = np.asarray(second.log(grid)) > np.asarray(first.log(grid))
    changes = np.flatnonzero(above[1:] & ~above[:-1])
    if not len(changes):
        return None
    low, high = float(grid[changes[0]]), float(grid[changes[0] + 1])
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if second.log(middle) > first.log(middle):
            high = middle
        else:
            low = middle
    return high
