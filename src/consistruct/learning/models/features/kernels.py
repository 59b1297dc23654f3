"""Kernels on inputs: RBF, Laplace and polynomial, and the median heuristic for their width.

Symmetric matrices such as theirs are decomposed with a sensible number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from threadpoolctl import ThreadpoolController

from consistruct._members import Member
from consistruct._validation import check_count, check_number, is_sparse, to_dense
from consistruct.protocols import FloatArray

__all__ = [
    "KERNELS",
    "Kernel",
    "KernelName",
    "distances",
    "median_bandwidth",
    "one_thread_if",
    "symmetric_eigen",
]

KernelName = Literal["rbf", "laplace", "poly"]
KERNELS: tuple[str, ...] = ("rbf", "laplace", "poly")
SINGLE_THREAD_SIZES = range(128, 2049)  # of matrices that one thread decomposes


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
        return self.from_distances(distances(self.name, X, Z))

    def single(self, X: NDArray[np.float32], Z: FloatArray) -> NDArray[np.float32]:
        """RBF in float32, (n, m): one product, whose last column brings −‖z‖²/2h², and one pass."""
        scale = 1.0 / self.bandwidth**2
        last = -0.5 * scale * squared_norms(Z)
        right = np.column_stack([scale * Z, last]).astype(np.float32)
        values = np.column_stack([X, np.ones(len(X), np.float32)]) @ right.T
        values += (-0.5 * scale * squared_norms(X)).astype(np.float32)[:, None]
        return np.exp(values, out=values)

    def from_distances(self, values: FloatArray) -> FloatArray:
        """The kernel from what `distances` gives, in place."""
        if self.name == "poly":
            values /= self.bandwidth**2
            values += self.coef0
            values **= self.degree
            return values
        values /= -self.bandwidth if self.name == "laplace" else -2.0 * self.bandwidth**2
        return np.asarray(np.exp(values, out=values))

    def diagonal(self, X: Any) -> FloatArray:
        """k(x, x) of each row, (n,)."""
        if self.name == "poly":
            return np.asarray((squared_norms(X) / self.bandwidth**2 + self.coef0) ** self.degree)
        return np.ones(X.shape[0])


def distances(name: str, X: Any, Z: FloatArray) -> FloatArray:
    """What a kernel is a function of, (n, m): ‖x−z‖² for RBF, ‖x−z‖₁ for Laplace, else ⟨x,z⟩."""
    if name == "laplace":
        return np.asarray(cdist(to_dense(X), Z, "cityblock"))
    values = np.asarray(X @ Z.T, dtype=np.float64)
    if name == "poly":
        return values
    # ‖x−z‖² = ‖x‖² + ‖z‖² − 2⟨x,z⟩, one product and passes in place
    values *= -2.0
    values += squared_norms(X)[:, None]
    values += squared_norms(Z)
    return np.maximum(values, 0.0, out=values)


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
        distances = cdist(X, X, "cityblock")[upper]
    else:
        norms = squared_norms(X)
        distances = np.sqrt(np.maximum(norms[:, None] + norms - 2.0 * X @ X.T, 0.0))[upper]
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 1.0


def symmetric_eigen(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, ascending, and eigenvectors; `matrix` is overwritten.

    Half of the work is bound by memory and split into thousands of short parallel pieces. At
    moderate sizes threads gain little, and on a busy machine waiting for each other costs them a
    multiple of the work itself.
    """
    with one_thread_if(len(matrix) in SINGLE_THREAD_SIZES):
        values, vectors = scipy.linalg.eigh(matrix, driver="evd", overwrite_a=True)
    return values, vectors


@contextmanager
def one_thread_if(small: bool) -> Iterator[None]:
    """Products and decompositions of the body by one thread, where threads would only wait."""
    if not small:
        yield
        return
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes longer than a small problem."""
    return ThreadpoolController()
