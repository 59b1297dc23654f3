"""Section 2: predictor, risks, surrogates, losses."""

from __future__ import annotations

import numpy as np

from consistruct.losses import Block, CostMatrix, Hamming, Mixed, ZeroOne
from consistruct.protocols import FloatArray
from consistruct.structures import Full
from consistruct.surrogates import QuadraticSurrogate, make_surrogate
from paper.model import Effort, Evidence, claim
from paper.numerics import (
    Worst,
    block_matrix,
    certified,
    hamming_matrix,
    mixed_matrix,
    projection,
)


@claim(
    "predictor",
    "Section 2, eq. (1)",
    "definition",
    "The prediction is the label with the largest score; of several, the one with the smallest "
    "index.",
    "the library's decoder against enumeration, on integer scores full of ties",
    covers=("eq:predictor",),
)
def predictor(effort: Effort) -> Evidence:
    rng = effort.rng
    wrong = Worst("predictions that differ from enumeration", 0)
    for k in (1, 2, 5, 9):
        scores = rng.integers(-1, 2, (effort.pick(200, 2000), k)).astype(np.float64)
        found = Full(ZeroOne(k)).decode(scores)
        slow = [min(c for c in range(k) if row[c] == max(row)) for row in scores.tolist()]
        wrong.add(float(np.sum(np.asarray(found) != slow)), f"k = {k}")
    return Evidence((wrong.deviation,), "k = 1, 2, 5, 9; scores in {−1, 0, 1}")


@claim(
    "risks",
    "Section 2, eq. (2), (3); Section 3.1",
    "definition",
    "Task risk and surrogate risk are expectations over (x, y); both are averages over x of the "
    "conditional risks ℓ(f, q) = Σ_c q_c L(pred(f), c) and φ(f, q) = Σ_c q_c Φ(f, c).",
    "double sum over a finite distribution of (x, y) against the two-stage average; random "
    "distributions and scores",
    covers=("eq:risk", "eq:surrogateRisk", "sec:consistency#1", "sec:consistency#2"),
)
def risks(effort: Effort) -> Evidence:
    rng = effort.rng
    worst = Worst("|joint − two-stage| risk", 1e-12)
    for loss in (ZeroOne(4), Hamming(2), Mixed((2, 2), 0.3)):
        L = loss.matrix()
        k = len(L)
        surrogate = QuadraticSurrogate(loss, Full(loss))
        for _ in range(effort.pick(20, 200)):
            joint = rng.dirichlet(np.ones(6 * k)).reshape(6, k)
            scores = rng.normal(size=(6, k))
            marginal = joint.sum(axis=1)
            conditional = joint / marginal[:, None]
            value = np.array(
                [
                    surrogate.value_and_gradient(
                        np.repeat(row[None], k, axis=0), loss.predictions.enumerate()
                    )[0]
                    for row in scores
                ]
            )  # (x, y)
            task = L[scores.argmax(axis=1)]
            for table in (task, value):
                two_stage = marginal @ (conditional * table).sum(axis=1)
                worst.add(abs(float((joint * table).sum() - two_stage)), repr(loss))
    return Evidence((worst.deviation,), "0-1 (4), Hamming (2 bits), mixed (2×2, η = 0.3); 6 inputs")


@claim(
    "common-surrogates",
    "Section 2",
    "definition",
    "The structured hinge max_ŷ(f_ŷ + L(ŷ, y)) − f_y and the log loss log Σ_ŷ exp f_ŷ − f_y are "
    "surrogates: continuous, bounded below, and convex.",
    "the library's log loss against the printed formula; sign, midpoint convexity and Lipschitz "
    "constant (2 for both, in the largest score) at random points",
)
def common_surrogates(effort: Effort) -> Evidence:
    rng = effort.rng
    equal = Worst("library's log loss − printed formula", 1e-10)
    below = Worst("how far below zero", 1e-12)
    bent = Worst("midpoint above the chord", 1e-10)
    steep = Worst("|Φ(f) − Φ(g)| − 2 max|f − g|", 1e-10)
    for loss in (ZeroOne(4), Hamming(2), Mixed((2, 3), 0.4)):
        L = loss.matrix()
        library = make_surrogate("log", loss, Full(loss))
        labels = loss.predictions.enumerate()
        for _ in range(effort.pick(20, 200)):
            f, g = rng.normal(scale=3, size=(2, len(L)))
            found = library.value_and_gradient(np.repeat(f[None], len(L), 0), labels)[0]
            equal.add(float(np.abs(found - log_loss(f, L)).max()), repr(loss))
            for printed in (hinge, log_loss):
                at_f, at_g = printed(f, L), printed(g, L)
                below.add(float(-at_f.min()), printed.__name__)
                middle = printed((f + g) / 2, L) - (at_f + at_g) / 2
                bent.add(float(middle.max()), printed.__name__)
                change = np.abs(at_f - at_g).max() - 2 * np.abs(f - g).max()
                steep.add(float(change), printed.__name__)
    return Evidence(
        (equal.deviation, below.deviation, bent.deviation, steep.deviation),
        "three losses of 4 and 5 labels",
    )


