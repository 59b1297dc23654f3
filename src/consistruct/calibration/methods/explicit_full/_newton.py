"""Newton step of the pair objective on a face of the feasible set, in compiled code.

See `_pair` for the problem and the symbols z, w, u, g, d, σ.
"""

from __future__ import annotations

import numpy as np

from consistruct._compile import compiled
from consistruct.protocols import FloatArray, IntArray

__all__ = ["newton_direction"]

RIDGE = 1e-13  # relative to the largest diagonal entry: a proximal term for flat directions


@compiled
def cholesky_solve(
    M: FloatArray,
    n: int,
    rhs: FloatArray,
    column: FloatArray,  # work (n,)
) -> bool:
    """Solve M x = rhs in place (leading n × n block, lower part); False if M is not positive.

    Right-looking, so that the inner loops are updates of whole rows and not dot products, which
    cannot be vectorized without reordering their sums.
    """
    for b in range(n):
        if M[b, b] <= 0.0:
            return False
        root = np.sqrt(M[b, b])
        M[b, b] = root
        for a in range(b + 1, n):
            column[a] = M[a, b] / root
            M[a, b] = column[a]
        for a in range(b + 1, n):
            factor = column[a]
            row = M[a]
            for c in range(b + 1, a + 1):
                row[c] -= factor * column[c]
        rhs[b] /= root
        for a in range(b + 1, n):
            rhs[a] -= column[a] * rhs[b]
    for a in range(n - 1, -1, -1):
        rhs[a] /= M[a, a]
        row = M[a]
        for b in range(a):
            rhs[b] -= row[b] * rhs[a]
    return True


@compiled
def choose_basis(
    d: FloatArray,  # (m,)
    eps: float,
    flat: float,
    columns: IntArray,
    x: FloatArray,
    n: int,
    has_slack: bool,
    free: IntArray,  # (n,) out: places of the free variables
    share: FloatArray,  # (n,) out: λ of each of them
) -> tuple[int, int, int]:
    """Eliminate Σx = 1 and d·x − σ = ε: return (first, second or −1, number of free variables).

    With σ in, σ and the heaviest true label are basic. Otherwise the two true labels are that carry
    most of x_y (d_y − ε) on either side, and a free y moves against λ·first + (1−λ)·second, where λ
    keeps d·x. If one side is empty, all weight lies on true labels with d_y = ε: they alone move.
    """
    heaviest = 0
    above = -1
    below = -1
    most_above = 0.0
    most_below = 0.0
    for a in range(n):
        tilt = d[columns[a]] - eps
        if x[a] > x[heaviest]:
            heaviest = a
        if tilt > flat and x[a] * tilt > most_above:
            most_above = x[a] * tilt
            above = a
        elif tilt < -flat and -x[a] * tilt > most_below:
            most_below = -x[a] * tilt
            below = a
    count = 0
    if has_slack or above < 0 or below < 0:
        for a in range(n):
            if a != heaviest and (has_slack or abs(d[columns[a]] - eps) <= flat):
                free[count] = a
                share[count] = 1.0
                count += 1
        return heaviest, -1, count
    gap = d[columns[above]] - d[columns[below]]
    for a in range(n):
        if a != above and a != below:
            free[count] = a
            share[count] = (d[columns[a]] - d[columns[below]]) / gap
            count += 1
    return above, below, count


@compiled
def newton_direction(
    L: FloatArray,  # (k, m)
    d: FloatArray,  # (m,)
    p: FloatArray,  # (k,)
    j: int,
    eps: float,
    flat: float,
    rows: IntArray,  # active rows, `count` of them
    w: FloatArray,
    count: int,
    columns: IntArray,  # support, `n` entries
    x: FloatArray,
    n: int,
    has_slack: bool,
    B: FloatArray,  # work (k, m + 2)
    M: FloatArray,  # work (m + 7, m + 2)
    free: IntArray,  # work (2m + 4,)
    step: FloatArray,  # (m + 2,) out: change of x
) -> tuple[float, float]:
    """Newton step of g on the face {Σx = 1, d·x − σ = ε}; return (change of σ, slope of g)."""
    size = M.shape[0]
    share = M[size - 1]
    gradient = M[size - 2]
    mean = M[size - 3]
    solution = M[size - 4]
    at_top = M[size - 5]
    free_true_label = free[n:]
    first, second, dim = choose_basis(d, eps, flat, columns, x, n, has_slack, free, share)
    for a in range(n):
        step[a] = 0.0
    if dim == 0:
        return 0.0, 0.0
    # Reduced columns a_y − λ a_first − (1−λ) a_second on the active rows S, scaled by √p. There
    # ∇²g = P − p pᵀ/(p_j + Σ_S p) with P = diag(p), so M = BᵀB − (Bᵀ√p)(Bᵀ√p)ᵀ/(p_j + Σ_S p).
    y1 = columns[first]
    y2 = columns[second] if second >= 0 else y1
    top = L[j]
    for a in range(dim):
        free_true_label[a] = columns[free[a]]
        at_top[a] = top[free_true_label[a]]
        mean[a] = 0.0
        gradient[a] = 0.0
        for b in range(a + 1):
            M[a, b] = 0.0
    weight = p[j]
    for s in range(count):
        c = rows[s]
        row = L[c]
        line = B[s]
        weight += p[c]
        root = np.sqrt(p[c])
        at1 = top[y1] - row[y1]
        at2 = top[y2] - row[y2]
        force = w[s] / root
        for a in range(dim):
            line[a] = at_top[a] - row[free_true_label[a]]
        for a in range(dim):
            line[a] = root * (line[a] - share[a] * at1 - (1.0 - share[a]) * at2)
            mean[a] += root * line[a]
            gradient[a] += force * line[a]
    for s in range(count):
        line = B[s]
        for a in range(dim):
            target = M[a]
            entry = line[a]
            for b in range(a + 1):
                target[b] += entry * line[b]
    largest = 0.0
    for a in range(dim):
        for b in range(a + 1):
            M[a, b] -= mean[a] * mean[b] / weight
        largest = max(largest, M[a, a])
    for a in range(dim):
        M[a, a] = max(M[a, a], 0.0) + RIDGE * largest
        solution[a] = -gradient[a]
    if not cholesky_solve(M, dim, solution, mean):
        return 0.0, 0.0
    slope = 0.0
    drift = 0.0
    for a in range(dim):
        slope += gradient[a] * solution[a]
        step[free[a]] = solution[a]
        step[first] -= share[a] * solution[a]
        if second >= 0:
            step[second] -= (1.0 - share[a]) * solution[a]
        elif has_slack:
            drift += (d[columns[free[a]]] - d[y1]) * solution[a]
    return drift, slope
