"""H as a minimum over pairs (i, j), whatever the surrogate.

j is predicted though i is better by ε: H(ε) = min over i ≠ j of H_ij(ε), ε > 0. That i be optimal
need not be required. A `PairSolver` bounds one H_ij from both sides by points that plain arithmetic
evaluates; `PairsMethod` runs over the pairs and turns the bounds into a curve.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from consistruct.calibration.curve import CurvePoint, Method, Progress, at_each, status_of
from consistruct.calibration.proofs.base import (
    Certificate,
    WorstDistribution,
    distribution_of_numbers,
    down,
)
from consistruct.exceptions import CertificateError, ConsistructError
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, IntArray

__all__ = [
    "PairProof",
    "PairSolver",
    "PairsCertificate",
    "PairsMethod",
    "Witness",
    "distribution_with_gap",
    "label_classes",
    "largest_gaps",
    "reaching",
    "without_repeats",
]

NEAR = 0.01  # of the least bound: what is further above cannot be rounding
AGREEMENT = 1e-9  # relative difference between stored and recomputed bounds that is rounding
NOTHING = 1e-14  # absolute: differences of numbers of order one


Pair = tuple[int, int]


class PairProof(ABC):
    """lower ≤ H_ij(ε)·exp(−log_scale) ≤ upper, with the points that show it."""

    lower: float
    upper: float
    distribution: FloatArray  # (m,) distribution of the true label of the upper bound

    @abstractmethod
    def recompute(self) -> tuple[float, float]:
        """(lower, upper) from the stored points and the loss, in plain arithmetic."""


Proof = TypeVar("Proof", bound=PairProof)


@dataclass(frozen=True, eq=False)
class Witness:
    """Under this distribution the surrogate's optimum predicts j, but i is better by `level`."""

    level: float
    pair: tuple[int, int] | None
    distribution: FloatArray | None
    upper: float | None = None  # bound on sup{ε : H(ε) = 0} where the level may be larger
    reason: str | None = None  # why it may be


class PairSolver(ABC, Generic[Proof]):
    """Bounds H_ij for one surrogate and one loss matrix (k, m)."""

    name: str
    log_scale: float = 0.0

    def __init__(self, L: FloatArray) -> None:
        self.L = L

    @cached_property
    def limits(self) -> FloatArray:
        """(k, k): at [i, j] the largest ε at which the pair is feasible; −inf if it never is."""
        limits = np.stack([largest_gaps(self.L, row) for row in self.L])
        np.fill_diagonal(limits, -np.inf)
        return limits

    def quick_lower(self, i: int, j: int, eps: float) -> float:
        """A lower bound on H_ij(ε) by a formula, 0 if there is none."""
        return 0.0

    @abstractmethod
    def solve(self, i: int, j: int, eps: float, incumbent: float) -> Proof:
        """Bound H_ij(ε); the work may stop once the lower bound passes `incumbent`."""

    @cached_property
    def witness(self) -> Witness:
        """The consistency level sup{ε : H(ε) = 0} and what attains it."""
        return Witness(0.0, None, None)

    def certificate(self, eps: float, winner: Pair, proofs: Mapping[Pair, Proof]) -> Certificate:
        """What proves H(ε); in floats, where a surrogate is known by functions alone."""
        bounds = self.bounds(eps, proofs)
        return PairsCertificate(
            self, eps, min(bounds.values()), proofs[winner].upper, winner, proofs, self.log_scale
        )

    def certificate_of_zero(self, eps: float) -> Certificate:
        """What proves H(ε) = 0 up to the consistency level."""
        raise ConsistructError(
            f"H({eps:g}) = 0: ε is not above the consistency level {self.witness.level:g}; the "
            "distribution that shows it is H.witness"
        )

    def bounds(self, eps: float, proofs: Mapping[Pair, Proof]) -> dict[Pair, float]:
        """The lower bound of every pair that is feasible at ε."""
        pairs = [(int(i), int(j)) for i, j in np.argwhere(self.limits >= eps)]
        quick = {pair: self.quick_lower(*pair, eps) for pair in pairs}
        return {
            pair: max(proofs[pair].lower, bound) if pair in proofs else bound
            for pair, bound in quick.items()
        }

    def lowest(self, eps: float, proofs: Mapping[Pair, Proof]) -> list[Pair]:
        """The pairs that may decide the lower end: in exact arithmetic only they are evaluated."""
        bounds = self.bounds(eps, proofs)
        least = min(bounds.values())
        return [pair for pair, bound in bounds.items() if bound <= least * (1 + NEAR)]