def hinge(f: FloatArray, L: FloatArray) -> FloatArray:
    """Φ_SSVM(f, y) for every true label y, (k,)."""
    return (f[:, None] + L).max(axis=0) - f


def log_loss(f: FloatArray, L: FloatArray) -> FloatArray:
    """Φ_log(f, y) for every true label y, (k,)."""
    return np.asarray(np.log(np.exp(f).sum()) - f)


@claim(
    "task-losses",
    "Section 2; Appendix D.3",
    "definition",
    "0-1 loss = 11ᵀ − I, block 0-1 loss = 11ᵀ − UUᵀ with block indicators U, Hamming loss = share "
    "of differing bits, mixed loss = η(0-1) + (1−η)(block).",
    "the library's losses against the formulas over all pairs of labels",
)
def task_losses(effort: Effort) -> Evidence:
    worst = Worst("|library − formula|", 1e-15)
    for k in (1, 2, 5):
        worst.add(float(np.abs(ZeroOne(k).matrix() - (1 - np.eye(k))).max()), f"0-1, {k}")
    for sizes in ((2, 2), (1, 3, 2), (4,)):
        U = np.repeat(np.eye(len(sizes)), sizes, axis=0)
        worst.add(float(np.abs(Block(sizes).matrix() - (1 - U @ U.T)).max()), f"block {sizes}")
        worst.add(float(np.abs(block_matrix(sizes) - (1 - U @ U.T)).max()), f"block {sizes}")
        for eta in (0.0, 0.3, 1.0):
            gap = np.abs(Mixed(sizes, eta).matrix() - mixed_matrix(sizes, eta)).max()
            worst.add(float(gap), f"mixed {sizes}, {eta}")
    for T in (1, 3, effort.pick(4, 7)):
        gap = np.abs(Hamming(T).matrix() - hamming_matrix(T)).max()
        worst.add(float(gap), f"Hamming, {T}")
    return Evidence((worst.deviation,), "k ≤ 128; unequal blocks included")


@claim(
    "rectangular",
    "Section 2, footnote 1",
    "remark",
    "The analysis carries over to rectangular losses, where true labels are not predictions.",
    "Theorem 7 on random rectangular losses against certified quadratic programs",
)
def rectangular(effort: Effort) -> Evidence:
    rng = effort.rng
    above = Worst("lower bound of Theorem 7 over H", 1 + 1e-8)
    for case in range(effort.pick(8, 40)):
        k, m = int(rng.integers(2, 6)), int(rng.integers(1, 8))
        L = rng.random((k, m)) if case % 2 else rng.random((k, 2)) @ rng.random((2, m))
        loss = CostMatrix(L, rows="pred")
        space = Full(loss) if case % 4 < 2 else loss.score_space
        F = np.eye(k) if case % 4 < 2 else space.matrix()
        P = projection(F)
        widest = max(float(np.sum((P[i] - P[j]) ** 2)) for i in range(k) for j in range(i))
        for share in (0.3, 0.9):
            eps = share * float((L.max(axis=0) - L.min(axis=0)).max())
            _, upper = certified(loss, space, eps)
            if np.isfinite(upper) and upper > 0:
                above.add(eps**2 / (2 * k * widest) / upper, f"{k}×{m}, ε = {eps:.3g}")
    return Evidence(
        (above.deviation,), "random losses, 2–5 predictions, 1–7 true labels, rank 2 and full"
    )
