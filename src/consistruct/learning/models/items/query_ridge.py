"""Ridge regression within queries, for every penalty, with exact leave-one-query-out.

The problem, with weights v_q of queries, item features φ_i and centered item targets y_i:

    min_w  (1/N) Σ_q v_q ‖P_q(y_q − Φ_q w)‖² + α ‖w‖²,      N = Σ_q v_q n_q,

P_q centering the items of query q: no intercept is needed, nor one per query. With rows
z_i = √v_q (φ_i − φ̄_q) in the eigenbasis of Σ_i z_i z_iᵀ = diag(s) and t_i = √v_q y_i, leaving out
a whole query with rows Z (n_q, p) gives, by the Woodbury identity,

    H = Z D Zᵀ,   t − θ̂₋q = (I − H)⁻¹ (t − Z D m),   D = diag(1/(s + Nα)),   m = Σ_i z_i t_i.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from consistruct._validation import is_sparse, to_dense
from consistruct.learning.encoding.queries import query_means, rows_of
from consistruct.learning.models.features.feature_maps import (
    FeatureMap,
    KernelFeatures,
    symmetric_eigen,
)
from consistruct.learning.models.ridge.selection import PathScores
from consistruct.losses.rankings.orders import RelevanceLoss, rows_at
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Ragged

__all__ = ["QueryProblem", "QueryRidge", "leave_one_query_out", "out_of_fold_scores"]

CHUNK_BYTES = 32 * 2**20
DECADES = (-9.0, 1.0)  # penalties tried, times the mean squared norm of the centered features
LEVERAGE_LIMIT = 1.0 - 1e-10  # a query that is interpolated exactly has no out-of-fold residual


@dataclass(frozen=True, eq=False)
class QueryProblem:
    """Items of queries with their targets.

    Attributes
    ----------
    items : (N, d) array or CSR, query after query
    offsets : (n + 1,) int array
    targets : (N,) array, centered in each query
    weight : (n,) array, positive
    """

    items: Any
    offsets: IntArray
    targets: FloatArray
    weight: FloatArray

    @property
    def item_weight(self) -> FloatArray:
        """v of the query of each item, (N,)."""
        return np.repeat(self.weight, np.diff(self.offsets))

    @property
    def total_weight(self) -> float:
        """N = Σ_q v_q n_q."""
        return float(self.weight @ np.diff(self.offsets))

    @property
    def scaled_targets(self) -> FloatArray:
        """t, (N,)."""
        return np.sqrt(self.item_weight) * self.targets

    def take(self, queries: IntArray) -> QueryProblem:
        """The same for some of the queries."""
        rows = rows_of(self.offsets, queries)
        lengths = np.diff(self.offsets)[queries]
        return QueryProblem(
            self.items[rows],
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            self.targets[rows],
            self.weight[queries],
        )

    def chunks(self, n_features: int) -> Iterator[tuple[int, int]]:
        """Ranges of queries whose features take about `CHUNK_BYTES`."""
        size = max(1, CHUNK_BYTES // (8 * max(n_features, 1)))
        start, n = 0, len(self.weight)
        while start < n:
            limit = self.offsets[start] + size
            stop = int(np.searchsorted(self.offsets, limit, side="right")) - 1
            stop = min(max(stop, start + 1), n)
            yield start, stop
            start = stop


class QueryRidge:
    """The decomposed problem: eigenvalues s, moments m, and the way back to weights."""

    def __init__(self, problem: QueryProblem, features: FeatureMap, kept: IntArray) -> None:
        """`kept` numbers the queries whose rows z are needed for `leave_one_query_out`."""
        self.total_weight = problem.total_weight
        exact_kernel = isinstance(features, KernelFeatures)
        self._dual = exact_kernel or problem.items.shape[0] < features.n_outputs
        if self._dual:
            self._decompose_products(problem, features, kept, exact_kernel)
        else:
            self._decompose_moments(problem, features, kept)

    def _decompose_moments(
        self, problem: QueryProblem, features: FeatureMap, kept: IntArray
    ) -> None:
        size = features.n_outputs
        second, cross = np.zeros((size, size)), np.zeros(size)
        wanted = np.zeros(len(problem.weight), dtype=np.bool_)
        wanted[kept] = True
        rows: list[FloatArray] = []
        for start, stop in problem.chunks(size):
            part = slice(problem.offsets[start], problem.offsets[stop])
            offsets = problem.offsets[start : stop + 1] - problem.offsets[start]
            weight = problem.weight[start:stop]
            chunk = _centered(features.transform(problem.items[part]), offsets, weight)
            second += chunk.products()
            root = np.sqrt(np.repeat(weight, np.diff(offsets)))
            cross += chunk.times(root * problem.targets[part])
            inside = np.flatnonzero(wanted[start:stop])
            if len(inside):
                rows.append(chunk.rows(inside))
        values, vectors = symmetric_eigen(second)
        self.eigenvalues = np.maximum(values, 0.0)
        self.moments = vectors.T @ cross
        self.rows = np.vstack(rows) @ vectors if rows else np.zeros((0, size))
        self._vectors = vectors

    def _decompose_products(
        self, problem: QueryProblem, features: FeatureMap, kept: IntArray, exact_kernel: bool
    ) -> None:
        columns = features.transform(problem.items)
        kernel = columns if exact_kernel else to_dense(columns @ columns.T)
        root = np.sqrt(problem.item_weight)
        # P and the weights commute: both are constant on queries
        centered = _center_rows(np.array(kernel, dtype=np.float64), problem.offsets)
        centered = _center_rows(np.ascontiguousarray(centered.T), problem.offsets)
        centered *= root[:, None] * root
        noise = len(root) * float(np.finfo(np.float64).eps) * float(root**2 @ np.diag(kernel))
        values, vectors = symmetric_eigen(centered)
        positive = values > noise
        self.eigenvalues, self._vectors = values[positive], vectors[:, positive]
        coordinates = self._vectors * np.sqrt(self.eigenvalues)
        self.moments = coordinates.T @ problem.scaled_targets
        self.rows = coordinates[rows_of(problem.offsets, kept)]
        self._root, self._offsets = root, problem.offsets
        self._columns = None if exact_kernel else columns

    def shrunk(self, alpha: float) -> FloatArray:
        """diag(1/(s + Nα)) m, (p,)."""
        return self.moments * self.inverse(alpha)

    def inverse(self, alpha: float) -> FloatArray:
        """1/(s + Nα), 0 where there is neither data nor penalty, (p,)."""
        values = self.eigenvalues + self.total_weight * alpha
        return np.where(values > 0, 1.0 / np.where(values > 0, values, 1.0), 0.0)

    def weights(self, alpha: float) -> FloatArray:
        """w, (n_outputs,): of the features, or of the kernel expansion."""
        if not self._dual:
            return self._vectors @ self.shrunk(alpha)
        inner = self._vectors @ (self.shrunk(alpha) / np.sqrt(self.eigenvalues))
        expansion = _center_rows((self._root * inner)[:, None], self._offsets)[:, 0]
        if self._columns is None:
            return expansion
        return np.asarray(self._columns.T @ expansion).ravel()

    def grid(self) -> FloatArray:
        """Penalties from 1e-9 to 10 times the mean squared norm of the rows, two per decade."""
        trace = float(self.eigenvalues.sum()) / self.total_weight or 1.0
        low, high = DECADES
        return np.asarray(trace * 10.0 ** np.linspace(low, high, round(2 * (high - low)) + 1))


def leave_one_query_out(
    ridge: QueryRidge,
    problem: QueryProblem,  # of the kept queries only
    loss: RelevanceLoss,
    grades: Ragged,
    alphas: FloatArray,
) -> PathScores:
    """Mean task loss and surrogate risk of the kept queries, each predicted without itself."""
    n = len(grades)
    task, risk = np.empty((len(alphas), n)), np.empty((len(alphas), n))
    for chosen, z, t in _batches(ridge, problem):
        codes = rows_at(grades, chosen)
        member = loss if loss.n is not None else loss.at(codes.shape[1])
        out_of_fold = np.array([_out_of_fold(ridge, z, t, float(alpha)) for alpha in alphas])
        orders = np.argsort(-out_of_fold, axis=2, kind="stable").reshape(-1, codes.shape[1])
        lost = member(orders, np.tile(codes, (len(alphas), 1)))  # of all penalties in one call
        task[:, chosen] = lost.reshape(len(alphas), len(chosen))
        risk[:, chosen] = 0.5 * ((out_of_fold - t) ** 2).sum(axis=2)
    null = 0.5 * float((problem.scaled_targets**2).sum()) / n
    return PathScores(
        alphas,
        task.mean(axis=1),
        risk.mean(axis=1),
        task.std(axis=1) / np.sqrt(n),
        float(task.mean(axis=1).max()),
        null,
    )


def out_of_fold_scores(
    ridge: QueryRidge,
    problem: QueryProblem,  # of the kept queries only
    alpha: float,
) -> Ragged:
    """θ of the items of the kept queries, centered, each query by the fit without it."""
    values = np.empty(len(problem.targets))
    for chosen, z, t in _batches(ridge, problem):
        places = problem.offsets[chosen][:, None] + np.arange(t.shape[1])
        values[places] = _out_of_fold(ridge, z, t, alpha) / np.sqrt(problem.weight[chosen])[:, None]
    return Ragged(values, problem.offsets)


def _batches(
    ridge: QueryRidge, problem: QueryProblem
) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Queries of one length: their numbers (b,), rows z (b, length, p) and t (b, length)."""
    lengths, targets = np.diff(problem.offsets), problem.scaled_targets
    for length in np.unique(lengths).tolist():
        queries = np.flatnonzero(lengths == length)
        step = max(1, CHUNK_BYTES // (8 * length * max(ridge.rows.shape[1], length)))
        for start in range(0, len(queries), step):
            chosen = queries[start : start + step]
            places = problem.offsets[chosen][:, None] + np.arange(length)
            yield chosen, ridge.rows[places], targets[places]


def _out_of_fold(ridge: QueryRidge, z: FloatArray, t: FloatArray, alpha: float) -> FloatArray:
    """√v θ̂ of each query from the fit without it, (b, length)."""
    inverse = ridge.inverse(alpha)
    residual = t - z @ (inverse * ridge.moments)
    hat = (z * inverse) @ z.transpose(0, 2, 1)
    unit = np.eye(t.shape[1])
    try:
        np.linalg.cholesky(LEVERAGE_LIMIT * unit - hat)  # no leverage reaches the limit
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(hat)
        kept = 1.0 - np.minimum(values, LEVERAGE_LIMIT)
        turned = np.einsum("bij,bi->bj", vectors, residual) / kept
        return np.asarray(t - np.einsum("bij,bj->bi", vectors, turned))
    return np.asarray(t - np.linalg.solve(unit - hat, residual[..., None])[..., 0])


class _CenteredDense:
    def __init__(self, features: FloatArray, offsets: IntArray, weight: FloatArray) -> None:
        root = np.sqrt(np.repeat(weight, np.diff(offsets)))
        self._offsets = offsets
        self._rows = _center_rows(np.array(features, dtype=np.float64), offsets) * root[:, None]

    def products(self) -> FloatArray:
        return np.asarray(self._rows.T @ self._rows)

    def times(self, values: FloatArray) -> FloatArray:
        return np.asarray(self._rows.T @ values)

    def rows(self, queries: IntArray) -> FloatArray:
        return self._rows[rows_of(self._offsets, queries)]


class _CenteredSparse:
    """z = √v (φ − φ̄) is not sparse, but zᵀz = Σ v φφᵀ − Σ_q v_q n_q φ̄φ̄ᵀ needs sparse rows only."""

    def __init__(self, features: Any, offsets: IntArray, weight: FloatArray) -> None:
        lengths = np.diff(offsets)
        self._offsets, self._weight = offsets, weight
        self._features = sp.csr_array(features, dtype=np.float64)
        averaging = sp.csr_array(
            (np.repeat(1.0 / lengths, lengths), np.arange(offsets[-1]), offsets),
            shape=(len(lengths), int(offsets[-1])),
        )
        self._means = sp.csr_array(averaging @ self._features)

    def products(self) -> FloatArray:
        lengths = np.diff(self._offsets)
        item, mean = np.repeat(self._weight, lengths), self._weight * lengths
        own = self._features.T @ (sp.diags_array(item) @ self._features)
        return np.asarray(to_dense(own - self._means.T @ (sp.diags_array(mean) @ self._means)))

    def times(self, values: FloatArray) -> FloatArray:
        root = np.sqrt(np.repeat(self._weight, np.diff(self._offsets)))
        return np.asarray(self._features.T @ (root * values))  # the values are centered

    def rows(self, queries: IntArray) -> FloatArray:
        lengths = np.diff(self._offsets)[queries]
        rows = to_dense(self._features[rows_of(self._offsets, queries)])
        rows = rows - np.repeat(to_dense(self._means[queries]), lengths, axis=0)
        return np.asarray(rows * np.sqrt(np.repeat(self._weight[queries], lengths))[:, None])


def _centered(
    features: Any, offsets: IntArray, weight: FloatArray
) -> _CenteredDense | _CenteredSparse:
    if is_sparse(features):
        return _CenteredSparse(features, offsets, weight)
    return _CenteredDense(features, offsets, weight)


def _center_rows(rows: FloatArray, offsets: IntArray) -> FloatArray:
    """Minus the mean over the items of each query, in place."""
    rows -= np.repeat(query_means(rows, offsets), np.diff(offsets), axis=0)
    return rows