@dataclass(eq=False)
class PairsMethod(Method):
    """All pairs of listed labels, one convex problem (or search) each."""

    loss: Loss
    solver: PairSolver[Any]

    def __post_init__(self) -> None:
        self.name = self.solver.name
        self.log_scale = self.solver.log_scale
        self._winners: list[Pair] = []
        self._found: dict[float, Certificate] = {}

    @property
    def max_eps(self) -> float:
        return max(float(self.solver.limits.max(initial=0.0)), 0.0)

    @property
    def consistency_level(self) -> float:
        return self.solver.witness.level

    @property
    def level_interval(self) -> tuple[float, float]:
        found = self.solver.witness
        return found.level, found.level if found.upper is None else found.upper

    @property
    def level_reason(self) -> str | None:
        return self.solver.witness.reason

    @property
    def witness(self) -> Witness:
        """Where the surrogate's optimum goes wrong, if it does."""
        return self.solver.witness

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        return at_each(eps, self._point, progress)

    def _point(self, eps: float) -> CurvePoint:
        if eps <= self.consistency_level:
            pair = self._labels(self.witness.pair) if self.witness.pair else None
            return CurvePoint(eps, 0.0, 0.0, self.log_scale, self.name, "certified", pair)
        found = self._solve(eps)
        status = status_of(found.lower, found.upper, 1.0)
        pair = self._labels(found.pair)
        exact = found.scale
        if exact is None and status == "certified":
            status = "numerical"
        return CurvePoint(
            eps, found.lower, found.upper, self.log_scale, self.name, status, pair, exact
        )

    def _labels(self, pair: tuple[int, int]) -> tuple[Any, Any]:
        labels = self.loss.predictions.unindex(np.array(pair))
        one, other = labels.tolist()
        return (tuple(one), tuple(other)) if labels.ndim > 1 else (one, other)

    def _solve(self, eps: float) -> Certificate:
        if eps in self._found:
            return self._found[eps]
        solver = self.solver
        pairs = [(int(i), int(j)) for i, j in np.argwhere(solver.limits >= eps)]
        quick = {pair: solver.quick_lower(*pair, eps) for pair in pairs}
        recent = {pair: age for age, pair in enumerate(reversed(self._winners))}
        pairs.sort(key=lambda pair: (recent.get(pair, len(recent)), quick[pair]))
        proofs: dict[Pair, PairProof] = {}
        incumbent, winner = math.inf, pairs[0]
        for pair in pairs:
            if quick[pair] >= incumbent:
                continue
            proof = proofs[pair] = solver.solve(*pair, eps, incumbent)
            if proof.upper < incumbent:
                incumbent, winner = proof.upper, pair
        if winner in self._winners:
            self._winners.remove(winner)
        self._winners.append(winner)
        found = self._found[eps] = solver.certificate(eps, winner, proofs)
        return found

    def certificate(self, eps: float) -> Certificate:
        if eps <= self.consistency_level:
            return self.solver.certificate_of_zero(eps)
        return self._solve(eps)


@dataclass(frozen=True, eq=False)
class PairsCertificate:
    """One proof per feasible pair; bounds are H·exp(−log_scale)."""

    solver: PairSolver[Any]
    eps: float
    lower: float
    upper: float
    pair: Pair
    proofs: Mapping[Pair, PairProof]
    log_scale: float
    scale: ClassVar[None] = None  # bounds are floats

    @property
    def distribution(self) -> FloatArray:
        """The distribution of the label under which j is wrongly predicted at the least cost."""
        return self.proofs[self.pair].distribution

    def worst_distribution(self, loss: Loss) -> WorstDistribution:
        return distribution_of_numbers(loss, self.pair, self.distribution)

    def check(self) -> None:
        """Recompute every bound in plain arithmetic; raise CertificateError if one fails."""
        lower = math.inf
        for i, j in np.argwhere(self.solver.limits >= self.eps).tolist():
            proof = self.proofs.get((i, j))
            quick = self.solver.quick_lower(i, j, self.eps)
            lower = min(lower, quick if proof is None else max(quick, proof.recompute()[0]))
        upper = self.proofs[self.pair].recompute()[1]
        if self.lower > lower * (1 + AGREEMENT) + NOTHING:
            raise CertificateError(f"the lower bound {self.lower!r} is not proved, only {lower!r}")
        if self.upper < upper * (1 - AGREEMENT) - NOTHING:
            raise CertificateError(
                f"the upper bound {self.upper!r} is not attained, only {upper!r}"
            )


