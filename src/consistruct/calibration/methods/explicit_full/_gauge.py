"""Objective, pricing and the one-variable linear program of a pair problem, in compiled code.

See `_pair` for the problem and the symbols z, w, u, g, d.
"""

from __future__ import annotations

from consistruct._compile import compiled
from consistruct.protocols import FloatArray, IntArray

__all__ = ["add_weight", "best_multiplier", "gauge", "price", "regret"]


@compiled
def gauge(
    z: FloatArray,  # (k,)
    p: FloatArray,  # (k,)
    j: int,
    start: float,
    rows: IntArray,  # (k,) out: the rows with w > 0 come first
    w: FloatArray,  # (k,) out: w at those rows
) -> tuple[float, int, float]:
    """Return (u, number of active rows, g(z)); z_i > 0 for some i is assumed, hence u > 0."""
    k = z.shape[0]
    u = start
    # p_j u − Σ p_c (z_c − u)₊ is concave and increasing in u: Newton is monotone from the left,
    # after at most one step from the right, and finite.
    for iteration in range(k + 2):
        weight = p[j]
        total = 0.0
        for c in range(k):
            if z[c] > u:
                weight += p[c]
                total += p[c] * z[c]
        following = total / weight
        done = iteration > 0 and following <= u
        if not done:
            u = following
        else:
            break
    count = 0
    square = p[j] * u * u
    for c in range(k):
        if z[c] > u:
            excess = z[c] - u
            rows[count] = c
            w[count] = p[c] * excess
            square += p[c] * excess * excess
            count += 1
    return u, count, 0.5 * square


@compiled
def regret(
    LT: FloatArray,  # (m, k)
    j: int,
    columns: IntArray,
    x: FloatArray,
    n: int,
    z: FloatArray,  # (k,) out
) -> None:
    """z = ℓ_j − ℓ for the distribution with weights x on columns."""
    k = LT.shape[1]
    z[:] = 0.0
    for a in range(n):
        row = LT[columns[a]]
        weight = x[a]
        for c in range(k):
            z[c] -= weight * row[c]
    at_j = z[j]
    for c in range(k):
        z[c] -= at_j


@compiled
def price(
    L: FloatArray,  # (k, m)
    j: int,
    rows: IntArray,
    w: FloatArray,
    count: int,
    cost: FloatArray,  # (m,) out
) -> None:
    """cost_y = ⟨w, a_y⟩ for every true label y."""
    m = L.shape[1]
    total = 0.0
    for s in range(count):
        total += w[s]
    top = L[j]
    for y in range(m):
        cost[y] = total * top[y]
    for s in range(count):
        row = L[rows[s]]
        weight = w[s]
        for y in range(m):
            cost[y] -= weight * row[y]


@compiled
def best_multiplier(
    cost: FloatArray,  # (m,)
    d: FloatArray,  # (m,)
    eps: float,
) -> tuple[float, float, int, int, float]:
    """max_{μ≥0} με + min_y (cost_y − μ d_y): (value, μ, left, right, weight of left).

    Equal to min {cost·q : q in the simplex, d·q ≥ ε}: `left` has d ≥ ε, `right` has d < ε (or is
    −1 where one true label is the vertex). max d ≥ ε is assumed.
    """
    m = cost.shape[0]
    left = -1
    lowest = 0
    for y in range(m):
        if cost[y] < cost[lowest] or (cost[y] == cost[lowest] and d[y] > d[lowest]):
            lowest = y
        if d[y] >= eps and (
            left < 0 or cost[y] < cost[left] or (cost[y] == cost[left] and d[y] > d[left])
        ):
            left = y
    if d[lowest] >= eps:
        return cost[lowest], 0.0, lowest, -1, 1.0
    right = lowest
    mu = 0.0
    value = 0.0
    for _ in range(m + 2):
        mu = (cost[left] - cost[right]) / (d[left] - d[right])
        line = min(cost[left] - mu * d[left], cost[right] - mu * d[right])
        best = -1
        value = line
        for y in range(m):
            reduced = cost[y] - mu * d[y]
            if reduced < value:
                value = reduced
                best = y
        if best < 0 or value >= line - 1e-15 * (abs(line) + mu * abs(eps)):
            break
        if d[best] >= eps:
            if best == left:
                break
            left = best
        else:
            if best == right:
                break
            right = best
    share = (eps - d[right]) / (d[left] - d[right])
    return value + mu * eps, mu, left, right, share


@compiled
def add_weight(columns: IntArray, x: FloatArray, n: int, y: int, weight: float) -> int:
    """Add weight to true label y, which joins the support where it is new; return its size."""
    for a in range(n):
        if columns[a] == y:
            x[a] += weight
            return n
    columns[n] = y
    x[n] = weight
    return n + 1
