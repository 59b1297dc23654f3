"""Points that are feasible exactly: distributions, and their best scores of one per label."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["best_level", "feasible_law", "full_value"]


def feasible_law(q: list[Fraction], gap: list[int], eps: Fraction) -> list[Fraction] | None:
    """A distribution with gap·q ≥ ε: clipped, normalised, mixed with the truth of largest gap."""
    q = [max(x, Fraction(0)) for x in q]
    total = sum(q, Fraction(0))
    top = max(range(len(gap)), key=lambda y: gap[y])
    if total == 0:
        q = [Fraction(int(y == top)) for y in range(len(gap))]
        total = Fraction(1)
    q = [x / total for x in q]
    reach = sum((x * g for x, g in zip(q, gap, strict=True)), Fraction(0))
    if reach < eps:
        if gap[top] < eps:
            return None
        share = (eps - reach) / (gap[top] - reach)
        q = [(1 - share) * x for x in q]
        q[top] += share
    return q


def best_level(expected: list[Fraction], mu: list[Fraction], j: int) -> Fraction:
    """The score t of j that minimises ½ [μ_j (t + ℓ_j)² + Σ_{c≠j} μ_c (t + ℓ_c)₋²].

    Stationary: t is minus the weighted mean of ℓ_j and of the ℓ_c below −t.
    """
    others = sorted((c for c in range(len(expected)) if c != j), key=lambda c: expected[c])
    weight, total = mu[j], mu[j] * expected[j]
    for c in others:
        if total <= expected[c] * weight:
            break
        weight += mu[c]
        total += mu[c] * expected[c]
    return -total / weight


def full_value(expected: list[Fraction], mu: list[Fraction], j: int, level: Fraction) -> Fraction:
    """½Σ μ_c (f_c + ℓ_c)² at f_j = level, f_c = min(−ℓ_c, level)."""
    short = [(mu[c], level + x) for c, x in enumerate(expected) if c == j or level + x < 0]
    return sum((m * x * x for m, x in short), Fraction(0)) / 2