def largest_gaps(L: FloatArray, row: FloatArray) -> FloatArray:
    """max_y L(j, y) − row(y) of every j, rounded down: differences of floats are rounded.

    >>> import numpy as np
    >>> largest_gaps(np.array([[1.0, 0.3]]), np.array([0.0, 0.1])).tolist()
    [1.0]
    """
    gaps = L - row
    found = gaps.max(axis=1)
    for j, most in enumerate(found.tolist()):
        close = np.flatnonzero(gaps[j] >= most - 1e-15 * abs(most)).tolist()
        found[j] = down(max(Fraction(float(L[j, y])) - Fraction(float(row[y])) for y in close))
    return np.asarray(found)


def distribution_with_gap(
    q: FloatArray, gap: FloatArray, eps: float, allowed: np.ndarray
) -> FloatArray:
    """Probabilities of the allowed true labels near q with gap·q ≥ ε, which one of them must reach.

    >>> import numpy as np
    >>> half, gap = np.array([0.5, 0.5]), np.array([1.0, 0.0])
    >>> distribution_with_gap(half, gap, 0.75, np.ones(2, dtype=bool))
    array([0.75, 0.25])
    """
    q = np.where(allowed & (q > 1e-15), q, 0.0)
    q = q / q.sum() if q.sum() > 0 else allowed / allowed.sum()
    short = eps - float(gap @ q)
    if short <= 0:
        return np.asarray(q)
    top = int(np.where(allowed, gap, -np.inf).argmax())
    highest = allowed & (gap >= gap[top] - 1e-12 * abs(gap[top]))
    if eps >= gap[top] - 1e-12 * abs(gap[top]) and q[highest].sum() > 0:
        # all of them reach ε: their shares stay, or rounding would leave one true label only
        q = np.where(highest, q, 0.0)
        return np.asarray(q / q.sum())
    room = float(gap[top] - gap @ q)
    move = min(1.0, short / room) if room > 0 else 1.0
    q = (1 - move) * q
    q[top] += move
    return np.asarray(q / q.sum())


def reaching(
    distribution: list[Fraction], gap: Sequence[Fraction | int], eps: Fraction
) -> list[Fraction]:
    """Probabilities with gap·q ≥ ε exactly: moved toward the true label of the largest gap.

    >>> one, zero = Fraction(1), Fraction(0)
    >>> [str(x) for x in reaching([one, one], [one, zero], one)]
    ['1', '0']
    """
    distribution = [x / sum(distribution) for x in distribution]
    short = eps - sum((d * x for d, x in zip(gap, distribution, strict=True)), Fraction(0))
    if short <= 0:
        return distribution
    top = max(range(len(distribution)), key=gap.__getitem__)
    room = gap[top] - eps + short
    move = min(short / room, Fraction(1)) if room > 0 else Fraction(1)
    return [(1 - move) * x + (move if y == top else 0) for y, x in enumerate(distribution)]


def label_classes(L: FloatArray) -> IntArray:
    """Class number of each label: labels of a class can be swapped without changing L.

    >>> import numpy as np
    >>> label_classes(np.array([[0, 1, 2], [1, 0, 2], [2, 2, 0]]))
    array([0, 0, 2])
    """
    k, m = L.shape
    numbers = np.arange(k)
    if k != m:
        return numbers
    for c in range(k):
        for d in range(c):
            if numbers[d] != d:
                continue
            order = np.arange(k)
            order[[c, d]] = d, c
            if np.array_equal(L[np.ix_(order, order)], L):
                numbers[c] = d
                break
    return numbers


def without_repeats(limits: FloatArray, L: FloatArray) -> FloatArray:
    """`limits` with −inf for pairs that a swap of labels turns into an earlier one."""
    classes, kept = label_classes(L), limits.copy()
    seen: set[tuple[int, int]] = set()
    for i, j in np.argwhere(limits > -np.inf).tolist():
        key = (int(classes[i]), int(classes[j]))
        if key in seen:
            kept[i, j] = -np.inf
        seen.add(key)
    return kept
