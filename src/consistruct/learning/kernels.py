"""Kernels on inputs: RBF, Laplace and polynomial, and the median heuristic for their width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.metrics.pairwise import manhattan_distances

from consistruct._members import Member
from consistruct._sparse import is_sparse
from consistruct._validation import check_count, check_number
from consistruct.protocols import FloatArray

__all__ = ["KERNELS", "Kernel", "KernelName", "median_bandwidth"]

KernelName = Literal["rbf", "laplace", "poly"]
KERNELS: tuple[str, ...] = ("rbf", "laplace", "poly")


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(Member):
    """A positive definite function of two inputs, with a bandwidth h in the units of the inputs.

    ``rbf``: exp(−‖x−z‖²/2h²). ``laplace``: exp(−‖x−z‖₁/h). ``poly``: (⟨x,z⟩/h² + coef0)^degree.

    Examples
    --------
    >>> import numpy as np
    >>> Kernel("rbf", 1.0)(np.array([[0.0], [1.0]]), np.array([[0.0]])).round(4).ravel()
    array([1.    , 0.6065])
    """

    name: KernelName = "rbf"
    bandwidth: float = 1.0
    degree: int = 3
    coef0: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in KERNELS:
            raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, got {self.name!r}")
        self._set(
            bandwidth=check_number(self.bandwidth, "bandwidth", low=0.0, open_low=True),
            degree=check_count(self.degree, "degree"),
            coef0=check_number(self.coef0, "coef0", low=0.0),
        )

    def __call__(self, X: Any, Z: FloatArray) -> FloatArray:
        """(n, d) array or CSR and (m, d) array -> (n, m)."""
        if self.name == "laplace":
            values = manhattan_distances(X, Z)
            values /= -self.bandwidth
            return np.asarray(np.exp(values, out=values))
        if self.name == "poly":
            values = np.asarray(X @ Z.T, dtype=np.float64)
            values /= self.bandwidth**2
            values += self.coef0
            return values**self.degree
        return self._rbf(X, Z)

    def _rbf(self, X: Any, Z: FloatArray) -> FloatArray:
        # ‖x−z‖² = ‖x‖² + ‖z‖² − 2⟨x,z⟩, one product and two passes in place
        values = np.asarray(X @ Z.T, dtype=np.float64)
        values *= -2.0
        values += squared_norms(X)[:, None]
        values += squared_norms(Z)
        np.maximum(values, 0.0, out=values)
        values /= -2.0 * self.bandwidth**2
        return np.asarray(np.exp(values, out=values))

    def diagonal(self, X: Any) -> FloatArray:
        """k(x, x) of each row, (n,)."""
        if self.name == "poly":
            return np.asarray((squared_norms(X) / self.bandwidth**2 + self.coef0) ** self.degree)
        return np.ones(X.shape[0])


def squared_norms(X: Any) -> FloatArray:
    """‖x‖² of each row of an array or CSR, in float64."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("nd,nd->n", X, X, dtype=np.float64))


def median_bandwidth(X: FloatArray, name: str) -> float:
    """Median distance between the given distinct rows; 1 if there are no two different ones.

    For ``poly`` it is the root mean square norm, so that ⟨x,z⟩/h² is of order one.
    """
    if name == "poly":
        return float(np.sqrt(squared_norms(X).mean())) or 1.0
    upper = np.triu_indices(len(X), 1)
    if name == "laplace":
        distances = manhattan_distances(X)[upper]
    else:
        norms = squared_norms(X)
        distances = np.sqrt(np.maximum(norms[:, None] + norms - 2.0 * X @ X.T, 0.0))[upper]
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 1.0
