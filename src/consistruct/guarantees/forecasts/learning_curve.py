"""The power law of a learning curve, loss(n) = a + b·n^−c, and what may hold instead of it.

Refits say what the loss was at some numbers of rows, with errors that are correlated because the
same rows evaluate every size. Written as

    loss(n) = low + ℓ·h(n),   h(n) = 1 − r + r·(n/n₀)^−c,   n₀ the largest size,

the level ℓ at n₀ is linear, the share r of it that more rows can remove lies in [0, 1] (the floor
is a = low + ℓ(1 − r)) and c is the rate. Under uniform priors of r and c on a grid and a flat one
of ℓ the posterior is a mixture of normal distributions, so nothing is sampled. No curve follows the
power law exactly: its slope over log n is right at n₀ and wanders from there to both sides as a
random walk, so that small sizes say less about large ones, and answers widen the further they are
from the sizes that were seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from consistruct.protocols import FloatArray

__all__ = ["CurveData", "PowerLaw"]

SHARES = np.linspace(0.0, 1.0, 41)  # r
RATES = np.linspace(0.1, 1.5, 29)  # c: nonparametric rates are slow, 1/n is that of a fixed model
DRIFT = 0.05  # standard deviation of the slope's walk over one unit of log n, as share of the loss
NEGLIGIBLE = 1e-6  # weight of a component that is left out


@dataclass(frozen=True, eq=False)
class CurveData:
    """Measured losses.

    Attributes
    ----------
    sizes : (J,) array
        Examples that were trained on, growing.
    means : (J,) array
        Mean loss at each size.
    covariance : (J, J) array
        Covariance of these means, over held-out rows and rows that are trained on.
    training_variance : float
        n times the variance of the loss of one fit on n examples, over draws of them.
    row_variance : float
        Variance of the loss of one example, at the largest size.
    low : float
        Least loss that is possible.
    """

    sizes: FloatArray
    means: FloatArray
    covariance: FloatArray
    training_variance: float = 0.0
    row_variance: float = 0.0
    low: float = 0.0


@dataclass(frozen=True, eq=False)
class PowerLaw:
    """Which losses are likely at other numbers of examples, given some.

    Parameters
    ----------
    data : CurveData
    drift : float
        How far curves wander from the power law: standard deviation of the walk of the slope over
        one unit of log n, as a share of the loss.

    Examples
    --------
    >>> import numpy as np
    >>> sizes = np.array([50.0, 100.0, 200.0, 400.0])
    >>> data = CurveData(sizes, 0.1 + 2.0 / sizes, 1e-8 * np.eye(4))
    >>> power_law = PowerLaw(data, drift=0.0)
    >>> low, middle, high = power_law.quantiles(4000.0, (0.05, 0.5, 0.95))
    >>> bool(abs(middle - (0.1 + 2.0 / 4000)) < 0.001), bool(high - low < 0.002)
    (True, True)
    """

    data: CurveData
    drift: float = DRIFT

    @cached_property
    def scale(self) -> float:
        """n₀, the largest size that was seen."""
        return float(self.data.sizes[-1])

    @cached_property
    def _components(self) -> tuple[FloatArray, ...]:
        """Weights, shares r, rates c, and mean and standard deviation of ℓ for each of them."""
        data = self.data
        height = np.maximum(data.means - data.low, 0.0)
        distance = np.log(self.scale / data.sizes)
        wander = (self.drift * height[-1]) ** 2 * _integrated_walk(distance)
        inverse = np.linalg.inv(data.covariance + wander)
        r, c = (grid.ravel() for grid in np.meshgrid(SHARES, RATES, indexing="ij"))
        shape = self._shape(data.sizes[:, None], r, c)  # (J, components)
        weighted = inverse @ shape
        precision = np.einsum("jm,jm->m", shape, weighted)
        level = weighted.T @ height / precision
        # flat in ℓ: what is left of the squares, and the volume that integrating ℓ out leaves
        log_weight = 0.5 * level**2 * precision - 0.5 * np.log(precision)
        log_weight[level <= 0] = -np.inf
        if not np.isfinite(log_weight).any():  # no loss at all
            log_weight, level = np.zeros(len(level)), np.zeros(len(level))
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        kept = weight > NEGLIGIBLE
        weight = weight[kept] / weight[kept].sum()
        return weight, r[kept], c[kept], level[kept], 1.0 / np.sqrt(precision[kept])

    def _shape(self, n: FloatArray | float, r: FloatArray, c: FloatArray) -> FloatArray:
        return np.asarray(1.0 - r + r * (np.asarray(n) / self.scale) ** -c)

    def _normals(self, n: float, measured_on: int | None) -> tuple[FloatArray, ...]:
        """The mixture at n: weights, means and standard deviations."""
        weight, r, c, level, spread = self._components
        data = self.data
        shape = self._shape(n, r, c)
        center = level * shape
        walk = self.drift**2 * abs(math.log(n / self.scale)) ** 3 / 3.0
        variance = (spread * shape) ** 2 + walk * center**2 + data.training_variance / n
        if measured_on is not None:
            # errors become rarer in proportion to the loss
            variance = variance + data.row_variance * shape / measured_on
        return weight, data.low + center, np.sqrt(variance)

    def quantiles(
        self, n: float, probabilities: tuple[float, ...], *, measured_on: int | None = None
    ) -> tuple[float, ...]:
        """Quantiles of the loss after training on n examples.

        Parameters
        ----------
        n : float
        probabilities : tuple of float
        measured_on : int, optional
            Quantiles of the mean over so many new examples, with their noise; None: of the true
            loss.
        """
        weight, center, spread = self._normals(n, measured_on)
        return _mixture_quantiles(weight, center, spread, probabilities, self.data.low)

    def floor(self, probabilities: tuple[float, ...]) -> tuple[float, ...]:
        """Quantiles of a, the loss that no number of examples gets below by this power law."""
        weight, r, _, level, spread = self._components
        center, error = self.data.low + level * (1.0 - r), spread * (1.0 - r)
        return _mixture_quantiles(weight, center, error, probabilities, self.data.low)

    def rate(self) -> float:
        """Mean of c."""
        weight, _, c, _, _ = self._components
        return float(weight @ c)


def _integrated_walk(distance: FloatArray) -> FloatArray:
    """Covariance of ∫₀^d W(t) dt at distances d from the start of a Wiener process W, (J, J)."""
    near, far = np.minimum.outer(distance, distance), np.maximum.outer(distance, distance)
    return np.asarray(near**2 * (3.0 * far - near) / 6.0)


def _mixture_quantiles(
    weight: FloatArray,
    center: FloatArray,
    spread: FloatArray,
    probabilities: tuple[float, ...],
    low: float,
) -> tuple[float, ...]:
    """Quantiles of a mixture of normal distributions, none below `low`; by bisection."""
    spread = np.maximum(spread, 1e-12 * max(1.0, float(np.abs(center).max())))
    reach = 10.0 * spread
    wanted = np.asarray(probabilities)
    below = np.full(len(wanted), float((center - reach).min()))
    above = np.full(len(wanted), float((center + reach).max()))
    for _ in range(45):
        middle = 0.5 * (below + above)
        reached = ndtr((middle[:, None] - center) / spread) @ weight >= wanted
        above, below = np.where(reached, middle, above), np.where(reached, below, middle)
    return tuple(float(max(low, value)) for value in above)
