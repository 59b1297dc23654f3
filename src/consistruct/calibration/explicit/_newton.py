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
def cholesky_solve(M: FloatArray, n: int, rhs: FloatArray) -> bool:
    """Solve M x = rhs in place (leading n × n block, lower part); False if M is not positive."""
    for a in range(n):
        for b in range(a):
            factor = M[a, b]
            for c in range(b):
                factor -= M[a, c] * M[b, c]
            M[a, b] = factor / M[b, b]
        pivot = M[a, a]
        for c in range(a):
            pivot -= M[a, c] * M[a, c]
        if pivot <= 0.0:
            return False
        M[a, a] = np.sqrt(pivot)
    for a in range(n):
        for b in range(a):
            rhs[a] -= M[a, b] * rhs[b]
        rhs[a] /= M[a, a]
    for a in range(n - 1, -1, -1):
        for b in range(a + 1, n):
            rhs[a] -= M[b, a] * rhs[b]
        rhs[a] /= M[a, a]
    return True


@compiled
def newton_direction(
    L: FloatArray,  # (k, m)
    d: FloatArray,  # (m,)
    p: FloatArray,  # (k,)
    j: int,
    eps: float,
    flat: float,
    rows: IntArray,
    w: FloatArray,
    count: int,
    columns: IntArray,
    x: FloatArray,
    n: int,
    has_slack: bool,
    B: FloatArray,  # work (k, cap)
    M: FloatArray,  # work (cap, cap)
    step: FloatArray,  # (cap,) out: change of x
) -> tuple[float, float]:
    """Newton step of g on the face {Σx = 1, d·x − σ = ε}; return (change of σ, slope of g).

    Basic variables: σ and the heaviest truth where σ is in; otherwise the truths that carry most
    of x_y (d_y − ε) on either side; one truth alone where all d_y equal ε.
    """
    first = -1
    second = -1
    if has_slack:
        first = 0
        for a in range(1, n):
            if x[a] > x[first]:
                first = a
    else:
        above = 0.0
        below = 0.0
        for a in range(n):
            tilt = d[columns[a]] - eps
            if tilt > flat and x[a] * tilt >= above:
                above = x[a] * tilt
                first = a
            elif tilt < -flat and -x[a] * tilt >= below:
                below = -x[a] * tilt
                second = a
        if first < 0 or second < 0:
            first = 0
            second = -1
            for a in range(1, n):
                if x[a] > x[first]:
                    first = a
    gap = 0.0
    if second >= 0:
        gap = d[columns[first]] - d[columns[second]]
    y1 = columns[first]
    y2 = columns[second] if second >= 0 else y1
    free = n - 1 if second < 0 else n - 2
    for a in range(n):
        step[a] = 0.0
    if free <= 0:
        return 0.0, 0.0
    # Reduced columns: a_y − λ a_y1 − (1−λ) a_y2 restricted to the active rows, scaled by √p.
    weight = p[j]
    for s in range(count):
        weight += p[rows[s]]
    for s in range(count):
        c = rows[s]
        root = np.sqrt(p[c])
        row = L[c]
        top = L[j]
        at1 = top[y1] - row[y1]
        at2 = top[y2] - row[y2]
        target = 0
        for a in range(n):
            if a != first and a != second:
                y = columns[a]
                share = 1.0
                if second >= 0:
                    share = (d[y] - d[y2]) / gap
                B[s, target] = root * ((top[y] - row[y]) - share * at1 - (1.0 - share) * at2)
                target += 1
    mean = M[free]  # two more rows: Bᵀ√p, and the gradient
    for a in range(free):
        mean[a] = 0.0
        step[a] = 0.0
        for b in range(a + 1):
            M[a, b] = 0.0
    for s in range(count):
        root = np.sqrt(p[rows[s]])
        force = w[s] / root
        line = B[s]
        for a in range(free):
            value = line[a]
            mean[a] += root * value
            step[a] -= force * value
            target_row = M[a]
            for b in range(a + 1):
                target_row[b] += value * line[b]
    largest = 0.0
    for a in range(free):
        scale = mean[a] / weight
        for b in range(a + 1):
            M[a, b] -= scale * mean[b]
        largest = max(largest, M[a, a])
    ridge = RIDGE * largest + 1e-300
    for a in range(free):
        M[a, a] = max(M[a, a], 0.0) + ridge
    slope = 0.0
    gradient = M[free + 1]
    for a in range(free):
        gradient[a] = -step[a]
    if not cholesky_solve(M, free, step):
        for a in range(n):
            step[a] = 0.0
        return 0.0, 0.0
    for a in range(free):
        slope += gradient[a] * step[a]
    # Expand from the free variables (packed at the front) to all of them.
    target = free - 1
    for a in range(n - 1, -1, -1):
        if a != first and a != second:
            step[a] = step[target]
            target -= 1
        else:
            step[a] = 0.0
    slack = 0.0
    for a in range(n):
        if a != first and a != second:
            y = columns[a]
            if second >= 0:
                share = (d[y] - d[y2]) / gap
                step[first] -= share * step[a]
                step[second] -= (1.0 - share) * step[a]
            else:
                step[first] -= step[a]
                slack += (d[y] - d[y1]) * step[a]
    return slack if has_slack else 0.0, slope
