"""Hamming loss with binary chain scores (parts and neighbors), any length.

Code the states ±1 with the predicted label j all ones; i differs from j on the parts D and agrees
on U. j wins iff a flow z along the chain is bounded by the edge scores (max-flow, min-cut), so

    8T²·H(ε) = min Σ_{t<T} z_t² + Σ_t (z_{t−1} − z_t − x_t)₊²,   z_0 = z_T = 0,
               x_t = 1 on U, x_t = −y_t on D, −1 ≤ y ≤ 1, Σ_D y_t ≥ εT,   over patterns (D, U).

Upper end: any flow z and any such y, for a pattern whose agreeing parts are spread evenly.
Lower end: with a multiplier ν ≥ 0 for the last constraint, patterns with |U| = n cost at least
L_n(ν) − 2ν(T − n − εT), where L_n minimizes Σz² + Σe² + 2νΣ_D(1−y) over all of them: a dynamic
program over (t, n) whose states are convex functions of z_t (`chain_bounds`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import scipy  # its submodules are imported on use

from consistruct.calibration.curve import CurvePoint, Method, Progress, at_each, status_of
from consistruct.calibration.methods.orbits.chain_bounds import (
    MULTIPLIERS,
    chain_bounds,
    pair_bound,
)
from consistruct.calibration.proofs.base import down, up
from consistruct.calibration.proofs.chain import ChainCertificate
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray

__all__ = ["ChainFlow", "ChainMethod", "ChainPoint", "balanced", "flow_value", "snapped"]

TOLERANCE = 2e-7  # relative width that ends the search for multipliers
MOST_RUNS = 24


@dataclass(frozen=True, eq=False)
class ChainPoint:
    """Bounds on 8T²·H at one ε, and the data that prove them."""

    eps: Fraction
    lower: Fraction
    upper: Fraction
    differs: tuple[bool, ...]  # (T,) the parts D
    flow: tuple[float, ...]  # (T−1,) z
    contrast: tuple[float, ...]  # (|D|,) y: the distribution puts (1+y)/2 on the state of i
    multipliers: tuple[float, ...]  # ν of each run of the dynamic program


def snapped(eps: float, T: int) -> Fraction:
    """ε, or the multiple of 1/T within two units of its last place: H jumps there."""
    near = Fraction(round(Fraction(eps) * T), T)
    return near if abs(near - Fraction(eps)) <= 2 * Fraction(math.ulp(eps)) else Fraction(eps)


def balanced(T: int, n: int) -> tuple[bool, ...]:
    """Which of T parts differ when n agreeing ones are spread evenly."""
    agrees = {((2 * m + 1) * T) // (2 * n) for m in range(n)}
    return tuple(t not in agrees for t in range(T))


def flow_value(
    differs: tuple[bool, ...], flow: tuple[float, ...], contrast: tuple[float, ...], eps: Fraction
) -> Fraction:
    """8T² times the excess surrogate risk of a flow and contrasts, exactly.

    Contrasts that fall short of εT together are raised toward one by the share that is missing.
    """
    T = len(differs)
    z = [Fraction(0), *(Fraction(value) for value in flow), Fraction(0)]
    y = [min(max(Fraction(value), Fraction(-1)), Fraction(1)) for value in contrast]
    short = eps * T - sum(y)
    if short > 0:
        room = len(y) - sum(y)
        if short > room:
            raise ValueError(f"{len(y)} differing parts of {T} cannot cost ε = {eps}")
        y = [value + (1 - value) * short / room for value in y]
    left = iter(y)
    x = [-next(left) if differ else Fraction(1) for differ in differs]
    e = [max(z[t] - z[t + 1] - x[t], Fraction(0)) for t in range(T)]
    return sum((value * value for value in (*z, *e)), Fraction(0))


@dataclass(eq=False)
class ChainFlow:
    """H of Hamming(T) with Chain(T, 2); remembers every run of the dynamic program."""

    T: int
    _runs: dict[float, list[Fraction]] = field(default_factory=dict)

    def solve(self, eps: float) -> ChainPoint:
        """Both ends at 0 < ε ≤ 1, refined until they meet or nothing more is gained."""
        T, at = self.T, snapped(eps, self.T)
        spare = T - at * T  # S: that many parts may agree, or be uncertain
        most = math.floor(spare)
        n = min(most, (T - 1) // 2)
        differs = balanced(T, n)
        flow, excess, contrast = self._primal(differs, at)
        upper = flow_value(differs, flow, contrast, at)
        bounds = [pair_bound(T, m, at) for m in range(most + 1)]
        used: list[float] = []
        tried: set[int] = set()
        for nu in self._runs:  # runs at other ε hold here too
            self._raise(bounds, nu, spare, used)
        while min(bounds) < upper * (1 - Fraction(TOLERANCE)) and len(tried) < MOST_RUNS:
            worst = min(range(most + 1), key=lambda m: bounds[m])
            if worst in tried:
                break
            tried.add(worst)
            pattern = balanced(T, worst)
            potential = excess if worst == n else self._primal(pattern, at)[1]
            # the multiplier of ε is the largest potential on D; one where nothing is to spare
            largest = max(e for e, differ in zip(potential, pattern, strict=True) if differ)
            nu = 1.0 if spare == worst else _on_grid(largest)
            self._run(nu, most)
            self._raise(bounds, nu, spare, used)
        lower = min(bounds)
        needed = self._needed(used, spare, at, lower)
        return ChainPoint(at, lower, upper, differs, flow, contrast, needed)

    def _run(self, nu: float, most: int) -> None:
        if nu not in self._runs or len(self._runs[nu]) <= most:
            self._runs[nu] = chain_bounds(self.T, most, nu)

    def _raise(self, bounds: list[Fraction], nu: float, spare: Fraction, used: list[float]) -> None:
        """Take in L_n(ν) − 2ν(S − n) of every n that the run covers."""
        run = self._runs[nu]
        for n in range(min(len(run), len(bounds))):
            bound = run[n] - 2 * Fraction(nu) * (spare - n)
            if bound > bounds[n]:
                bounds[n] = bound
                if nu not in used:
                    used.append(nu)

    def _needed(
        self, used: list[float], spare: Fraction, at: Fraction, goal: Fraction
    ) -> tuple[float, ...]:
        """A short list of multipliers that still proves `goal` for every n; greedy."""
        most = math.floor(spare)
        left = {n for n in range(most + 1) if pair_bound(self.T, n, at) < goal}
        proves = {
            nu: {
                n
                for n, bound in enumerate(self._runs[nu][: most + 1])
                if bound - 2 * Fraction(nu) * (spare - n) >= goal
            }
            for nu in used
        }
        kept: list[float] = []
        while left:
            best = max(used, key=lambda nu: len(proves[nu] & left))
            kept.append(best)
            left -= proves[best]
        return tuple(kept)

    def _primal(
        self, differs: tuple[bool, ...], eps: Fraction
    ) -> tuple[tuple[float, ...], FloatArray, tuple[float, ...]]:
        """(z, e, y) of one pattern from the interior-point solver; nothing is trusted."""
        import clarabel

        T = self.T
        parts = [t for t in range(T) if differs[t]]
        n_y, width = len(parts), 2 * T - 1 + len(parts)
        need = min(float(eps * T), float(n_y))
        one = scipy.sparse.eye_array
        step = scipy.sparse.diags_array([1.0, -1.0], offsets=[-1, 0], shape=(T, T)).tocsc()
        flows = step[:, : T - 1]  # z_{t−1} − z_t
        on_d = scipy.sparse.csc_array(
            (np.ones(n_y), (np.array(parts), np.arange(n_y))), shape=(T, n_y)
        )
        agree = np.array([not differ for differ in differs], dtype=np.float64)
        A = scipy.sparse.block_array(
            [
                [flows, -one(T), on_d],
                [None, -one(T), None],
                [None, None, one(n_y)],
                [None, None, -one(n_y)],
                [None, None, scipy.sparse.csc_array(-np.ones((1, n_y)))],
            ],
            format="csc",
        )
        b = np.concatenate([agree, np.zeros(T), np.ones(2 * n_y), [-need]])
        P = scipy.sparse.diags_array(
            np.concatenate([np.full(2 * T - 1, 2.0), np.zeros(n_y)]), format="csc"
        )
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_threads = False, 1
        for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
            setattr(settings, name, 1e-12)
        cones = [clarabel.NonnegativeConeT(len(b))]
        solution = clarabel.DefaultSolver(P, np.zeros(width), A, b, cones, settings).solve()
        x = np.asarray(solution.x)
        if not np.isfinite(x).all():
            raise ConsistructError(f"the chain program of T = {T} at ε = {eps} was not solved")
        return tuple(x[: T - 1].tolist()), x[T - 1 : 2 * T - 1], tuple(x[2 * T - 1 :].tolist())


def _on_grid(value: float) -> float:
    """The nearest multiplier that the program represents exactly, in (0, 1]."""
    return min(max(round(value * MULTIPLIERS), 1), MULTIPLIERS) / MULTIPLIERS


@dataclass(eq=False)
class ChainMethod(Method):
    """H of Hamming(T) with Chain(T, 2) by flows (upper end) and a dynamic program (lower end)."""

    T: int

    def __post_init__(self) -> None:
        self.name = "chain flows"
        self._flow = ChainFlow(self.T)
        self._proofs: dict[float, ChainCertificate] = {}

    @property
    def max_eps(self) -> float:
        return 1.0

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            proof = self.certificate(value)
            status = status_of(proof.lower, proof.upper, 1.0)
            return CurvePoint(value, proof.lower, proof.upper, 0.0, self.name, status, proof.pair)

        return at_each(eps, point, progress)

    def certificate(self, eps: float) -> ChainCertificate:
        if eps not in self._proofs:
            found, scale = self._flow.solve(eps), Fraction(8 * self.T**2)
            self._proofs[eps] = ChainCertificate(
                self.T, str(found.eps), down(found.lower / scale),
                up(found.upper / scale), found.differs, found.flow, found.contrast,
                found.multipliers,
            )  # fmt: skip
        return self._proofs[eps]
