"""Exponential label sets without enumeration: row and column generation with two oracles.

For one pair (i, j) the order constraints are separated by the decoder (the best label under the
current scores is the most violated one) and true labels are priced by linear optimization over
conv{u_y}. Both oracles are exact, so the bounds hold for all labels, listed or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consistruct.calibration.methods.explicit.pair_solver import solve_pair
from consistruct.calibration.problem.listed import PairProblem
from consistruct.calibration.problem.pair_bounds import ROUNDING
from consistruct.exceptions import CapabilityError
from consistruct.losses.base import Loss, dense_target
from consistruct.protocols import FloatArray, LabelArray
from consistruct.structures import Orthonormalized, Structure

__all__ = ["OraclePair", "OracleSolution"]

MAX_ROUNDS = 200
CANCELLATION = 1e-6  # share of an upper bound that may be rounding


@dataclass(frozen=True, eq=False)
class OracleSolution:
    """Bounds on H_ij(ε) over all labels, with the few labels and true labels that prove them."""

    eps: float
    lower: float
    upper: float
    true_labels: LabelArray  # (m, *shape)
    distribution: FloatArray  # (m,)
    theta: FloatArray  # (width,) scores that make j win
    rivals: LabelArray  # (c, *shape)
    multipliers: FloatArray  # (c,)
    gap_multiplier: float
    rounds: int


class OraclePair:
    """The pair problem of two labels for scores that express the loss."""

    def __init__(self, loss: Loss, space: Structure, i: LabelArray, j: LabelArray) -> None:
        if not space.decoding_is_exact:
            raise CapabilityError(
                space, "exact decoder", "the oracle method", "use bounds, or fewer labels"
            )
        self.loss, self.space = loss, space
        self.basis = Orthonormalized(space)
        self.into = space.coordinates(loss.score_space)
        self.i, self.j = i[None], j[None]
        self._embedded_i, self._embedded_j = space.embed(self.i), space.embed(self.j)

    def _targets(self, true_labels: LabelArray) -> FloatArray:
        """u_y in the coordinates of the score space, (m, width)."""
        return self.into(dense_target(self.loss.target(true_labels)))

    def _worst_true_label(self, direction: FloatArray) -> tuple[float, LabelArray]:
        """max_y ⟨direction, u_y⟩ over all true labels."""
        values, true_labels = self.loss.worst_true_label(self.into.transpose(direction[None]))
        return float(values[0]), true_labels

    @property
    def max_eps(self) -> float:
        """max_y (L_j − L_i)_y."""
        return self._worst_true_label((self._embedded_j - self._embedded_i)[0])[0]

    def solve(
        self, eps: float, *, tolerance: float = 1e-7, cutoff: float = math.inf
    ) -> OracleSolution | None:
        """H_ij(ε) within a relative width of `tolerance`, or the best bounds after many rounds.

        None where the pair is infeasible. Stops early once H_ij(ε) is known to exceed `cutoff`.
        """
        toward_j = (self._embedded_j - self._embedded_i)[0]
        limit, far = self._worst_true_label(toward_j)
        if eps > limit * (1 + 1e-14):
            return None
        true_labels = np.concatenate([far, self._as_true_labels()])
        rivals = self.i
        lower, best, polish = 0.0, None, False
        for rounds in range(1, MAX_ROUNDS + 1):
            problem, rows = self._master(rivals, true_labels)
            solution = solve_pair(problem, min(eps, problem.max_eps), polish=polish)
            assert solution is not None
            targets = self._targets(true_labels)
            direction = solution.w @ rows  # Σ w_c (F_c − F_j), in the coordinates of θ
            nu = solution.line.nu
            value, new_true_label = self._worst_true_label(direction + nu * toward_j)
            height = nu * eps - value - ROUNDING * (abs(value) + nu * eps)
            norm = float(np.linalg.norm(solution.w @ problem.order)) * (1 + ROUNDING)
            if height > 0 and norm > 0:
                lower = max(lower, 0.5 * (height / norm) ** 2)
            theta, rival = self._scores(solution.v, problem, rows, targets, solution.q)
            upper = self._upper(theta, targets, solution.q)
            # where floats cannot tell, the last round is the best one
            if best is None or upper < best.upper or math.isinf(best.upper):
                best = OracleSolution(
                    eps,
                    lower,
                    upper,
                    true_labels,
                    solution.q,
                    theta,
                    rivals,
                    solution.w,
                    nu,
                    rounds,
                )
            done = best.upper < math.inf and best.upper - lower <= tolerance * best.upper
            if done or lower > cutoff:
                break
            grown = _append(rivals, rival), _append(true_labels, new_true_label)
            if len(grown[0]) == len(rivals) and len(grown[1]) == len(true_labels):
                if polish:
                    break
                polish = True  # no label is missing, only digits are
            rivals, true_labels = grown
        assert best is not None
        return OracleSolution(
            eps, min(lower, best.upper), best.upper, best.true_labels,
            best.distribution, best.theta,
            best.rivals, best.multipliers, best.gap_multiplier, rounds,
        )  # fmt: skip

    def _as_true_labels(self) -> LabelArray:
        """i and j as true labels where they are some; they start the column generation well."""
        if self.loss.true_labels.size != self.loss.n_labels:
            return self._worst_true_label((self._embedded_i - self._embedded_j)[0])[1]
        return np.concatenate([self.i, self.j])

    def _master(
        self, rivals: LabelArray, true_labels: LabelArray
    ) -> tuple[PairProblem, FloatArray]:
        rows = self.space.embed(rivals) - self._embedded_j  # (c, width)
        order = self.basis.basis.transpose(rows)  # orthonormal coordinates, (c, rank)
        if order.shape[1] > len(order):
            order = np.asarray(np.linalg.qr(order.T, mode="r"), dtype=np.float64).T
        targets = self._targets(true_labels)
        problem = PairProblem(
            order=order,
            order_rhs=rows @ targets.T,
            gap=targets @ (self._embedded_j - self._embedded_i)[0],
            row_cells=tuple(np.arange(len(rivals))[:, None]),
            column_cells=tuple(np.arange(len(true_labels))[:, None]),
        )
        return problem, rows

    def _scores(
        self,
        v: FloatArray,
        problem: PairProblem,
        rows: FloatArray,
        targets: FloatArray,
        q: FloatArray,
    ) -> tuple[FloatArray, LabelArray]:
        """θ = v − Uq made feasible for every label where it nearly is; the most violated label."""
        # v lies in the span of the constraints: v = −Σ a_c (F̃_c − F̃_j)
        weights = np.linalg.lstsq(problem.order.T, v, rcond=None)[0]
        in_basis = self.basis.basis.transpose(rows)
        theta = self.basis.basis((weights @ in_basis)[None])[0] - q @ targets
        rival = self.space.decode(theta[None])
        violation = float(((self.space.embed(rival) - self._embedded_j) @ theta)[0])
        if violation > 0:
            # toward F_j the label j gains on all others (embeddings of equal length): raise it by
            # what is missing, and by more where others are nearly parallel
            for step in (1.0, 8.0, 64.0, 512.0):
                raised = theta + self._embedded_j[0] * (step * violation)
                winner = self.space.decode(raised[None])
                left = float(((self.space.embed(winner) - self._embedded_j) @ raised)[0])
                if left <= 1e-12:
                    return raised, rival
        return theta, rival

    def _upper(self, theta: FloatArray, targets: FloatArray, q: FloatArray) -> float:
        """½‖θ + Uq‖²_Ḡ if j wins under θ, +inf otherwise."""
        winner = self.space.decode(theta[None])
        ahead = float(((self.space.embed(winner) - self._embedded_j) @ theta)[0])
        scale = max(1.0, float(np.abs(theta).max()))
        if ahead > 1e-11 * scale:
            return math.inf
        excess, gram = (theta + q @ targets)[None], self.space.gram()
        value = 0.5 * float((excess * gram.apply(excess)).sum())
        # In a badly conditioned basis (set sizes of F_β) parameters of size 10^7 cancel: where
        # rounding could hide the value there is no bound.
        size = np.abs(excess)
        if ROUNDING * float((size * np.abs(gram.apply(size))).sum()) > CANCELLATION * value:
            return math.inf
        return value * (1 + ROUNDING)


def _append(labels: LabelArray, new: LabelArray) -> LabelArray:
    """Add labels that are not there yet."""
    known = {label.tobytes() for label in labels}
    fresh = [label for label in new if label.tobytes() not in known]
    return np.concatenate([labels, np.array(fresh)]) if fresh else labels
