"""Certificates for people: the pair, the law, the scores and the multipliers behind one value of H.

`check` recomputes both bounds from the loss and the score space alone; nothing that a solver
returned is trusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from consistruct.calibration.certificate import Line, dual_line, hull_slope, primal_value
from consistruct.calibration.explicit import ExplicitCurve, Multipliers, verify
from consistruct.calibration.hard_pairs import PairGuesses
from consistruct.calibration.oracle import OraclePair, OracleSolution
from consistruct.calibration.pool import ListedPairs
from consistruct.calibration.problem import ExplicitProblem, PairProblem
from consistruct.calibration.structured.blocks import BlockOrbits
from consistruct.calibration.structured.hamming import HammingFull
from consistruct.exceptions import CertificateError
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, IntArray
from consistruct.scores.base import BaseScoreSpace

__all__ = [
    "Certificate",
    "CertificateError",
    "CurveCertificate",
    "ExplicitCertificate",
    "HammingCertificate",
    "OracleCertificate",
    "OrbitCertificate",
    "ProblemCertificate",
]

AGREEMENT = 1e-9  # relative difference between stored and recomputed bounds that is rounding
NOTHING = 1e-24  # squares of rounding errors, for losses near one: no difference from zero


class Certificate(Protocol):
    """Proof of lower ≤ H(ε)·exp(−log_scale) ≤ upper."""

    @property
    def eps(self) -> float: ...

    @property
    def lower(self) -> float: ...

    @property
    def upper(self) -> float: ...

    @property
    def log_scale(self) -> float: ...

    @property
    def pair(self) -> tuple[Any, Any]:
        """The labels (i, j): j is predicted though i is better."""

    def check(self) -> None:
        """Recompute both bounds in plain arithmetic; raise CertificateError if they fail."""


def _confirm(
    claimed: tuple[float, float], found: tuple[float, float], nothing: float = NOTHING
) -> None:
    """Accept claims that the recomputed bounds support."""
    lower, upper = found
    if not claimed[0] <= lower * (1 + AGREEMENT) + nothing:
        raise CertificateError(f"the lower bound {claimed[0]!r} is not proved, only {lower!r} is")
    if not claimed[1] >= upper * (1 - AGREEMENT) - nothing:
        raise CertificateError(f"the upper bound {claimed[1]!r} is not attained, only {upper!r} is")


@dataclass(frozen=True, eq=False)
class ExplicitCertificate:
    """Over listed labels. Bounds are H itself (log_scale 0).

    Attributes
    ----------
    law : (m,) array
        The distribution of the truth under which j is wrongly predicted at the least cost.
    scores : (k,) array
        Scores f of all labels under which j wins (with ties).
    multipliers : dict of (i, j) to (w, ν)
        Dual points over labels, for every pair that was solved at some ε. Every other pair is
        covered by the bound that uses i's constraint alone, which needs no stored numbers.
    """

    loss: Loss
    space: BaseScoreSpace
    eps: float
    lower: float
    upper: float
    pair: tuple[int, int]
    law: FloatArray
    scores: FloatArray
    multipliers: dict[tuple[int, int], list[tuple[FloatArray, float]]]
    log_scale: float = 0.0

    def check(self) -> None:
        L, F = self.loss.matrix(), self.space.matrix()
        mu = self.space.predictions.weights()
        root = np.sqrt(mu)[:, None]
        projector = _projector(root * F)  # onto the scores, in √μ-weighted coordinates
        P = (projector @ (root * L)) / root
        predictable = self.space.predictable().indices
        kept = np.arange(len(L)) if predictable is None else predictable.astype(np.int64)
        upper = self._primal(L, P, mu, projector, root, kept)
        lower = min(self._dual(L, P, projector / (root * root.T), kept), default=math.inf)
        _confirm((self.lower, self.upper), (lower, upper), NOTHING * float(np.abs(L).max()) ** 2)

    def _primal(
        self,
        L: FloatArray,
        P: FloatArray,
        mu: FloatArray,
        projector: FloatArray,
        root: FloatArray,
        kept: IntArray,
    ) -> float:
        i, j = self.pair
        q, f = self.law, self.scores
        scale = float(np.abs(L).max())
        expected = L @ q
        if not (np.isfinite(q).all() and np.isfinite(f).all()):
            raise CertificateError("law and scores must be finite")
        if i not in kept or j not in kept:
            raise CertificateError(f"the labels {i} and {j} cannot both be predicted")
        if (q < 0).any() or abs(q.sum() - 1) > 1e-9:
            raise CertificateError("the law is no probability distribution")
        if expected[j] - expected[i] < self.eps - 1e-9 * scale:
            raise CertificateError(f"label {j} is not worse than {i} by ε under the law")
        if (f[kept] > f[j] + 1e-9 * scale).any():
            raise CertificateError(f"label {j} does not win under the scores")
        weighted = root[:, 0] * f
        if np.abs(projector @ weighted - weighted).max() > 1e-8 * scale:
            raise CertificateError("the scores do not belong to the score space")
        return 0.5 * float(mu @ (f + P @ q) ** 2)

    def _dual(
        self, L: FloatArray, P: FloatArray, kernel: FloatArray, kept: IntArray
    ) -> Iterator[float]:
        """A lower bound for every pair: ‖Σ w_c (F̃_c − F̃_j)‖² comes from the kernel F̃F̃ᵀ."""
        for i in kept.tolist():
            for j in kept.tolist():
                gap = L[j] - L[i]
                if i == j or self.eps > gap.max():
                    continue
                yield max(
                    self._bound(L, P, kernel, j, w, gap, nu)
                    for w, nu in [*self._starts(P, gap, i, j), *self.multipliers.get((i, j), [])]
                )

    def _starts(
        self, P: FloatArray, gap: FloatArray, i: int, j: int
    ) -> list[tuple[FloatArray, float]]:
        w = np.zeros(len(P))
        w[i] = 1.0
        return [(w, 1.0), (w, hull_slope(gap, P[j] - P[i], self.eps))]

    def _bound(
        self,
        L: FloatArray,
        P: FloatArray,
        kernel: FloatArray,
        j: int,
        w: FloatArray,
        gap: FloatArray,
        nu: float,
    ) -> float:
        if (w < 0).any() or nu < 0:
            raise CertificateError("a multiplier is negative")
        height = nu * self.eps + float((-(w @ (P - P[j])) - nu * gap).min())
        direction = w.copy()
        direction[j] -= w.sum()
        square = float(direction @ kernel @ direction)
        return 0.5 * max(height, 0.0) ** 2 / square if square > 0 else 0.0


@dataclass(frozen=True, eq=False)
class ProblemCertificate:
    """Over the rows of a reduced explicit problem (blocks instead of labels); see its data.

    `rows` are the rows of the pair, `theta` the scores in the orthonormal basis of the problem.
    """

    problem: ExplicitProblem
    eps: float
    lower: float
    upper: float
    pair: tuple[Any, Any]
    rows: tuple[int, int]
    law: FloatArray
    theta: FloatArray
    multipliers: dict[tuple[int, int], list[tuple[FloatArray, float]]]

    @property
    def log_scale(self) -> float:
        return self.problem.log_scale

    def check(self) -> None:
        problem = self.problem
        v = self.theta + problem.targets @ self.law
        upper = primal_value(problem.pair(*self.rows), v, self.law, self.eps)
        lowers = []
        for i in range(problem.n_rows):
            for j in range(problem.n_rows):
                if i == j or self.eps > problem.pair_limits[i, j]:
                    continue
                pair = problem.pair(i, j)
                start = np.zeros(problem.n_rows)
                start[i] = 1.0
                slope = hull_slope(pair.gap, problem.projected[j] - problem.projected[i], self.eps)
                points = [(start, slope), *self.multipliers.get((i, j), [])]
                others = np.delete(np.arange(problem.n_rows), j)
                lines = [_checked_line(pair, w[others], nu) for w, nu in points]
                lowers.append(max(line.lower(self.eps) for line in lines))
        _confirm((self.lower, self.upper), (min(lowers), upper))


@dataclass(frozen=True, eq=False)
class CurveCertificate:
    """Full scores over listed labels: `curve` holds law, scores and the dual points of all pairs.

    Attributes
    ----------
    matrix : (k, m) array
        The loss.
    curve : ExplicitCurve
        At one ε; bounds are k·H.
    """

    matrix: FloatArray
    curve: ExplicitCurve
    log_scale: float

    @property
    def eps(self) -> float:
        return float(self.curve.eps[0])

    @property
    def lower(self) -> float:
        return float(self.curve.scaled_lower[0])

    @property
    def upper(self) -> float:
        return float(self.curve.scaled_upper[0])

    @property
    def pair(self) -> tuple[int, int]:
        return int(self.curve.pair[0, 0]), int(self.curve.pair[0, 1])

    @property
    def law(self) -> FloatArray:
        return self.curve.laws[0]

    @property
    def scores(self) -> FloatArray:
        return self.curve.scores[0]

    @property
    def multipliers(self) -> Multipliers:
        """Of the minimising pair; those of the others are in ``curve.points``."""
        return self.curve.multipliers(self.matrix, 0)

    def check(self) -> None:
        verify(self.matrix, self.curve)


def _checked_line(pair: PairProblem, w: FloatArray, nu: float) -> Line:
    if (w < 0).any() or nu < 0:
        raise CertificateError("a multiplier is negative")
    return dual_line(pair, w, nu)


def _projector(factor: FloatArray) -> FloatArray:
    left, singular, _ = np.linalg.svd(factor, full_matrices=False)
    kept = singular > max(factor.shape) * np.finfo(np.float64).eps * singular[0]
    return left[:, kept] @ left[:, kept].T


@dataclass(frozen=True, eq=False)
class OrbitCertificate:
    """0-1, block and mixed losses with full scores: one number per cell of labels.

    ``cells`` describes the cells in the order of `law` and `scores`; law[c] is the mass of a cell,
    scores[c] the score of each of its labels (relative to that of j).
    """

    orbits: BlockOrbits
    eps: float
    lower: float
    upper: float
    pair: tuple[int, int]
    cells: tuple[str, ...]
    law: FloatArray
    scores: FloatArray
    excess: FloatArray  # v: √n (f + ℓ) of each cell of n labels; kept apart as n may be 2^1000
    orbit: int  # which of the orbits the pair stands for
    multipliers: tuple[tuple[FloatArray, float], ...]  # one dual point per orbit

    @property
    def log_scale(self) -> float:
        return self.orbits.source.log_scale

    def check(self) -> None:
        source: ListedPairs = self.orbits.source
        if self.orbits.orbits[self.orbit][0] != self.pair:
            raise CertificateError(f"the pair {self.pair} does not stand for orbit {self.orbit}")
        expected = self.orbits.scores(self.orbit, self.excess, self.law)
        if not np.allclose(self.scores, expected, rtol=1e-9, atol=1e-9):
            raise CertificateError("the scores do not have the excess that is claimed for them")
        upper = primal_value(source.problems[self.orbit], self.excess, self.law, self.eps)
        lowers = [
            _checked_line(pair, w, nu).lower(self.eps)
            for pair, (w, nu) in zip(source.problems, self.multipliers, strict=True)
            if self.eps <= pair.max_eps
        ]
        _confirm((self.lower, self.upper), (min(lowers), upper))


@dataclass(frozen=True, eq=False)
class HammingCertificate:
    """Hamming loss with full scores: i and j differ in the first d parts.

    The law puts (1+δ)/2 on i and (1−δ)/2 on j, δ = εT/d; scores are min(−ℓ_c, −ℓ_i − x), so x
    says it all. `check` redoes every pair orbit in rational arithmetic.
    """

    form: HammingFull
    eps: float
    lower: float
    upper: float
    log_scale: float
    pair: tuple[tuple[int, ...], tuple[int, ...]]
    law: tuple[float, float]
    x: tuple[float, ...]  # per orbit d = T − len(x) + 1 … T

    def check(self) -> None:
        T = self.form.loss.T
        assert T is not None
        eps = Fraction(self.eps)
        first = T - len(self.x) + 1
        if Fraction(first - 1, T) > eps * (1 - Fraction(1, 10**13)):
            raise CertificateError(f"no bound is given for pairs that differ in {first - 1} parts")
        d = sum(a != b for a, b in zip(*self.pair, strict=True))
        if not first <= d <= T:
            raise CertificateError(f"the labels of the pair differ in {d} parts, too few for ε")
        delta = min(self.eps * T / d, 1.0)
        if not np.allclose(self.law, ((1 + delta) / 2, (1 - delta) / 2), rtol=0, atol=1e-12):
            raise CertificateError("the law does not make j worse than i by ε")
        bounds = {
            number: self.form.exact_bounds(min(eps, Fraction(number, T)), number, Fraction(x))
            for number, x in enumerate(self.x, start=first)
        }
        lower = min(float(low) for low, _ in bounds.values())
        _confirm((self.lower, self.upper), (lower, float(bounds[d][1])))


@dataclass(frozen=True, eq=False)
class OracleCertificate:
    """Labels that are never listed: few truths, few rivals, and two oracles over all the rest.

    `guesses` gives the bound of Theorem 7 that covers all pairs, solved or not: `check` recomputes
    it.
    """

    oracle: OraclePair
    solution: OracleSolution
    guesses: PairGuesses
    eps: float
    lower: float
    upper: float
    pair: tuple[Any, Any]
    log_scale: float = 0.0

    def check(self) -> None:
        oracle, solution = self.oracle, self.solution
        space, loss = oracle.space, oracle.loss
        j = space.embed(np.array([self.pair[1]]))
        truths, q, theta = solution.truths, solution.law, solution.theta
        if (q < 0).any() or abs(q.sum() - 1) > 1e-9:
            raise CertificateError("the law is no probability distribution")
        worse = loss(np.repeat([self.pair[1]], len(q), 0), truths) - loss(
            np.repeat([self.pair[0]], len(q), 0), truths
        )
        if float(worse @ q) < self.eps - 1e-9:
            raise CertificateError("j is not worse than i by ε under the law")
        winner = space.embed(space.decoder()(theta[None]))
        if float(((winner - j) @ theta)[0]) > 1e-9:
            raise CertificateError("j does not win under the scores")
        upper = oracle._upper(theta, oracle._targets(truths), q)
        _confirm((self.lower, self.upper), (self.guesses.lower_bound(self.eps), upper))
