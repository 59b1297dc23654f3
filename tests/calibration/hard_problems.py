"""Small random problems with every awkward feature: seeds in, losses, scores, measure and ε out."""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np

from tests.seeds import generator

__all__ = ["COUNT", "exact_inputs", "problem"]

# a thousand in CI, ten thousand every night
# one in twenty has nothing to prove (no excess is possible): ten thousand, or one, are left
COUNT = 10_800 if os.environ.get("CONSISTRUCT_NIGHTLY") == "1" else 1_080

SHARES = (1e-9, 1e-7, 1e-5, 1e-3, 0.05, 0.3, 0.5, 0.8, 0.95, 1.0)


def problem(seed):
    """L (k, m), F (k, r) or None, μ (k,) or None, and the share of max_eps that is requested."""
    rng = generator(14, seed)
    k = int(rng.choice([2, 3, 3, 4, 4, 5, 6]))
    m = int(rng.choice([1, 2, 3, 3, 4, 5] if k < 6 else [2, 3, 4]))
    kind = seed % 5
    if kind in (0, 1):  # integers: ties, no interior points, equal rows now and then
        L = rng.integers(0, int(rng.choice([2, 3, 6])), (k, m)).astype(np.float64)
    elif kind == 2:
        L = rng.random((k, m))
    elif kind == 3:  # rows and columns of very different sizes
        L = rng.random((k, m)) * 10.0 ** rng.uniform(-6, 6, (k, 1)) * 10.0 ** rng.uniform(-2, 2, m)
    else:
        L = rng.integers(0, 3, (k, m)) + rng.random((k, m)) * 1e-9  # nearly degenerate
    L *= 10.0 ** rng.choice([0, 0, 0, -12, 12])
    F = None
    shape = int(rng.integers(6))
    if shape == 1:
        F = np.column_stack([np.ones(k), L / max(L.max(), 1e-300)])  # often rank-deficient
    elif shape == 2:
        F = rng.standard_normal((k, int(rng.integers(1, 4))))
    elif shape == 3:  # integers: merged labels, rows that are no vertices
        F = rng.integers(-1, 2, (k, int(rng.integers(1, 4)))).astype(np.float64)
    elif shape == 4:  # a column twice: exactly rank-deficient
        F = rng.standard_normal((k, 2))
        F = np.column_stack([np.ones(k), F, F[:, :1]])
    if F is not None and not F.any():
        F = None
    mu = rng.dirichlet(np.ones(k)) + 0.01 if seed % 7 == 0 else None
    if mu is not None:
        mu /= mu.sum()
    return L, F, mu, SHARES[int(rng.integers(len(SHARES)))]


def exact_inputs(L, F, mu):
    """The same numbers as fractions; μ uniform by default."""
    k = len(L)
    fractions = [[Fraction(x) for x in row] for row in L.tolist()]
    scores = None if F is None else [[Fraction(x) for x in row] for row in F]
    measure = [Fraction(1, k)] * k if mu is None else [Fraction(x) for x in mu.tolist()]
    return fractions, scores, measure
