"""Sections 3.1 and 3.2: the calibration function, Figure 1, the notion of consistency."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from consistruct.calibration import calibration_function
from consistruct.guarantees import crossing_point
from consistruct.losses import Block, CostMatrix, Hamming, Loss, Mixed, ZeroOne
from consistruct.protocols import FloatArray
from consistruct.structures import Blocks, Dense, Full, Structure
from consistruct.surrogates import ABSurrogate
from paper.figures import figure_data
from paper.model import Deviation, Effort, Entry, Evidence, claim
from paper.numerics import Worst, certified, distributions, printed_value, projection, relative


def catalog() -> list[tuple[Loss, Structure]]:
    """Losses with full, own and too small scores."""
    mixed = Mixed((2, 2), 0.4)
    return [
        (ZeroOne(3), Full(ZeroOne(3))),
        (Block((1, 2)), Block((1, 2)).score_space),
        (Hamming(2), Hamming(2).score_space),
        (Hamming(2), Full(Hamming(2))),
        (mixed, Full(mixed)),
        (mixed, Blocks((2, 2))),
    ]


def excesses(
    L: FloatArray,  # (k, k)
    F: FloatArray,  # (k, r)
    theta: FloatArray,  # (n, r)
    q: FloatArray,  # (n, k)
) -> tuple[FloatArray, FloatArray]:
    """δℓ and δφ of the quadratic surrogate from their definitions, (n,) each."""
    k = len(L)
    scores = theta @ F.T
    expected = q @ L.T
    # predictable labels: all argmax over a fine random cover of the score space
    rng = np.random.default_rng(0)
    cover = np.vstack([rng.normal(size=(4000, F.shape[1])), theta, np.zeros((1, F.shape[1]))])
    reachable = np.unique(np.argmax(cover @ F.T, axis=1))
    task = expected[np.arange(len(q)), scores.argmax(axis=1)] - expected[:, reachable].min(axis=1)
    # φ(f, q) = E_q (1/2k)‖f + L(:, y)‖², minimized over the span by least squares
    best = -expected @ projection(F).T
    value = np.sum(scores**2 + 2 * scores * expected, axis=1) / (2 * k)
    return task, value - np.sum(best**2 + 2 * best * expected, axis=1) / (2 * k)


@claim(
    "excess-risk-bound",
    "Section 3.1, eq. (4)",
    "formula",
    "H(δℓ(f, q)) ≤ δφ(f, q) for all feasible scores f and all distributions q.",
    "random scores and distributions, excesses from their definitions, H certified",
    covers=("eq:excessRiskBound",),
)
def excess_risk_bound(effort: Effort) -> Evidence:
    rng = effort.rng
    worst = Worst("H(δℓ) − δφ", 1e-9)
    for loss, space in catalog():
        L, F = loss.matrix(), space.matrix()
        n = effort.pick(200, 2000)
        q = distributions(rng, len(L), n)
        theta = rng.normal(size=(n, F.shape[1])) * rng.choice([0.1, 1.0], (n, 1))
        close = -q @ L.T @ np.linalg.pinv(F).T + theta * 0.2  # where the bound is nearly active
        task, value = excesses(L, F, np.where(rng.random((n, 1)) < 0.7, close, theta), q)
        H = calibration_function(loss, space)
        bound = np.asarray(H(np.clip(task - 1e-12, 0, None)))
        worst.add(float((bound - value).max()), f"{loss!r}, {space!r}")
    return Evidence((worst.deviation,), "0-1, block, Hamming, mixed; full, own and block scores")


@claim(
    "def-calibration-function",
    "Section 3.1, Definition 1, eq. (5), (6)",
    "definition",
    "H(ε) is the least excess surrogate risk over scores and distributions whose excess task risk "
    "is at least ε; +∞ if there are none.",
    "the library's certified curve against the programs of the definition, one per pair of labels, "
    "solved apart; +∞ above the largest excess",
    covers=("def:calibrationFunc", "eq:calibrationfunc", "eq:calibrationfunc:epsConstr"),
)
def definition(effort: Effort) -> Evidence:
    rng = effort.rng
    worst = Worst("relative deviation of H", 1e-6)
    above = Worst("finite values of H above the largest excess", 0)
    cases = catalog()
    for case in range(effort.pick(4, 30)):
        k = int(rng.integers(2, 5))
        random_loss = CostMatrix(rng.random((k, k)), rows="pred")
        F = rng.normal(size=(k, int(rng.integers(1, k + 1))))
        cases.append((random_loss, Dense(F) if case % 2 else Full(random_loss)))
    for loss, space in cases:
        H = calibration_function(loss, space)
        for share in (0.35, 0.8):
            eps = share * H.max_eps
            expected = printed_value(loss.matrix(), space.matrix(), eps)
            found = H(eps)
            gap = relative(found, expected) if expected > 1e-12 else abs(found - expected)
            worst.add(gap, f"{loss!r}, {space!r}, ε = {eps:.3g}")
        above.add(float(math.isfinite(H(H.max_eps * 1.01 + 1e-6))), repr(loss))
    return Evidence(
        (worst.deviation, above.deviation),
        f"the paper's losses and {effort.pick(4, 30)} random cost matrices with random scores",
    )


@claim(
    "calibration-function-properties",
    "Section 3.1",
    "remark",
    "H is non-decreasing and non-negative, and H(0) = 0.",
    "certified values on a grid",
)
def properties(effort: Effort) -> Evidence:
    falls = Worst("largest fall of H between neighbors", 1e-12)
    negative = Worst("−H", 0)
    zero = Worst("H(0)", 0)
    for loss, space in catalog():
        H = calibration_function(loss, space)
        values = np.asarray(H(np.linspace(0, H.max_eps, effort.pick(41, 401))))
        falls.add(float(-np.diff(values).min()), f"{loss!r}, {space!r}")
        negative.add(float(-values.min()), repr(loss))
        zero.add(float(values[0]), repr(loss))
    return Evidence((falls.deviation, negative.deviation, zero.deviation), "as for eq. (4)")


@claim(
    "calibration-function-shape",
    "Section 3.1, Figure 1",
    "remark",
    "H can be non-convex and even discontinuous.",
    "the jump of the Hamming loss with full scores just above ε = 2/T, certified from both sides; "
    "a chord below the curve",
)
def shape(effort: Effort) -> Evidence:
    missing = Worst("losses without a certified jump and a certified chord", 0)
    for T in effort.pick((3, 4), (3, 4, 5, 6)):
        H = calibration_function(Hamming(T), "full")
        at, step = 2 / T, 1e-9
        before, after = H.interval(at)[1], H.interval(at + step)[0]
        jumps = after > before * (1 + 1e-3)  # far more than continuity allows on 1e-9
        # non-convex: right after the jump H lies above its chord to the next few hundredths
        ahead = H.interval(at + 0.02)[1]
        chord = before + (ahead - before) * step / 0.02
        missing.add(float(not (jumps and after > chord * (1 + 1e-3))), f"T = {T}")
    return Evidence((missing.deviation,), f"Hamming, T = {effort.pick('3, 4', '3 … 6')}")


@claim(
    "theorem-connection",
    "Section 3.2, Theorem 2, eq. (7), (8)",
    "theorem",
    "For a convex non-decreasing Ȟ ≤ H: if the surrogate risk is within Ȟ(ε) of the best, the task "
    "risk is within ε of the best with these scores.",
    "random finite distributions of (x, y) and score functions: Ȟ(excess task risk) ≤ excess "
    "surrogate risk, with the library's envelope",
    covers=("th:lossConnection", "eq:theoremConnection:1", "eq:theoremConnection:proof"),
)
def connection(effort: Effort) -> Evidence:
    rng = effort.rng
    worst = Worst("Ȟ(excess task risk) − excess surrogate risk", 1e-9)
    implication = Worst("violations of the implication", 0)
    for loss, space in catalog():
        L, F = loss.matrix(), space.matrix()
        envelope = calibration_function(loss, space).envelope()
        for _ in range(effort.pick(40, 400)):
            n = 5
            weight = rng.dirichlet(np.ones(n))
            q = distributions(rng, len(L), n)
            noise = rng.normal(size=(n, F.shape[1])) * rng.choice([0.05, 0.3, 1.0])
            task, value = excesses(L, F, -q @ L.T @ np.linalg.pinv(F).T + noise, q)
            excess, surrogate = float(weight @ task), float(weight @ value)
            worst.add(float(envelope(excess)) - surrogate, f"{loss!r}, {space!r}")
            for eps in (0.05, 0.2, 0.5):
                broken = surrogate < envelope(eps) - 1e-12 and not excess < eps
                implication.add(float(broken), f"{loss!r}, ε = {eps}")
    return Evidence(
        (worst.deviation, implication.deviation), "5 inputs; losses and scores as for eq. (4)"
    )


@claim(
    "informative-envelope",
    "Section 3.2",
    "remark",
    "The zero function is a convex non-decreasing lower bound; if H(ε) > 0 for all ε > 0, so is "
    "its lower convex envelope (for finitely many labels).",
    "exact envelopes of consistent cases at small and large ε against zero; finitely many labels "
    "bound ε, and min H(ε/2)·(share) bounds the envelope from below",
)
def informative_envelope(effort: Effort) -> Evidence:
    worst = Worst("lower bound (ε/2)/(max ε)·H(ε/2) over the envelope", 1 + 1e-9)
    for loss, space in catalog():
        H = calibration_function(loss, space)
        if H.consistency_level > 0:
            continue
        envelope = H.envelope()
        for share in (0.05, 0.3, 0.7, 1.0):
            eps = share * H.max_eps
            # a mixture of H at a ≤ ε/2 and b ≤ max ε gives b at least (ε/2)/(max ε)
            floor = eps / 2 / H.max_eps * float(H(eps / 2))
            worst.add(floor / float(envelope(eps)), f"{loss!r}, ε = {eps:.3g}")
    return Evidence(
        (worst.deviation,), "the consistent cases of eq. (4); ε down to 5 % of its range"
    )


@claim(
    "def-level-consistency",
    "Section 3.2, Definition 3",
    "definition",
    "A surrogate is consistent up to level η if H(ε) > 0 for all ε > η and H is finite for some "
    "ε > η.",
    "the library's consistency level (a linear program) against certified zeros and positive "
    "values on both sides of it",
    covers=("def:consistency",),
)
def level(effort: Effort) -> Evidence:
    wrong = Worst("H at the wrong sign beside the level", 0)
    for loss, space in [*catalog(), (Mixed((3, 3), 0.8), Blocks((3, 3)))]:
        H = calibration_function(loss, space)
        eta = H.consistency_level
        case = f"{loss!r}, {space!r}"
        wrong.add(float(not certified(loss, space, eta + 0.02)[0] > 0), case)
        if eta > 0:
            wrong.add(float(certified(loss, space, eta - 1e-3)[1] > 1e-12), case)
    return Evidence((wrong.deviation,), "as for eq. (4), and mixed with η = 0.8")


OTHER_NOTIONS = Entry(
    "other-notions",
    "Section 3.2",
    "related work",
    "Level 0 with all scores is the standard setting, equivalent to infinite-sample consistency, "
    "classification calibration, edge-consistency, (L, R^k)-calibration, prediction calibration.",
    "—",
    "not checked",
    reason="equivalences between definitions of other papers: proofs about all surrogates, not "
    "computations",
)


@claim(
    "role-of-scores",
    "Section 3.2",
    "remark",
    "f = −Lq predicts optimally, so scores that contain the columns of L have no approximation "
    "error.",
    "random losses and distributions; the approximation error of the library (linear programs) is "
    "0 for own and full scores",
)
def role_of_scores(effort: Effort) -> Evidence:
    rng = effort.rng
    worst = Worst("excess task risk of f = −Lq", 1e-12)
    error = Worst("approximation error", 1e-9)
    for _ in range(effort.pick(30, 300)):
        k, m = rng.integers(2, 7, 2)
        L = rng.random((k, m))
        expected = distributions(rng, int(m), 20) @ L.T
        chosen = expected[np.arange(20), (-expected).argmax(axis=1)]
        worst.add(float((chosen - expected.min(axis=1)).max()), f"{k}×{m}")
    for _ in range(effort.pick(4, 20)):
        loss = CostMatrix(rng.random((5, 2)) @ rng.random((2, 5)), rows="pred")
        error.add(calibration_function(loss).approximation_error, "rank 2, own scores")
        error.add(calibration_function(loss, "full").approximation_error, "rank 2, full scores")
    return Evidence((worst.deviation, error.deviation), "random losses up to 6×6")


@claim(
    "scale",
    "Section 3.3",
    "remark",
    "Multiplying the surrogate by a positive number multiplies H by it.",
    "c·(quadratic surrogate) handed to the solver for general (a, b) surrogates, against c times "
    "the certified H of the quadratic one",
)
def scale(effort: Effort) -> Evidence:
    worst = Worst("relative deviation of H(c·Φ) from c·H(Φ)", 1e-5)
    losses: list[Loss] = [ZeroOne(3), Block((2, 2)), Hamming(2)]
    for loss in losses[: effort.pick(1, 3)]:
        for factor in (0.01, 100.0):
            scaled = _scaled_quadratic(factor)
            for eps in (0.3, 0.9):
                found = calibration_function(loss, surrogate=scaled)(eps)
                plain = certified(loss, Full(loss), eps)[0]
                worst.add(relative(found, factor * plain), f"{loss!r}, factor {factor:g}")
    return Evidence((worst.deviation,), "factors 0.01 and 100; ε = 0.3 and 0.9; full scores")


def _scaled_quadratic(c: float) -> type[ABSurrogate]:
    """a = c·f, b = c·f²/2."""

    class Scaled(ABSurrogate):
        jointly_convex = True

        def a(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
            return c * f, np.full_like(f, c)

        def b(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
            return c * f**2 / 2, c * f

    return Scaled


@claim(
    "figure-1a",
    "Section 3.1, Figure 1a",
    "figure",
    "Hamming loss: the curve with free scores (red) can grow exponentially slower than the one "
    "with separable scores (blue), which implies consistency.",
    "the figure's data against certified programs; ratio of the curves at growing T; both positive",
    covers=("fig:exampleTranferFunctions",),
)
def figure_1a(effort: Effort) -> Evidence:
    figure = figure_data("figure_1a")
    eps = figure.columns["eps"]
    red, blue = figure.columns["full scores"], figure.columns["own scores"]
    positive = Deviation(
        "points ε > 0 with H = 0", float(np.sum((red[1:] <= 0) | (blue[1:] <= 0))), 0
    )
    order = Deviation("points where red exceeds blue", float(np.sum(red > blue * (1 + 1e-9))), 0)
    certain = Worst("relative deviation of both curves from certified programs, T = 3", 1e-6)
    loss = Hamming(3)
    for e in (0.2, 0.5, 0.7, 1.0):
        for scores in (Full(loss), loss.score_space):
            found = calibration_function(loss, scores)(e)
            certain.add(relative(found, certified(loss, scores, e)[0]), f"ε = {e}")
    slow = Worst("(2^T/4T)/(blue/red), ε = 1", 1.0)
    for T in effort.pick((4, 10), (4, 10, 30)):
        log_ratio = calibration_function(Hamming(T)).log(1.0) - calibration_function(
            Hamming(T), "full"
        ).log(1.0)
        slow.add(2.0**T / (4 * T) / float(np.exp(log_ratio)), f"T = {T}")
    return Evidence(
        (positive, order, certain.deviation, slow.deviation),
        f"{len(eps)} points, T = 6; T up to 30",
    )


@claim(
    "figure-1b",
    "Section 3.1, Figure 1b",
    "figure",
    "Mixed loss, η = 0.4: with block scores (blue) the curve is zero up to 0.2 (level-0.2 "
    "consistency), then grows exponentially faster than the red one, with free scores.",
    "the figure's data: zeros, the level by linear programs, the crossing of the curves, the ratio "
    "at ε = 1 for growing blocks; a small member against certified programs",
    covers=("fig:exampleTranferFunctions",),
)
def figure_1b(effort: Effort) -> Evidence:
    figure = figure_data("figure_1b")
    eps = figure.columns["eps"]
    red, blue = figure.columns["full scores"], figure.columns["block scores"]
    flat = Deviation("largest blue value up to ε = 0.2", float(blue[eps <= 0.2 + 1e-12].max()), 0)
    still = float(np.sum(blue[eps > 0.2 + 1e-9] <= 0))
    rising = Deviation("blue points above 0.2 that are not positive", still, 0)
    crosses = bool(blue[eps <= 0.2].max() < red[eps > 0.1].min() and blue[-1] > red[-1])
    crossing = Deviation("1 unless blue starts below red and ends above it", float(not crosses), 0)
    mixed = Mixed((25,) * 4, 0.4)
    level = calibration_function(mixed, Blocks((25,) * 4)).consistency_level
    exact = Deviation("|level − 0.2|", abs(level - 0.2), 1e-9)
    certain = Worst("relative deviation from certified programs, two blocks of 2", 1e-6)
    small = Mixed((2, 2), 0.4)
    for e in (0.3, 0.7, 1.0):
        for scores in (Full(small), Blocks((2, 2))):
            found = calibration_function(small, scores)(e)
            certain.add(relative(found, certified(small, scores, e)[0]), f"ε = {e}")
    return Evidence((flat, rising, crossing, exact, certain.deviation), "4 blocks of 25, η = 0.4")


@claim(
    "figure-1b-choice",
    "Section 3.1, Figure 1b",
    "figure",
    "The inconsistent choice could be better for small η.",
    "where the curve of block scores overtakes that of free scores, as η falls",
)
def figure_1b_choice(effort: Effort) -> Evidence:
    points = []
    for eta in (0.4, 0.2, 0.1, 0.05):
        loss = Mixed((25,) * 4, eta)
        free, blocks = (
            calibration_function(loss, scores) for scores in ("full", Blocks((25,) * 4))
        )
        points.append(crossing_point(free, blocks) or np.inf)
    rising = Worst("rise of the crossing point as η falls", 0)
    for before, after in pairwise(points):
        rising.add(after - before, f"crossings {', '.join(f'{p:.3g}' for p in points)}")
    late = Deviation("crossing over η at η = 0.05", points[-1] / 0.05, 1.0)
    return Evidence((rising.deviation, late), "4 blocks of 25; η = 0.4, 0.2, 0.1, 0.05")
