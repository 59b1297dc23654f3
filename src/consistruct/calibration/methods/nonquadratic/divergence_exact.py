"""From floats to exact numbers: distributions that predict a label, and what shows that none does.

Solvers meet A p ≤ 0 and gap·q ≥ ε to a tolerance. Here both are met exactly: p is mixed with a
distribution that predicts j by a margin, q with a true label of larger gap, by the least share that
is enough. Nothing rests on it: the checker evaluates whatever comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from consistruct.calibration.lp import minimize
from consistruct.calibration.methods.nonquadratic.polyhedral.snapping import snapped
from consistruct.calibration.proofs.base import plain, up
from consistruct.calibration.proofs.smooth import DivergenceCertificate
from consistruct.certificates.divergence import Problem
from consistruct.certificates.exact import combination_or_direction, dot, integers
from consistruct.protocols import FloatArray

__all__ = ["ExactDistributions", "Reach"]

FAINT = Fraction(1, 2**70)  # share of an inner distribution where a divergence would be infinite

Distribution = list[Fraction]


@dataclass(frozen=True, eq=False)
class Reach:
    """A distribution that predicts j, ties counted, or the multipliers that exclude all."""

    inner: Distribution | None
    excluded: list[list[Any]]  # [label, weight]


class ExactDistributions:
    """Exact distributions for one loss, surrogate and decoding."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._reach: dict[int, Reach] = {}
        self._rows: dict[int, dict[int, Distribution]] = {}

    @cached_property
    def L(self) -> FloatArray:  # noqa: N802 - the loss matrix, as in the paper
        return np.array([[float(x) for x in row] for row in self.problem.L])

    def rows(self, j: int) -> dict[int, Distribution]:
        """The rows of A by the label that is compared with j."""
        if j not in self._rows:
            others = (c for c in range(self.problem.k) if c != j)
            self._rows[j] = {c: self.problem.row(c, j) for c in others}
        return self._rows[j]

    def reach(self, j: int) -> Reach:
        if j not in self._reach:
            self._reach[j] = self._find(j)
        return self._reach[j]

    def _find(self, j: int) -> Reach:
        problem = self.problem
        if problem.argmax:
            return Reach([Fraction(1 + (y == j)) for y in range(problem.m)], [])
        never_worse = (self.L[j] >= self.L).all(axis=1)  # one label is enough then
        for c in np.flatnonzero(never_worse).tolist():
            if c != j and problem.excludes(j, [[c, 1]]):
                return Reach(None, [[c, 1]])
        inner = [Fraction(x) for x in self._central(j)]
        if self._predicts(inner, j):
            return Reach(inner, [])
        return self._alternative(j)

    def _predicts(self, distribution: Distribution, j: int) -> bool:
        if (
            min(distribution) < 0
            or not any(distribution)
            or (self.problem.log and min(distribution) == 0)
        ):
            return False
        # floats decide where they are far from zero
        floats = np.array([float(x) for x in distribution])
        order = self.L[j] - self.L
        near = order @ floats > -1e-9 * (np.abs(order) @ floats)
        near[j] = False
        sums = {c: dot(self.problem.row(c, j), distribution) for c in np.flatnonzero(near).tolist()}
        return all(x < 0 or (x == 0 and c > j) for c, x in sums.items())

    def _central(self, j: int) -> list[float]:
        """max t: A p ≤ −t in units of each row, and for the log loss p ≥ t/m."""
        order = np.delete(self.L[j] - self.L, j, axis=0)
        order = order[np.abs(order).max(axis=1) > 0]
        m = self.problem.m
        rows = [np.column_stack([order / np.abs(order).max(axis=1)[:, None], np.ones(len(order))])]
        if self.problem.log:
            rows.append(np.column_stack([-np.eye(m), np.full(m, 1 / m)]))
        table = np.vstack(rows)
        found = minimize(
            np.append(np.zeros(m), -1.0),
            A_ub=table,
            b_ub=np.zeros(len(table)),
            A_eq=np.append(np.ones(m), 0.0)[None],
            b_eq=np.ones(1),
            bounds=[(0.0, None)] * m + [(None, 1.0)],
        )
        if not found.feasible:
            return [0.0] * m
        x: list[float] = np.maximum(found.x[:m], 0.0).tolist()
        return x

    def _alternative(self, j: int) -> Reach:
        """Exactly one of the two holds; a linear program over the integers states which."""
        problem = self.problem
        labels = list(self.rows(j))
        table = [integers(row)[0] for row in self.rows(j).values()]
        strict = [c < j for c in labels]
        table += [[-int(x == y) for x in range(problem.m)] for y in range(problem.m)]
        strict += [problem.log] * problem.m
        if not problem.log:  # p = 0 is no distribution
            table.append([-1] * problem.m)
            strict.append(True)
        weights, direction = combination_or_direction(table, strict)
        if direction is not None:
            return Reach(direction, [])
        assert weights is not None
        # rows were multiplied by their denominators
        pairs = zip(labels, weights, table, self.rows(j).values(), strict=False)
        shares = [[c, share * _unit(row, exact)] for c, share, row, exact in pairs if share]
        return Reach(None, shares)

    def estimate(self, p: FloatArray, j: int) -> Distribution:
        """A distribution near p that predicts j, up to ties."""
        distribution = [Fraction(max(x, 0.0)) for x in p.tolist()]
        if self.problem.argmax:
            distribution[j] = max(distribution)
            return distribution
        inner = self.reach(j).inner
        assert inner is not None
        if not any(distribution):
            return inner
        pulls = {c: dot(row, inner) for c, row in self.rows(j).items()}
        fixed = [c for c, row in self.rows(j).items() if pulls[c] == 0 and any(row)]
        if any(dot(self.rows(j)[c], distribution) > 0 for c in fixed):
            # j wins only where it ties with these: the tie is an equation
            distribution = snapped(p / p.sum(), [(self.rows(j)[c], Fraction(0)) for c in fixed])
            if min(distribution) < 0 or any(dot(self.rows(j)[c], distribution) > 0 for c in fixed):
                return inner
        distribution = [x / sum(distribution) for x in distribution]
        inner = [x / sum(inner) for x in inner]
        share = Fraction(0)
        for row in self.rows(j).values():
            excess = dot(row, distribution)
            if excess > 0:
                pull = dot(row, inner)
                share = max(share, excess / (excess - pull))
        return [(1 - share) * x + share * y for x, y in zip(distribution, inner, strict=True)]

    def distribution(
        self, q: FloatArray, p: Distribution, i: int, j: int, eps: Fraction
    ) -> tuple[Distribution, Distribution]:
        """A distribution near q with gap·q ≥ ε, and p without zeros where q has none."""
        gap = self.problem.gap(i, j)
        top = max(gap)
        distribution = [Fraction(max(x, 0.0)) for x in q.tolist()]
        if eps == top:
            distribution = [
                x if d == top else Fraction(0) for x, d in zip(distribution, gap, strict=True)
            ]
        if not any(distribution):
            distribution = [Fraction(int(d == top)) for d in gap]
        distribution = [x / sum(distribution) for x in distribution]
        short = eps - dot(gap, distribution)
        if short > 0:
            # the true label that changes the divergence least: probable, and far above ε
            room = [(d - eps) * (x if self.problem.log else 1) for d, x in zip(gap, p, strict=True)]
            at = max(range(len(gap)), key=room.__getitem__) if max(room) > 0 else gap.index(top)
            move = short / (gap[at] - dot(gap, distribution))
            distribution = [
                (1 - move) * x + (move if y == at else 0) for y, x in enumerate(distribution)
            ]
        if self.problem.log and any(x and not y for x, y in zip(distribution, p, strict=True)):
            inner = self.reach(j).inner
            assert inner is not None
            mass = sum(p)
            p = [
                (1 - FAINT) * x / mass + FAINT * y / sum(inner)
                for x, y in zip(p, inner, strict=True)
            ]
        return distribution, p

    def certificate(
        self,
        eps: float,
        lower: float,
        pair: tuple[int, int],
        q: Distribution,
        p: Distribution,
        entries: list[dict[str, Any]],
    ) -> DivergenceCertificate:
        """The claim with all that its check needs; the upper end is computed here."""
        problem, inner = self.problem, self.reach(pair[1]).inner
        assert inner is not None
        q, p = ([x / sum(distribution) for x in distribution] for distribution in (q, p))
        never = [c for c in range(problem.k) if self.reach(c).inner is None] if lower else []
        return DivergenceCertificate(
            surrogate="log" if problem.log else "sparsemax",
            decoding="argmax" if problem.argmax else "bayes",
            loss=self.L.tolist(), eps=eps, lower=lower, upper=up(problem.divergence(q, p)),
            pair=pair, distribution=[plain(x) for x in q], estimate=[plain(x) for x in p],
            inner=[] if problem.argmax else [plain(x) for x in inner],
            pairs=entries if lower else [],
            excluded=[{"label": c, "w": self.reach(c).excluded} for c in never],
        )  # fmt: skip


def _unit(scaled: Sequence[int], row: Sequence[Fraction]) -> Fraction:
    """By what a row was multiplied; 1 for a row of zeros."""
    return next((Fraction(a) / b for a, b in zip(scaled, row, strict=True) if b), Fraction(1))
