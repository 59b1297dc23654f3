"""Scores of decisions: ⟨z, θ⟩, one parameter per entry of a decision."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from consistruct.decoding.oracles import BestDecision, Counts, Feasible, Oracle
from consistruct.exceptions import CapabilityError, TooManyLabelsError
from consistruct.protocols import FloatArray, LinearMap
from consistruct.scores.base import BaseScoreSpace, Predictable
from consistruct.scores.full import DiagonalGram
from consistruct.scores.gram import BaseGram, SpectralGram
from consistruct.scores.linear import identity_map

__all__ = ["Decisions"]

MEASURES = ("identity", "uniform")
LISTED = 4096  # decisions whose distances are compared in pairs


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(BaseScoreSpace):
    """Decisions of an oracle by their own entries; F_z = z.

    Parameters
    ----------
    oracle : Oracle
    measure : {"identity", "uniform"}
        What the quadratic surrogate averages over. "identity": Ḡ = I, plain least squares on the
        costs, which needs nothing of the oracle; Theorem 7 then reads H(ε) ≥ ε²/(2D²) with D the
        diameter of the decisions. "uniform": all decisions alike, Ḡ by counting (paths of graphs
        without cycles, knapsacks).

    Examples
    --------
    >>> from consistruct.decoding.oracles import GridPath
    >>> Decisions(GridPath(5, 5)).effective_classes()
    8.0
    >>> round(Decisions(GridPath(5, 5), "uniform").effective_classes(), 6)
    70.0
    """

    oracle: Oracle
    measure: str = "identity"

    def __post_init__(self) -> None:
        if not isinstance(self.oracle, Oracle):
            raise TypeError(f"oracle must be one of consistruct.oracles, got {self.oracle!r}")
        if self.measure not in MEASURES:
            raise ValueError(f"measure must be one of {', '.join(MEASURES)}, got {self.measure!r}")

    @property
    def predictions(self) -> Feasible:
        return Feasible(self.oracle)

    @property
    def width(self) -> int:
        return self.oracle.n_costs

    @cached_property
    def rank(self) -> int:
        if self.measure == "identity":
            return self.width
        return sum(self.gram().eigenvalues()[1])

    def embed(self, labels: ArrayLike) -> FloatArray:
        return self.predictions.check(labels)

    @cached_property
    def _counts(self) -> Counts:
        return self.oracle.counts()

    @cached_property
    def _gram(self) -> BaseGram:
        if self.measure == "identity":
            return DiagonalGram(np.ones(self.width))
        values, vectors = np.linalg.eigh(self._counts.second)
        kept = values > len(values) * float(np.finfo(np.float64).eps) * values[-1]
        return SpectralGram(values[kept], vectors[:, kept])

    def gram(self) -> BaseGram:
        return self._gram

    def decoder(self) -> BestDecision:
        return BestDecision(self.oracle)

    @property
    def n_decisions(self) -> int | None:
        """Exact number of decisions where they can be counted, else None."""
        try:
            return self._counts.size
        except CapabilityError:
            return None

    def predictable(self) -> Predictable:
        """Every decision of 0 and 1 is a vertex and wins outright for some costs."""
        return Predictable(self.n_decisions or 0, None, False)

    def mean_embedding(self) -> FloatArray:
        if self.measure == "identity":
            raise TooManyLabelsError(
                None, LISTED, "a mean over decisions", "use measure='uniform', which counts them"
            )
        return self._counts.mean

    @property
    def contains_constant(self) -> bool:
        """Whether some θ gives every decision the score 1."""
        if self.measure == "uniform":
            return super().contains_constant
        return False  # not known of an oracle

    def map_into(self, space: BaseScoreSpace) -> LinearMap | None:
        """Parameters are the same whatever the measure."""
        alike = isinstance(space, Decisions) and space.oracle == self.oracle
        return identity_map() if alike else None

    @cached_property
    def _diameter(self) -> tuple[float, bool]:
        plain, exact = self.oracle.diameter_squared()
        if self.measure == "identity":
            return plain, exact
        try:
            rows = self.oracle.listed(limit=LISTED)
        except TooManyLabelsError:
            least = float(self.gram().eigenvalues()[0][-1])
            return plain / least, False  # ‖Ḡ^{−1/2}(z − z')‖² ≤ ‖z − z'‖²/λ_min
        kernel = rows @ self.gram().solve(rows).T
        leverage = np.diag(kernel)
        return float((leverage[:, None] + leverage - 2.0 * kernel).max()), True

    def diameter_squared(self) -> float:
        return self._diameter[0]

    @property
    def diameter_is_exact(self) -> bool:
        return self._diameter[1]
