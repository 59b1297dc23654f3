"""Surrogates that estimate the distribution of the true label: log loss (CRF) and sparsemax.

With one score per true label the surrogate's excess is a divergence D(q, p) between the
distribution q and the distribution p that the scores stand for: KL(q‖p) for the log loss, ½‖q − p‖²
for sparsemax. Decoding is a linear condition on p, written A p ≤ 0: argmax has rows e_c − e_j (true
labels name predictions), Bayes decoding argmin_c (Lp)_c has rows L_j − L_c. So

    H_ij(ε) = min D(q, p)   s.t.   A p ≤ 0,   (L_j − L_i) q ≥ ε,   p, q in the simplex,

a convex program. Dual points, for any w ≥ 0, ν ≥ 0, a = wᵀA and gap = L_j − L_i:

    KL       1 − log X + min_y [a_y − exp(ν(gap_y − ε))/X]              for any X > 0,
    squares  (νε + min_y [a − z]_y + min_y [z − ν gap]_y)₊² / 2‖z‖²     for any z.

The first minimizes over q exactly (a log-partition function) and takes a tangent of −log; the
second is Fenchel's inequality at the best scale. KL with argmax decoding needs no solver (module
`divergence_argmax`); else there is one conic program per pair, whose order constraints are
generated where they are many: the program with some of them bounds H_ij from below all the same.
What is not tight is sharpened (`divergence_polish`), from the solution at a larger ε where ε² is
below rounding. The ends of the certificate are recomputed exactly (`divergence_exact`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy  # its submodules are imported on use

from consistruct.calibration.methods.nonquadratic.divergence_argmax import (
    largest_mean,
    tilted_argmax,
)
from consistruct.calibration.methods.nonquadratic.divergence_conic import solve_pair
from consistruct.calibration.methods.nonquadratic.divergence_exact import ExactDistributions
from consistruct.calibration.methods.nonquadratic.divergence_polish import (
    Conditions,
    KLConditions,
    SquaredConditions,
    Stationary,
)
from consistruct.calibration.methods.nonquadratic.divergence_proof import (
    FEASIBLE,
    ROUNDING,
    Divergence,
    DivergenceProof,
)
from consistruct.calibration.methods.nonquadratic.pairs import (
    Pair,
    PairSolver,
    Witness,
    distribution_with_gap,
)
from consistruct.calibration.problem.pair_bounds import hull_slope
from consistruct.calibration.proofs.base import down, plain
from consistruct.calibration.proofs.smooth import DivergenceCertificate
from consistruct.certificates.divergence import Problem
from consistruct.certificates.exact import Refused
from consistruct.protocols import FloatArray

__all__ = ["DivergenceSolver"]

ENOUGH = 1e-9  # relative width after which nothing is sharpened
NEGLIGIBLE_LOG = 27.0  # e^−27 of a term is rounding
ALL_ROWS = 24  # order constraints up to which none is left out at first
NEW_ROWS = 8  # the most violated ones that are added at a time
SMALL = 1e-3  # of the largest ε: below, what is active is found there and carried down
# what counts as not zero: of probabilities, and of multipliers as a share of the largest
GUESSES = (
    (1e-4, 1e-4), (1e-6, 1e-6), (1e-8, 1e-8), (1e-3, 1e-4), (1e-2, 1e-4), (1e-3, 1e-6),
    (1e-6, 1e-4), (1e-4, 1e-6), (1e-2, 1e-2),
)  # fmt: skip
REVISIONS = 3  # of each guess


class DivergenceSolver(PairSolver[DivergenceProof]):
    """Log loss or sparsemax with one score per true label; argmax or Bayes decoding."""

    def __init__(
        self, L: FloatArray, divergence: Divergence, decoding: Literal["argmax", "bayes"]
    ) -> None:
        super().__init__(L)
        self.divergence, self.decoding = divergence, decoding
        kind = "exponential cones" if divergence == "KL" else "quadratic programs"
        if divergence == "KL" and decoding == "argmax":
            kind = "one multiplier"
        self.name = f"{kind}, {decoding} decoding"
        # H stays the same if losses and ε are divided by one number; a power of two is exact
        size = float(np.abs(L).max(initial=0.0))
        self.unit = math.ldexp(1.0, min(math.frexp(size)[1], 1023)) if size > 0 else 1.0
        self._scaled = L / self.unit
        self._orders: dict[int, FloatArray] = {}
        self._rows: dict[int, set[int]] = {}  # order constraints that mattered, by j
        self._inners: dict[int, FloatArray] = {}
        self._references: dict[Pair, DivergenceProof] = {}

    @cached_property
    def exact(self) -> ExactDistributions:
        surrogate = "log" if self.divergence == "KL" else "sparsemax"
        return ExactDistributions(Problem(surrogate, self.decoding, self.L.tolist()))

    def order(self, j: int) -> FloatArray:
        """A with A p ≤ 0 iff j is decoded from p (ties included), (k − 1, m)."""
        if j not in self._orders:
            L = self._scaled
            rows = np.eye(len(L)) - np.eye(len(L))[j] if self.decoding == "argmax" else L[j] - L
            self._orders[j] = np.delete(rows, j, axis=0)
        return self._orders[j]

    def gap(self, i: int, j: int) -> FloatArray:
        """L_j − L_i."""
        return np.asarray(self._scaled[j] - self._scaled[i])

    @cached_property
    def limits(self) -> FloatArray:
        """As for all pairs, but −inf for labels j that no scores predict."""
        limits = super().limits
        for j in range(len(self.L)):
            if self.exact.reach(j).inner is None:
                limits[:, j] = -np.inf
        return limits

    def quick_lower(self, i: int, j: int, eps: float) -> float:
        """Bayes decoding: gap·q ≥ ε and gap·p ≤ 0, so gap·(q − p) ≥ ε.

        KL: the two distributions on the largest and the least gap, as exp is convex. Squares:
        Cauchy–Schwarz.
        """
        gap, eps = self.gap(i, j), eps / self.unit
        if self.decoding == "argmax":
            return 0.0
        if self.divergence == "KL":
            top, bottom = float(gap.max()), min(float(gap.min()), 0.0)
            q, p = (eps - bottom) / (top - bottom), -bottom / (top - bottom)
            divergence = scipy.special.kl_div(np.array([q, 1 - q]), np.array([p, 1 - p])).sum()
            return float(divergence) * (1 - 1e-12) if math.isfinite(divergence) else 0.0
        centered = gap - gap.mean()
        return 0.5 * eps**2 / float(centered @ centered) * (1 - ROUNDING)

    # --- one pair ---

    def solve(self, i: int, j: int, eps: float, incumbent: float) -> DivergenceProof:
        eps = eps / self.unit
        if self.divergence == "KL" and self.decoding == "argmax":
            q, p, w, nu, X = tilted_argmax(self.gap(i, j), j, eps)
            return self._proof(i, j, eps, q, p, w, nu, np.array([X]))
        found = self._carried(i, j, eps)
        if found is None or not _conclusive(found, incumbent):
            other = self._sharpened(self._solved(i, j, eps, incumbent), i, j, incumbent)
            found = other if found is None else _tighter(found, other)
        return found

    def _proof(self, i: int, j: int, eps: float, *points: Any) -> DivergenceProof:
        return DivergenceProof(self.divergence, self.order(j), self.gap(i, j), eps, *points)

    def _solved(self, i: int, j: int, eps: float, incumbent: float) -> DivergenceProof:
        """From the interior-point solver."""
        order, gap = self.order(j), self.gap(i, j)
        limit, tight = float(gap.max()), self._tight(i, j, eps)
        # at the largest ε there is no interior point: only the true labels of largest gap remain
        columns = gap >= (limit * (1 - 1e-12) if tight else -np.inf)
        q, p, w, nu = self._generated(i, j, eps, columns, incumbent)
        raw_p, raw_z = p, q - p  # where the dual point is stationary, decoded to j or not yet
        p = self._decoded(p, j, order)
        q = distribution_with_gap(q, gap, eps, self._dominated(p, gap, eps))
        if tight:  # the multiplier that makes every other true label too expensive
            below = gap[~columns]
            nu = NEGLIGIBLE_LOG / max(limit - float(below.max()), 1e-9) if len(below) else 0.0
        if self.divergence == "KL":
            tilted = np.exp(np.minimum(nu * (gap - eps), 700.0))
            free = np.array([float((p if tight else np.maximum(raw_p, 0.0)) @ tilted)])
        else:
            free = q - p if tight else raw_z
            nu = nu if not tight else hull_slope(gap, free, eps)
        return self._proof(i, j, eps, q, p, w, nu, free)

    def _tight(self, i: int, j: int, eps: float) -> bool:
        return bool(eps >= float(self.gap(i, j).max()) * (1 - 1e-12))

    def _generated(
        self, i: int, j: int, eps: float, columns: np.ndarray, incumbent: float
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """q, p, w, ν of the conic program, order constraints added while they are violated."""
        order, gap, tight = self.order(j), self.gap(i, j), self._tight(i, j, eps)
        rows = self._rows.setdefault(j, set())
        if len(order) <= ALL_ROWS:
            rows.update(range(len(order)))
        else:
            rows.add(i - (i > j))
        while True:
            used = np.array(sorted(rows), dtype=np.int64)
            q, p, found, nu = solve_pair(self.divergence, order[used], gap, eps, columns, tight)
            w = np.zeros(len(order))
            w[used] = found
            violated = order @ p
            violated[used] = -np.inf
            worst = np.argsort(-violated)[:NEW_ROWS]
            worst = worst[violated[worst] > 0.1 * FEASIBLE]
            if len(worst) == 0:
                return q, p, w, nu
            if math.isfinite(incumbent) and not tight:
                free = q - p
                if self.divergence == "KL":
                    tilted = np.exp(np.minimum(nu * (gap - eps), 700.0))
                    free = np.array([float(p @ tilted)])
                if self._proof(i, j, eps, q, p, w, nu, free).lower > incumbent:
                    return q, p, w, nu
            rows.update(worst.tolist())

    def _dominated(self, p: FloatArray, gap: FloatArray, eps: float) -> np.ndarray:
        """True labels that q may have: for KL those with p > 0, if they leave q feasible."""
        positive, every = p > 0, np.ones(len(p), dtype=bool)
        if self.divergence == "squares" or not positive.any():
            return every
        return positive if gap[positive].max() >= eps else every

    def _decoded(self, p: FloatArray, j: int, order: FloatArray) -> FloatArray:
        """Nearest distribution that decodes to j: toward one that does so by a margin."""
        p = np.maximum(p, 0.0)
        p = p / p.sum() if p.sum() > 0 else np.full(len(p), 1 / len(p))
        if self.decoding == "argmax":
            p[j] = p.max()
            return p / p.sum()
        excess, inner = order @ p, self._inner(j)
        pulls = order @ inner
        wrong = (excess > 0) & (pulls < 0)
        if not wrong.any():
            return p  # no interior: exact numbers are found later
        move = float((excess[wrong] / (excess[wrong] - pulls[wrong])).max()) * (1 + 1e-12)
        p = (1 - min(move, 1.0)) * p + min(move, 1.0) * inner
        return p / p.sum()

    def _inner(self, j: int) -> FloatArray:
        if j not in self._inners:
            inner = self.exact.reach(j).inner
            assert inner is not None
            self._inners[j] = np.array([float(x / sum(inner)) for x in inner])
        return self._inners[j]

    # --- more digits ---

    def _carried(self, i: int, j: int, eps: float) -> DivergenceProof | None:
        """For small ε: the solution at a larger one, whose multipliers shrink like ε."""
        larger = SMALL * float(self.gap(i, j).max())
        if eps >= larger:
            return None
        if (i, j) not in self._references:
            start = self._solved(i, j, larger, math.inf)
            self._references[i, j] = self._sharpened(start, i, j, math.inf)
        known, share = self._references[i, j], eps / larger
        p, w, nu = known.estimate, known.w * share, known.nu * share
        q = p + share * (known.distribution - p)
        free = known.free * share
        if self.divergence == "KL":
            free = np.array([float(p @ np.exp(nu * (known.gap - eps)))])
        return self._sharpened(self._proof(i, j, eps, q, p, w, nu, free), i, j, math.inf)

    def _sharpened(
        self, start: DivergenceProof, i: int, j: int, incumbent: float
    ) -> DivergenceProof:
        """The optimality conditions, for several guesses of what is active."""
        best = start
        if _conclusive(best, incumbent) or (
            self.divergence == "squares" and self._tight(i, j, start.eps)
        ):
            return best
        tried: set[object] = set()
        for first in self._guesses(start, i, j):
            conditions: Conditions | None = first
            for _ in range(REVISIONS):
                if conditions is None or conditions.guess() in tried:
                    break
                tried.add(conditions.guess())
                found = conditions.solve()
                if found is None:
                    break
                best = _tighter(best, self._recomputed(found, start, i, j))
                if _conclusive(best, incumbent):
                    return best
                conditions = found.next
        return best

    def _recomputed(
        self, found: Stationary, start: DivergenceProof, i: int, j: int
    ) -> DivergenceProof:
        """The bounds of a stationary point, the lower one exactly."""
        p = self._decoded(found.estimate, j, start.order)
        allowed = self._dominated(p, start.gap, start.eps)
        q = distribution_with_gap(found.distribution, start.gap, start.eps, allowed)
        proof = self._proof(i, j, start.eps, q, p, found.w, found.nu, found.free)
        proof.sharp = found.exact
        try:
            entry = self._entry((i, j), proof)
            bound = self.exact.problem.bound(i, j, Fraction(start.eps * self.unit), entry)
        except Refused:
            bound = Fraction(0)
        proof.lower = down(max(bound, Fraction(0)))
        return proof

    def _guesses(self, start: DivergenceProof, i: int, j: int) -> Iterator[Conditions]:
        scale = float(start.w.max(initial=0.0))
        common = start.order, start.gap, start.eps
        for threshold, share in GUESSES:
            active = np.flatnonzero(start.w > share * scale) if scale > 0 else np.arange(0)
            of_p = np.flatnonzero(start.estimate > threshold)
            if self.divergence == "KL":
                x, free = (
                    math.log(max(float(start.free[0]), 1e-300)),
                    not self._tight(i, j, start.eps),
                )
                yield KLConditions(
                    *common, active, start.estimate, of_p, start.w, start.nu, x, free
                )
            else:
                of_q = np.flatnonzero(start.distribution > threshold)
                yield SquaredConditions(
                    *common,
                    active,
                    start.distribution,
                    start.estimate,
                    of_q,
                    of_p,
                    start.w,
                    start.nu,
                )

    # --- the consistency level ---

    @cached_property
    def witness(self) -> Witness:
        """H vanishes iff p = q is feasible: max (L_j − L_i)q with q_j largest."""
        best = Witness(0.0, None, None)
        if self.decoding == "bayes":
            return best  # A q ≤ 0 means that j is optimal
        for i, j in np.argwhere(self.limits > 0).tolist():
            if self.limits[i, j] <= best.level:
                continue
            # the distributions with q_j largest are mixtures of uniform ones on sets that contain j
            chosen = largest_mean(self.L[j] - self.L[i], j)[1]
            q = np.zeros(self.L.shape[1])
            q[chosen] = 1 / len(chosen)
            gap = self.exact.problem.gap(i, j)
            level = down(sum((gap[y] for y in chosen.tolist()), Fraction(0)) / len(chosen))
            if level > best.level + 1e-12:
                best = Witness(level, (i, j), q)
        return best

    # --- the certificate ---

    def certificate(
        self, eps: float, winner: Pair, proofs: Mapping[Pair, DivergenceProof]
    ) -> DivergenceCertificate:
        (i, j), found = winner, proofs[winner]
        p = self.exact.estimate(found.estimate, j)
        q, p = self.exact.distribution(found.distribution, p, i, j, Fraction(eps))
        entries = {pair: self._entry(pair, proof) for pair, proof in proofs.items()}
        lower = min(
            self.exact.problem.bounded(*pair, Fraction(eps), entries.get(pair))
            for pair in self.lowest(eps, proofs)
        )
        return self.exact.certificate(
            eps, down(max(lower, Fraction(0))), winner, q, p, list(entries.values())
        )

    def certificate_of_zero(self, eps: float) -> DivergenceCertificate:
        """Below the consistency level: the witness, as distribution and as estimate."""
        witness = self.witness
        assert witness.pair is not None
        assert witness.distribution is not None
        q = [Fraction(int(x > 0)) for x in witness.distribution.tolist()]
        return self.exact.certificate(eps, 0.0, witness.pair, q, q, [])

    def _entry(self, pair: Pair, proof: DivergenceProof) -> dict[str, Any]:
        """The multipliers of a pair as plain data, for losses as they are given."""
        unit = Fraction(self.unit)
        used = np.flatnonzero(proof.w > 0).tolist()
        nu, w = Fraction(max(proof.nu, 0.0)), [(n, Fraction(float(proof.w[n]))) for n in used]
        if proof.sharp is not None:
            nu, w = proof.sharp["nu"], proof.sharp["w"]
        found: dict[str, Any] = {"pair": list(pair), "nu": plain(nu / unit)}
        if self.divergence == "KL" and self.decoding == "argmax":
            return found
        rows = Fraction(1) if self.decoding == "argmax" else unit  # rows of A have the loss's unit
        labels = np.delete(np.arange(len(self.L)), pair[1]).tolist()
        found["w"] = [[labels[n], plain(weight / rows)] for n, weight in w]
        name = "X" if self.divergence == "KL" else "z"
        if proof.sharp is not None:
            return {**found, name: proof.sharp[name]}
        return {**found, name: proof.free.tolist() if name == "z" else float(proof.free[0])}


def _conclusive(proof: DivergenceProof, incumbent: float) -> bool:
    tight = math.isfinite(proof.upper) and proof.upper - proof.lower <= ENOUGH * proof.upper
    return tight or proof.lower > incumbent


def _tighter(one: DivergenceProof, other: DivergenceProof) -> DivergenceProof:
    """The distributions of the lower upper bound with the multipliers of the higher lower bound."""
    primal = one if one.upper <= other.upper else other
    dual = one if one.lower >= other.lower else other
    found = DivergenceProof(
        one.divergence, one.order, one.gap, one.eps,
        primal.distribution, primal.estimate, dual.w, dual.nu, dual.free,
    )  # fmt: skip
    found.sharp, found.lower = dual.sharp, dual.lower
    return found
