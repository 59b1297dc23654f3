"""The label set of largest expected F1 when labels are independent: a usual recipe, exactly.

Given p_t = P(y_t = 1 | x) and independent labels, the set that maximizes

    E F1(ŷ, y) = E 2|ŷ∩y| / (|ŷ| + |y|)          (`empty` for two empty sets)

consists of the labels of largest p_t (D. D. Lewis, SIGIR 1995). With the k best predicted, let A be
the number of them that are true and B the number of other true labels: both are sums of
independent bits, and

    E F1 = Σ_{a,b} P(A = a) P(B = b) 2a / (k + a + b).

Every k is tried. One example takes O(T³) multiplications, many examples are multiplied at once.
"""

from __future__ import annotations

import numpy as np

__all__ = ["decode", "expected_f1_of_best"]

CHUNK_BYTES = 2**26  # of the distributions of the sums of one batch of examples


def decode(probabilities: np.ndarray, *, empty: float = 1.0) -> np.ndarray:
    """Label sets (n, T) of 0 and 1 with the largest expected F1 for probabilities (n, T).

    Independent rare labels give the empty set a chance that data without empty sets do not have;
    ``empty=0`` never predicts it in vain.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    n, T = p.shape
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=1)
    labels = np.zeros((n, T), dtype=np.int64)
    chunk = max(1, CHUNK_BYTES // (16 * (T + 1) ** 2))
    for start in range(0, n, chunk):
        part = slice(start, start + chunk)
        size = expected_f1_of_best(ranked[part], empty).argmax(axis=1)  # of equal ones the fewest
        members = (np.arange(T) < size[:, None]).astype(np.int64)
        np.put_along_axis(labels[part], order[part], members, axis=1)
    return labels


def expected_f1_of_best(
    ranked: np.ndarray,  # (n, T): probabilities, descending in each row
    empty: float = 1.0,
) -> np.ndarray:
    """Expected F1 of predicting the first k labels, k = 0..T, (n, T + 1)."""
    n, T = ranked.shape
    first = sums_of_bits(ranked)
    others = sums_of_bits(ranked[:, ::-1])
    values = np.empty((n, T + 1))
    values[:, 0] = empty * others[T][:, 0]  # nothing predicted: right if nothing is true
    for k in range(1, T + 1):
        a, b = np.arange(k + 1)[:, None], np.arange(T - k + 1)
        values[:, k] = np.einsum(
            "nb,nb->n", first[k][:, : k + 1] @ (2.0 * a / (k + a + b)), others[T - k][:, b]
        )
    return values


def sums_of_bits(p: np.ndarray) -> np.ndarray:
    """Distributions of the sums of the first k of T independent bits, k = 0..T: (T + 1, n, T + 1)."""
    n, T = p.shape
    distribution = np.zeros((T + 1, n, T + 1))
    distribution[0, :, 0] = 1.0
    for k in range(T):
        distribution[k + 1] = distribution[k] * (1.0 - p[:, k, None])
        distribution[k + 1, :, 1:] += distribution[k, :, :-1] * p[:, k, None]
    return distribution
