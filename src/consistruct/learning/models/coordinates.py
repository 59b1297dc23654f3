"""Between a statistic and what a regressor sees: orthonormal, centered, nothing constant.

For targets, v ↦ (mᵀv, Lᵀv) with m = E_c F_c and LLᵀ = Cov_c F_c, so that squared distance is vᵀḠv,
the quadratic surrogate's. The constant direction m stands apart: most losses need not fit it. The
Cholesky factor with pivots keeps what is separate separate: the Hamming loss has one column per
part, where eigenvectors would mix all parts in columns that no tree can split well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dpstrf

from consistruct._validation import is_sparse
from consistruct.decisions.statistics import Statistic
from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray, IntArray, Target
from consistruct.structures import Structure

__all__ = ["WIDTH_LIMIT", "Coordinates", "coordinates_of"]

WIDTH_LIMIT = 2048  # wider score spaces are fitted column by column: the factor is cubic
CONSTANT = 1e-12  # relative: a column that varies less is rounding
WORST_PIVOT = 2e-4  # of the factor, relative to the first: a smaller one is next to singular
PIVOT_TOLERANCE = 1e-10  # relative to the largest variance


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Statistic ↔ columns that a regressor fits.

    Attributes
    ----------
    mean : (width,) array
        Of the statistic over the training true labels; what is constant comes back from here.
    into : (width, n_columns) array or CSR
        From deviations of the statistic to columns.
    out : (n_columns, width) array or CSR
        Back again; `into @ out` keeps scores of every prediction.
    """

    mean: FloatArray
    into: Any
    out: Any

    @property
    def n_columns(self) -> int:
        return int(self.into.shape[1])

    def forward(self, values: Target) -> FloatArray:
        """Columns of given values of the statistic, (n, n_columns)."""
        return np.asarray(dense_target(values @ self.into) - self.mean @ self.into)

    def back(self, columns: FloatArray) -> FloatArray:
        """The statistic of given columns, (n, width)."""
        return np.asarray(columns @ self.out + self.mean)


def coordinates_of(
    statistic: Statistic, values: Target, weight: FloatArray | None = None
) -> Coordinates:
    """Coordinates that vary over the training true labels.

    Parameters
    ----------
    statistic : Statistic
        Targets get the orthonormal basis above; of any other statistic, and of score spaces wider
        than 2048, the columns themselves are fitted.
    values : (n, width) array or CSR
        Of the training true labels.
    weight : (n,) array, optional
    """
    share = np.ones(values.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
    share = share / share.sum()
    mean = np.asarray(share @ values).ravel()
    into, out = _basis(statistic)
    columns = values @ into
    varying = _varying(columns)
    into, out, columns = into[:, varying], out[varying], columns[:, varying]
    if statistic.of_classes and len(varying) == 2:
        # of two classes one is enough; of more, all are fitted: contrasts of classes would save
        # one column and lose the plain question "this class or not" that trees answer best
        into, out, columns = into[:, :1], out[:1] - out[1:], columns[:, :1]
    # one scale for all: settings of a regressor then do not depend on the scale of the loss
    spread = np.sqrt((share @ (dense_target(columns) - mean @ into) ** 2).max(initial=0.0)) or 1.0
    return Coordinates(mean, into / spread, out * spread)


def _basis(statistic: Statistic) -> tuple[Any, Any]:
    """(width, m) and (m, width) maps: orthonormal for targets where that is well conditioned."""
    space = statistic.score_space
    costs = statistic.loss.solver is not None  # they are orthonormal as they are
    plain = sp.csr_array(sp.eye_array(statistic.width))
    if space is None or space.width > WIDTH_LIMIT or costs:
        return plain, plain
    factor = _factor(space)
    if factor is None:
        # some predictions are so rare under the measure that the way back would be noise (F-beta of
        # more than four labels)
        return plain, plain
    n_columns = factor.shape[1]
    extra = statistic.width - space.width  # an offset that depends on the true label stands alone
    into = np.zeros((statistic.width, n_columns + extra))
    into[: space.width, :n_columns] = factor
    out = np.zeros((n_columns + extra, statistic.width))
    out[:n_columns, : space.width] = space.gram().solve(np.ascontiguousarray(factor.T))  # K⁺ = KᵀḠ⁺
    for i in range(extra):
        into[space.width + i, n_columns + i] = out[n_columns + i, space.width + i] = 1.0
    return into, out


def _factor(space: Structure) -> FloatArray | None:
    """K = (m, L) with KKᵀ = Ḡ, (width, rank): the mean score and a factor of the covariance.

    None where the last pivots of the factor are so small that K is next to singular.
    """
    gram = space.gram().dense(limit=WIDTH_LIMIT)
    mean = space.mean_embedding()
    covariance = gram - np.outer(mean, mean)
    tolerance = PIVOT_TOLERANCE * float(np.diag(gram).max(initial=0.0))
    lower, pivots, rank, _ = dpstrf(covariance, tol=tolerance, lower=1)
    sizes = np.abs(np.diag(lower))[: int(rank)]  # never increasing
    if rank > 0 and sizes[-1] < WORST_PIVOT * sizes[0]:
        return None
    factor = np.zeros((space.width, int(rank)))
    factor[pivots - 1] = np.tril(lower)[:, : int(rank)]
    return np.column_stack([mean, factor])


def _varying(columns: Any) -> IntArray:
    """Numbers of the columns that are not the same for all true labels."""
    if is_sparse(columns):
        high, low = columns.max(axis=0).toarray().ravel(), columns.min(axis=0).toarray().ravel()
    else:
        high, low = columns.max(axis=0), columns.min(axis=0)
    size = np.maximum(np.abs(high), np.abs(low)).max(initial=0.0)
    return np.flatnonzero(high - low > CONSTANT * size)
