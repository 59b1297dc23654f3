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
second is Fenchel's inequality at the best scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import clarabel
import numpy as np
import scipy  # its submodules are imported on use

from consistruct.calibration.certificate import hull_slope
from consistruct.calibration.lp import minimise, simplex_row
from consistruct.calibration.nonquadratic.conic import solve_conic
from consistruct.calibration.nonquadratic.law_polish import newton_dual
from consistruct.calibration.nonquadratic.pairs import PairProof, PairSolver, Witness
from consistruct.exceptions import CertificateError
from consistruct.protocols import FloatArray

__all__ = ["Divergence", "LawSolver", "law_with_gap"]

Divergence = Literal["KL", "squares"]
ROUNDING = 2e-14
FEASIBLE = 1e-10  # allowed violation of A p ≤ 0 and of the gap, relative to the scale of the loss
ENOUGH = 1e-9  # relative width after which nothing is polished
NEGLIGIBLE_LOG = 27.0  # e^−27 of a term is rounding
STRICT = 1e-9  # margin by which a label has to win to count as predictable


@dataclass(eq=False)
class LawProof(PairProof):
    """Laws q and p from above; w, ν and the free point (X or z) from below."""

    divergence: Divergence
    order: FloatArray  # (c, m) A
    gap: FloatArray  # (m,)
    eps: float
    law: FloatArray  # (m,) q
    estimate: FloatArray  # (m,) p
    w: FloatArray  # (c,)
    nu: float
    free: FloatArray  # X of shape (1,), or z of shape (m,)

    def __post_init__(self) -> None:
        self.lower, self.upper = self.recompute()

    def recompute(self) -> tuple[float, float]:
        return self._dual(), self._primal()

    def _primal(self) -> float:
        q, p = self.law, self.estimate
        scale = max(1.0, float(np.abs(self.gap).max()), float(np.abs(self.order).max(initial=0.0)))
        laws = (q >= 0).all() and (p >= 0).all() and max(abs(q.sum() - 1), abs(p.sum() - 1)) < 1e-12
        decoded = bool((self.order @ p <= FEASIBLE * scale).all())
        if not (laws and decoded and float(self.gap @ q) >= self.eps - FEASIBLE * scale):
            return math.inf
        if self.divergence == "KL":
            # q log(q/p) − q + p ≥ 0 term by term: no cancellation between the terms
            return float(scipy.special.kl_div(q, p).sum()) * (1 + ROUNDING)
        return 0.5 * float((q - p) @ (q - p)) * (1 + ROUNDING)

    def _dual(self) -> float:
        w, nu = np.maximum(self.w, 0.0), max(self.nu, 0.0)
        a = w @ self.order
        slack = ROUNDING * (w @ np.abs(self.order))
        if self.divergence == "KL":
            X = float(self.free[0])
            if not X > 0:
                return 0.0
            tilted = np.exp(np.minimum(nu * (self.gap - self.eps), 700.0)) / X
            bound = 1 - math.log(X) + float((a - slack - tilted * (1 + ROUNDING)).min())
            return max(bound - ROUNDING * (1 + abs(math.log(X))), 0.0)
        z = self.free
        norm = float(z @ z)
        first = float((a - slack - z).min())
        height = nu * self.eps + first + float((z - nu * self.gap).min())
        height -= ROUNDING * (nu * float(np.abs(self.gap).max() + self.eps) + np.abs(z).max())
        if not (height > 0 and norm > 0):
            return 0.0
        return float(0.5 * height**2 / norm * (1 - ROUNDING))


