"""Surrogates that estimate the law of the truth: log loss (CRF) and sparsemax.

With one score per truth the surrogate's excess is a divergence D(q, p) between the law q and the
law p that the scores stand for: KL(q‖p) for the log loss, ½‖q − p‖² for sparsemax. Decoding is a
linear condition on p, written A p ≤ 0: argmax has rows e_c − e_j (truths name predictions), Bayes
decoding argmin_c (Lp)_c has rows L_j − L_c. So

    H_ij(ε) = min D(q, p)   s.t.   A p ≤ 0,   (L_j − L_i) q ≥ ε,   p, q in the simplex,

a convex program. Dual points, for any w ≥ 0, ν ≥ 0, a = wᵀA and gap = L_j − L_i:

    KL       1 − log X + min_y [a_y − exp(ν(gap_y − ε))/X]              for any X > 0,
    squares  (νε + min_y [a − z]_y + min_y [z − ν gap]_y)₊² / 2‖z‖²     for any z.

The first minimises over q exactly (a log-partition function) and takes a tangent of −log; the
second is Fenchel's inequality at the best scale. KL with argmax decoding needs no solver (module
`law_argmax`); else there is one conic program per pair, whose order constraints are generated where
they are many: the program with some of them bounds H_ij from below all the same.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal

import clarabel
import numpy as np
import scipy  # its submodules are imported on use

from consistruct.calibration.certificate import hull_slope
from consistruct.calibration.lp import minimise, simplex_row
from consistruct.calibration.nonquadratic.conic import solve_conic
from consistruct.calibration.nonquadratic.law_argmax import largest_mean, tilted_argmax
from consistruct.calibration.nonquadratic.law_polish import newton_dual
from consistruct.calibration.nonquadratic.law_proof import FEASIBLE, ROUNDING, Divergence, LawProof
from consistruct.calibration.nonquadratic.pairs import (
    PairSolver,
    Witness,
    law_with_gap,
)
from consistruct.exceptions import CertificateError
from consistruct.protocols import FloatArray

__all__ = ["LawSolver"]

ENOUGH = 1e-9  # relative width after which nothing is polished
NEGLIGIBLE_LOG = 27.0  # e^−27 of a term is rounding
STRICT = 1e-9  # margin by which a label has to win to count as predictable
ALL_ROWS = 24  # order constraints up to which none is left out at first
NEW_ROWS = 8  # the most violated ones that are added at a time


class LawSolver(PairSolver):
    """Log loss or sparsemax with one score per truth; argmax or Bayes decoding."""

    def __init__(
        self, L: FloatArray, divergence: Divergence, decoding: Literal["argmax", "bayes"]
    ) -> None:
        super().__init__(L)
        self.divergence, self.decoding = divergence, decoding
        kind = "exponential cones" if divergence == "KL" else "quadratic programs"
        if divergence == "KL" and decoding == "argmax":
            kind = "one multiplier"
        self.name = f"{kind}, {decoding} decoding"
        self._orders: dict[int, FloatArray] = {}
        self._rows: dict[int, set[int]] = {}  # order constraints that mattered, by j
        self._supports: dict[int, tuple[np.ndarray, FloatArray]] = {}

    def order(self, j: int) -> FloatArray:
        """A with A p ≤ 0 iff j is decoded from p (ties included), (k − 1, m)."""
        if j not in self._orders:
            self._orders[j] = self._make_order(j)
        return self._orders[j]

    def _make_order(self, j: int) -> FloatArray:
        if self.decoding == "argmax":
            rows = np.eye(len(self.L)) - np.eye(len(self.L))[j]
        else:
            rows = self.L[j] - self.L
        return np.delete(rows, j, axis=0)

    @cached_property
    def limits(self) -> FloatArray:
        limits = np.full((len(self.L), len(self.L)), -np.inf)
        for j in range(len(self.L)):
            if not self._predictable(j):
                continue
            support = self._support(j)[0]
            gaps = (self.L[j] - self.L)[:, support]
            limits[:, j] = gaps.max(axis=1)
            limits[j, j] = -np.inf
        return limits

    def _predictable(self, j: int) -> bool:
        """Whether some p decodes to j though ties go to the smallest index: a linear program."""
        if self.decoding == "argmax" or j == 0:
            return self.decoding == "argmax" or self._decodes(j)
        k, m = self.L.shape
        rows = np.column_stack([self.order(j), (np.arange(k - 1) < j).astype(float)])
        A_eq, b_eq = np.append(np.ones(m), 0.0)[None], np.ones(1)
        bounds: list[tuple[float | None, float | None]] = [(0.0, None)] * m + [(None, 1.0)]
        found = minimise(
            np.append(np.zeros(m), -1.0),
            A_ub=rows, b_ub=np.zeros(k - 1), A_eq=A_eq, b_eq=b_eq, bounds=bounds,
        )  # fmt: skip
        return found.feasible and -found.value > STRICT * max(1.0, float(self.L.max()))

    def _decodes(self, j: int) -> bool:
        A_eq, b_eq = simplex_row(self.L.shape[1])
        order = self.order(j)
        return minimise(
            np.zeros(self.L.shape[1]), A_ub=order, b_ub=np.zeros(len(order)), A_eq=A_eq, b_eq=b_eq
        ).feasible

    def _support(self, j: int) -> tuple[np.ndarray, FloatArray]:
        if j not in self._supports:
            self._supports[j] = self._find_support(j)
        return self._supports[j]

    def _find_support(self, j: int) -> tuple[np.ndarray, FloatArray]:
        """Truths that a law decoded to j may have, and the w ≥ 0 that excludes all others.

        wᵀA ≥ 0 with (wᵀA)_y > 0 forces p_y = 0, and then q_y = 0 if KL(q‖p) is finite. This
        happens when j wins ties only, on a face of the simplex.
        """
        order = self.order(j)
        m = self.L.shape[1]
        everything, nothing = np.ones(m, dtype=bool), np.zeros(len(order))
        if self.decoding == "argmax" or self.divergence == "squares" or len(order) == 0:
            return everything, nothing
        # max Σ r_y, r ≤ wᵀA, 0 ≤ r ≤ 1, w ≥ 0; the cone is scale-free
        bounds: list[tuple[float | None, float | None]] = [(0.0, None)] * len(order)
        found = minimise(
            np.concatenate([nothing, -np.ones(m)]),
            A_ub=np.hstack([-order.T, np.eye(m)]),
            b_ub=np.zeros(m),
            bounds=bounds + [(0.0, 1.0)] * m,
        )
        w, r = np.maximum(found.x[: len(order)], 0.0), found.x[len(order) :]
        a = w @ order
        if (a < -1e-9).any():
            raise CertificateError("a linear program returned a ray that excludes no truth")
        return (r < 0.5), w

    def quick_lower(self, i: int, j: int, eps: float) -> float:
        """Bayes decoding: gap·q ≥ ε and gap·p ≤ 0, so gap·(q − p) ≥ ε.

        KL: the two laws on the largest and the least gap, as exp is convex. Squares:
        Cauchy–Schwarz.
        """
        gap = self.L[j] - self.L[i]
        if self.decoding == "argmax":
            return 0.0
        if self.divergence == "KL":
            top, bottom = float(gap.max()), min(float(gap.min()), 0.0)
            q, p = (eps - bottom) / (top - bottom), -bottom / (top - bottom)
            divergence = scipy.special.kl_div(np.array([q, 1 - q]), np.array([p, 1 - p])).sum()
            return float(divergence) * (1 - 1e-12) if math.isfinite(divergence) else 0.0
        centred = gap - gap.mean()
        return 0.5 * eps**2 / float(centred @ centred) * (1 - ROUNDING)

    def solve(self, i: int, j: int, eps: float, incumbent: float) -> LawProof:
        order, gap = self.order(j), self.L[j] - self.L[i]
        support, ray = self._support(j)
        limit = float(gap[support].max())
        tight = eps >= limit * (1 - 1e-12)
        # at the largest ε there is no interior point: only the truths of largest gap remain
        columns = support & (gap >= limit * (1 - 1e-12)) if tight else support
        if self.divergence == "KL" and self.decoding == "argmax":
            q, p, w, nu, X = tilted_argmax(gap, j, eps)
            return LawProof("KL", order, gap, eps, q, p, w, nu, np.array([X]))
        q, p, w, nu = self._generated(i, j, eps, columns, support, tight, incumbent)
        raw_p, raw_z = p, q - p  # where the dual point is stationary, decoded to j or not yet
        p = self._decoded(p, j, order, support)
        q = law_with_gap(q, gap, eps, self._dominated(support, p, gap, eps))
        if tight:  # the multiplier that makes every other truth too expensive
            below = gap[support & ~columns]
            nu = NEGLIGIBLE_LOG / max(limit - float(below.max()), 1e-9) if len(below) else 0.0
        if self.divergence == "KL":
            tilted = np.exp(np.minimum(nu * (gap - eps), 700.0))
            free = np.array([float((p if tight else np.maximum(raw_p, 0.0)) @ tilted)])
            w = w + ray * _ray_multiple(ray @ order, w @ order, tilted / free[0], support)
        else:
            free = q - p if tight else raw_z
            nu = nu if not tight else hull_slope(gap, free, eps)
        proof = LawProof(self.divergence, order, gap, eps, q, p, w, nu, free)
        if self.divergence == "KL" and not proof.upper - proof.lower <= ENOUGH * proof.upper:
            proof = self._polish(proof, j, support, tight)
        return proof

    def _generated(
        self,
        i: int,
        j: int,
        eps: float,
        columns: np.ndarray,
        support: np.ndarray,
        tight: bool,
        incumbent: float,
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """q, p, w, ν of the conic program, order constraints added while they are violated."""
        order, gap = self.order(j), self.L[j] - self.L[i]
        scale = max(1.0, float(np.abs(order).max(initial=0.0)))
        rows = self._rows.setdefault(j, set())
        if len(order) <= ALL_ROWS:
            rows.update(range(len(order)))
        else:
            rows.add(i - (i > j))
        while True:
            used = np.array(sorted(rows), dtype=np.int64)
            q, p, found, nu = self._conic(order[used], gap, eps, columns, support, tight)
            w = np.zeros(len(order))
            w[used] = found
            violated = order @ p
            violated[used] = -np.inf
            worst = np.argsort(-violated)[:NEW_ROWS]
            worst = worst[violated[worst] > 0.1 * FEASIBLE * scale]
            if len(worst) == 0:
                return q, p, w, nu
            if math.isfinite(incumbent) and not tight:
                free = q - p
                if self.divergence == "KL":
                    tilted = np.exp(np.minimum(nu * (gap - eps), 700.0))
                    free = np.array([float(p @ tilted)])
                if LawProof(self.divergence, order, gap, eps, q, p, w, nu, free).lower > incumbent:
                    return q, p, w, nu
            rows.update(worst.tolist())

    def _dominated(
        self, support: np.ndarray, p: FloatArray, gap: FloatArray, eps: float
    ) -> np.ndarray:
        """Truths that q may have: for KL those with p > 0, if they leave q feasible."""
        if self.divergence == "squares":
            return support
        positive = support & (p > 0)
        return positive if positive.any() and gap[positive].max() >= eps else support

    def _polish(self, start: LawProof, j: int, support: np.ndarray, tight: bool) -> LawProof:
        """Newton on the optimality conditions, for several guesses of what is active."""
        best = start
        for threshold in (1e-4, 1e-6, 1e-8):
            S = np.flatnonzero(support & (start.estimate > threshold))
            scale = float(start.w.max(initial=0.0))
            W = np.flatnonzero(start.w > threshold * scale) if scale > 0 else np.arange(0)
            x = math.log(float(start.free[0]))
            found = newton_dual(
                start.order, start.gap, start.eps, start.estimate, start.w, start.nu, x,
                (S, W), not tight,
            )  # fmt: skip
            if found is None:
                continue
            p, w, nu, x = found
            p = self._decoded(p, j, start.order, support)
            q = p * np.exp(np.clip(nu * (start.gap - start.eps) - x, -700.0, 700.0))
            allowed = self._dominated(support, p, start.gap, start.eps)
            q = law_with_gap(q, start.gap, start.eps, allowed)
            free = np.array([math.exp(min(max(x, -700.0), 700.0))])
            polished = LawProof(
                "KL", start.order, start.gap, start.eps, q, p, np.maximum(w, 0.0), nu, free
            )
            best = _tighter(best, polished)
            if best.upper - best.lower <= ENOUGH * best.upper:
                break
        return best

    def _conic(
        self,
        order: FloatArray,
        gap: FloatArray,
        eps: float,
        columns: np.ndarray,
        support: np.ndarray,
        tight: bool,
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """q, p, w, ν from the interior-point solver; q on `columns`, p on `support`."""
        at_q, at_p = np.flatnonzero(columns), np.flatnonzero(support)
        n_q, n_p, n_o = len(at_q), len(at_p), len(order)
        kl = self.divergence == "KL"
        n = n_q + n_p + (n_q if kl else 0)
        rows = np.zeros((2, n))
        rows[0, :n_q] = 1.0
        rows[1, n_q : n_q + n_p] = 1.0
        inequalities = np.zeros((n_o + n_q + n_p + 1, n))
        # losses of any unit: rows are scaled, and their multipliers scaled back
        units = np.maximum(np.abs(order).max(axis=1, initial=0.0), 1e-300)
        unit = max(float(np.abs(gap).max()), 1e-300)
        inequalities[:n_o, n_q : n_q + n_p] = order[:, at_p] / units[:, None]
        inequalities[n_o : n_o + n_q + n_p, : n_q + n_p] = -np.eye(n_q + n_p)
        right = np.zeros(n_o + n_q + n_p + 1)
        if not tight:
            inequalities[-1, :n_q] = -gap[at_q] / unit
            right[-1] = -eps / unit
        blocks: list[tuple[object, FloatArray, object]] = [
            (rows, np.ones(2), clarabel.ZeroConeT(2)),
            (inequalities, right, clarabel.NonnegativeConeT(len(right))),
        ]
        cost, quadratic = np.zeros(n), None
        each = np.arange(n_q)
        if kl:
            # q e^{−t/q} ≤ p  ⇔  q log(q/p) ≤ t
            cost[n_q + n_p :] = 1.0
            same = n_q + np.searchsorted(at_p, at_q)  # p of the same truth
            places = (
                np.concatenate([3 * each, 3 * each + 1, 3 * each + 2]),
                np.concatenate([n_q + n_p + each, each, same]),
            )
            signs = np.repeat([1.0, -1.0, -1.0], n_q)
            cones = scipy.sparse.csc_array((signs, places), shape=(3 * n_q, n))
            exponential = [clarabel.ExponentialConeT() for _ in range(n_q)]
            blocks.append((cones, np.zeros(3 * n_q), exponential))
        else:
            difference = np.zeros((len(gap), n))
            difference[at_q, each] = 1.0
            difference[at_p, n_q + np.arange(n_p)] = -1.0
            quadratic = np.triu(difference.T @ difference)
        found = solve_conic(cost, blocks, quadratic)
        x = found.x if found.finite else np.zeros(n)
        z = found.z if found.finite else np.zeros(2 + len(right))
        q, p = np.zeros(len(gap)), np.zeros(len(gap))
        q[at_q], p[at_p] = x[:n_q], x[n_q : n_q + n_p]
        return q, p, z[2 : 2 + n_o] / units, float(z[1 + len(right)]) / unit

    def _decoded(self, p: FloatArray, j: int, order: FloatArray, support: np.ndarray) -> FloatArray:
        """Nearest law that decodes to j: towards the law that does so by the largest margin."""
        p = np.where(support, np.maximum(p, 0.0), 0.0)
        p = p / p.sum() if p.sum() > 0 else support / support.sum()
        if self.decoding == "argmax":
            p[j] = p.max()
            return p / p.sum()
        excess = float((order @ p).max(initial=-1.0))
        if excess <= 0:
            return p
        inner, margin = self._centre(j)
        if margin <= 0:
            return p  # no interior: the check accepts what is within rounding
        move = min(1.0, excess / (excess + margin) * (1 + 1e-12))
        p = (1 - move) * p + move * inner
        return p / p.sum()

    def _centre(self, j: int) -> tuple[FloatArray, float]:
        """The law that decodes to j by the largest margin over labels of other rows."""
        order = self.order(j)
        rows = order[np.abs(order).max(axis=1) > 0]
        m = self.L.shape[1]
        found = minimise(
            np.append(np.zeros(m), -1.0),
            A_ub=np.column_stack([rows, np.ones(len(rows))]),
            b_ub=np.zeros(len(rows)),
            A_eq=np.append(np.ones(m), 0.0)[None],
            b_eq=np.ones(1),
            bounds=[(0.0, None)] * m + [(None, 1e3)],
        )
        return np.maximum(found.x[:m], 0.0), float(found.x[-1])

    @cached_property
    def witness(self) -> Witness:
        """H vanishes iff p = q is feasible: max (L_j − L_i)q with q_j largest."""
        best = Witness(0.0, None, None)
        if self.decoding == "bayes":
            return best  # A q ≤ 0 says that j is optimal
        for i, j in np.argwhere(self.limits > 0).tolist():
            if self.limits[i, j] <= best.level:
                continue
            # the laws with q_j largest are mixtures of uniform ones on sets that contain j
            chosen = largest_mean(self.L[j] - self.L[i], j)[1]
            q = np.zeros(self.L.shape[1])
            q[chosen] = 1 / len(chosen)
            level = float((self.L[j] - self.L[i]) @ q)
            if level > best.level + 1e-12:
                best = Witness(level, (i, j), q)
        return best


def _ray_multiple(ray: FloatArray, a: FloatArray, tilted: FloatArray, support: np.ndarray) -> float:
    """How often the ray must be added for truths outside the support not to matter."""
    outside = ~support & (ray > 0)
    if not outside.any():
        return 0.0
    least = float((a - tilted)[support].min())
    return max(0.0, float(((least + tilted - a)[outside] / ray[outside]).max())) * (1 + 1e-6) + 1.0


def _tighter(one: LawProof, other: LawProof) -> LawProof:
    """The laws of the lower upper bound with the multipliers of the higher lower bound."""
    primal = one if one.upper <= other.upper else other
    dual = one if one.lower >= other.lower else other
    return LawProof(
        one.divergence, one.order, one.gap, one.eps,
        primal.law, primal.estimate, dual.w, dual.nu, dual.free,
    )  # fmt: skip