class LawSolver(PairSolver):
    """Log loss or sparsemax with one score per truth; argmax or Bayes decoding."""

    def __init__(
        self, L: FloatArray, divergence: Divergence, decoding: Literal["argmax", "bayes"]
    ) -> None:
        super().__init__(L)
        self.divergence, self.decoding = divergence, decoding
        kind = "exponential cones" if divergence == "KL" else "quadratic programs"
        self.name = f"{kind}, {decoding} decoding"

    def order(self, j: int) -> FloatArray:
        """A with A p ≤ 0 iff j is decoded from p (ties included), (k − 1, m)."""
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

        Pinsker: KL ≥ 2 TV² with TV ≥ ε/(max gap − min gap). Squares: Cauchy–Schwarz.
        """
        gap = self.L[j] - self.L[i]
        if self.decoding == "argmax":
            return 0.0
        if self.divergence == "KL":
            return 2 * (eps / float(np.ptp(gap))) ** 2 * (1 - ROUNDING)
        centred = gap - gap.mean()
        return 0.5 * eps**2 / float(centred @ centred) * (1 - ROUNDING)

    def solve(self, i: int, j: int, eps: float, incumbent: float) -> LawProof:
        order, gap = self.order(j), self.L[j] - self.L[i]
        support, ray = self._support(j)
        limit = float(gap[support].max())
        tight = eps >= limit * (1 - 1e-12)
        # at the largest ε there is no interior point: only the truths of largest gap remain
        columns = support & (gap >= limit * (1 - 1e-12)) if tight else support
        q, p, w, nu = self._conic(order, gap, eps, columns, support, tight)
        p = self._decoded(p, j, order, support)
        q = law_with_gap(q, gap, eps, self._dominated(support, p, gap, eps))
        if tight:  # the multiplier that makes every other truth too expensive
            below = gap[support & ~columns]
            nu = NEGLIGIBLE_LOG / max(limit - float(below.max()), 1e-9) if len(below) else 0.0
        if self.divergence == "KL":
            tilted = np.exp(np.minimum(nu * (gap - eps), 700.0))
            free = np.array([float(p @ tilted)])
            w = w + ray * _ray_multiple(ray @ order, w @ order, tilted / free[0], support)
        else:
            free = q - p
            nu = nu if not tight else hull_slope(gap, free, eps)
        proof = LawProof(self.divergence, order, gap, eps, q, p, w, nu, free)
        if self.divergence == "KL" and not proof.upper - proof.lower <= ENOUGH * proof.upper:
            proof = self._polish(proof, j, support, tight)
        return proof

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
        rows = scipy.sparse.lil_matrix((2, n))
        rows[0, :n_q] = 1.0
        rows[1, n_q : n_q + n_p] = 1.0
        inequalities = scipy.sparse.lil_matrix((n_o + n_q + n_p + 1, n))
        inequalities[:n_o, n_q : n_q + n_p] = order[:, at_p]
        inequalities[n_o : n_o + n_q + n_p, : n_q + n_p] = -np.eye(n_q + n_p)
        right = np.zeros(n_o + n_q + n_p + 1)
        if not tight:
            inequalities[-1, :n_q] = -gap[at_q]
            right[-1] = -eps
        blocks: list[tuple[object, FloatArray, object]] = [
            (rows, np.ones(2), clarabel.ZeroConeT(2)),
            (inequalities, right, clarabel.NonnegativeConeT(len(right))),
        ]
        cost, quadratic = np.zeros(n), None
        where = {int(y): n_q + position for position, y in enumerate(at_p)}
        if kl:
            # q e^{−t/q} ≤ p  ⇔  q log(q/p) ≤ t
            cost[n_q + n_p :] = 1.0
            cones = scipy.sparse.lil_matrix((3 * n_q, n))
            for position, y in enumerate(at_q.tolist()):
                cones[3 * position, n_q + n_p + position] = 1.0
                cones[3 * position + 1, position] = -1.0
                cones[3 * position + 2, where[y]] = -1.0
            exponential = [clarabel.ExponentialConeT() for _ in range(n_q)]
            blocks.append((cones, np.zeros(3 * n_q), exponential))
        else:
            difference = scipy.sparse.lil_matrix((len(gap), n))
            for position, y in enumerate(at_q.tolist()):
                difference[y, position] = 1.0
            for y, position in where.items():
                difference[y, position] = -1.0
            quadratic = scipy.sparse.triu(difference.T @ difference)
        found = solve_conic(cost, blocks, quadratic)
        x = found.x if found.finite else np.zeros(n)
        z = found.z if found.finite else np.zeros(2 + len(right))
        q, p = np.zeros(len(gap)), np.zeros(len(gap))
        q[at_q], p[at_p] = x[:n_q], x[n_q : n_q + n_p]
        return q, p, z[2 : 2 + n_o], float(z[1 + len(right)])

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
        """H vanishes iff p = q is feasible: max (L_j − L_i)q with A q ≤ 0, a linear program."""
        best = Witness(0.0, None, None)
        if self.decoding == "bayes":
            return best  # A q ≤ 0 says that j is optimal
        A_eq, b_eq = simplex_row(self.L.shape[1])
        for i, j in np.argwhere(self.limits > 0).tolist():
            if self.limits[i, j] <= best.level:
                continue
            order = self.order(j)
            found = minimise(
                self.L[i] - self.L[j], A_ub=order, b_ub=np.zeros(len(order)), A_eq=A_eq, b_eq=b_eq
            )
            if not found.feasible:
                continue
            q = self._decoded(found.x, j, order, np.ones(len(found.x), dtype=bool))
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


def law_with_gap(q: FloatArray, gap: FloatArray, eps: float, allowed: np.ndarray) -> FloatArray:
    """Cut, normalise, move towards the truth of largest gap until gap·q ≥ ε."""
    q = np.where(allowed & (q > 1e-15), q, 0.0)
    q = q / q.sum() if q.sum() > 0 else allowed / allowed.sum()
    short = eps - float(gap @ q)
    if short > 0:
        top = int(np.where(allowed, gap, -np.inf).argmax())
        room = float(gap[top] - gap @ q)
        move = min(1.0, short / room) if room > 0 else 1.0
        q = (1 - move) * q
        q[top] += move
    return q / q.sum()
