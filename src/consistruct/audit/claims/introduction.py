"""Abstract and Section 1: what the paper announces, against what its theorems give."""

from __future__ import annotations

import math

import numpy as np

from consistruct.audit.model import Deviation, Effort, Evidence, claim
from consistruct.audit.numerics import Worst, certified, relative
from consistruct.calibration import calibration_function, lower_bound
from consistruct.guarantees import plan_table
from consistruct.losses import Block, CostMatrix, Hamming, Mixed, Ordinal, ZeroOne
from consistruct.losses.base import Loss
from consistruct.scores import Blocks, Full


@claim(
    "bounds-for-any-loss",
    "Section 1",
    "remark",
    "The analysis of the quadratic surrogate includes general lower and upper bounds on the "
    "calibration function for any task loss.",
    "H against ε²/4k and ε²/2k: random losses that are no pseudometric, scores that do not express "
    "the loss, scores smaller than free ones",
    expected="false as stated",
)
def any_loss(effort: Effort) -> Evidence:
    rng, eps = effort.rng, 0.4
    above = Worst("H/(ε²/2k), any loss and scores", 1 + 1e-8)
    below = Worst("(ε²/4k)/H, scores that express the loss", 1 + 1e-8)
    inside = Worst("H/(ε²/2k), pseudometrics and free scores", 1 + 1e-8)
    fixed = CostMatrix([[0, 0], [1, 1]])  # label 0 is better by one, whatever the truth
    above.add(certified(fixed, Full(fixed), eps)[0] / (eps**2 / 4), repr(fixed))
    hamming = Hamming(5)
    above.add(calibration_function(hamming)(eps) / (eps**2 / 64), f"{hamming!r}, own scores")
    for _ in range(effort.pick(4, 30)):
        k = int(rng.integers(2, 6))
        loss: Loss = CostMatrix(rng.random((k, k)))
        if float(np.ptp(loss.matrix(), axis=0).max()) < eps:
            continue
        low, high = certified(loss, Full(loss), eps)
        above.add(low / (eps**2 / (2 * k)), f"a random loss of {k} labels")
        below.add(eps**2 / (4 * k) / high, f"a random loss of {k} labels")
    metrics: list[Loss] = [ZeroOne(4), Block((2, 3)), Hamming(3), Mixed((2, 2), 0.4), Ordinal(4)]
    for loss in metrics:
        low, high = certified(loss, Full(loss), eps)
        inside.add(low / (eps**2 / (2 * (loss.n_labels or 1))), repr(loss))
        below.add(eps**2 / (4 * (loss.n_labels or 1)) / high, repr(loss))
    level = calibration_function(Mixed((2, 2), 0.4), Blocks((2, 2)))(0.15)
    return Evidence(
        (above.deviation,),
        "ε = 0.4; random losses of 2 to 5 labels, five pseudometrics, Hamming(5) with own scores",
        corrected=(below.deviation, inside.deviation),
        correction="The lower bound (Theorem 7) is for any loss that the scores express: mixed "
        f"loss, η = 0.4, block scores: H(0.15) = {level:g}. The upper bound (Theorem 8) is for "
        "pseudometrics with free scores: without the one, L = [[0, 0], [1, 1]], H is "
        f"{certified(fixed, Full(fixed), eps)[0] / (eps**2 / 4):.3g} times as large at ε = 0.4; "
        "without the other, Hamming(5) with its own scores, "
        f"{calibration_function(hamming)(eps) / (eps**2 / 64):.3g} times.",
    )


@claim(
    "tight-bounds",
    "Abstract",
    "remark",
    "For any task loss, tight bounds on the calibration function are proved.",
    "H over the bound of Theorem 7: equality for the losses that the paper names, then losses for "
    "which the ratio grows without limit as ε falls",
    expected="holds with correction",
)
def tight(effort: Effort) -> Evidence:
    equal = Worst("relative deviation of H from Theorem 7, own scores", 1e-9)
    for loss in (ZeroOne(2), ZeroOne(7), Block((3, 3)), Block((2, 2, 2)), Hamming(1), Hamming(6)):
        for eps in (0.1, 0.7, 1.0):
            bound = lower_bound(loss, eps=eps).value
            equal.add(relative(calibration_function(loss)(eps), bound), f"{loss!r}, ε = {eps}")
    fixed = CostMatrix([[0, 0], [1, 1]])
    apart = Worst("H/Theorem 7", 2.0)
    constant = Worst("|H − 1/8| for L = [[0, 0], [1, 1]]", 1e-9)
    for eps in (0.5, 0.1, 0.01):
        H = certified(fixed, Full(fixed), eps)[0]
        apart.add(H / lower_bound(fixed, Full(fixed), eps=eps).value, f"{fixed!r}, ε = {eps}")
        constant.add(abs(H - 0.125), f"ε = {eps}")
    return Evidence(
        (equal.deviation,),
        "0-1, equal blocks and Hamming; one loss of two labels",
        edge=(apart.deviation,),
        corrected=(equal.deviation, constant.deviation),
        correction="Tight in that equality is attained, by the 0-1, block and Hamming losses with "
        "their own scores. Not for any task loss: with L = [[0, 0], [1, 1]] H is 1/8 for every ε "
        f"in (0, 1], {apart.value:.3g} times Theorem 7 at ε = 0.01 and more below.",
    )


@claim(
    "needs-both",
    "Section 1",
    "remark",
    "For a tractable algorithm one needs both a structured loss (not the 0-1 loss) and constraints "
    "on the scores.",
    "the factor 1/k in H for structured losses with free scores, for the 0-1 loss, and its absence "
    "with both; then N* of the 0-1 loss with constants that waste nothing",
    expected="holds with correction",
)
def needs_both(effort: Effort) -> Evidence:
    eps = 0.5
    without = Worst("H·2k/ε², structured losses with free scores", 1 + 1e-9)
    plain = Worst("|H·4k/ε² − 1|, 0-1 loss", 1e-9)
    both = Worst("|H·8T/ε² − 1| (Hamming) and |H·4b/ε² − 1| (blocks), own scores", 1e-9)
    for T in effort.pick((2, 6), (2, 6, 12, 20)):
        k = 2**T
        for loss in (Hamming(T), Block((k // 2, k // 2))):
            H = calibration_function(loss, "full")
            without.add(math.exp(H.log(eps) + math.log(2 * k / eps**2)), f"{loss!r}")
        plain.add(abs(calibration_function(ZeroOne(k))(eps) * 4 * k / eps**2 - 1), f"k = {k}")
        both.add(abs(calibration_function(Hamming(T))(eps) * 8 * T / eps**2 - 1), f"T = {T}")
        both.add(abs(calibration_function(Block((k // 2,) * 2))(eps) * 8 / eps**2 - 1), f"k = {k}")
    logs = [
        row.result.sharp.log_iterations
        for row in plan_table(eps=0.1, sizes=(64, 1024))
        if row.family == "zero-one"
    ]
    growth = (logs[1] - logs[0]) / math.log(16)
    return Evidence(
        (without.deviation, plain.deviation, both.deviation),
        f"ε = 0.5, T up to {effort.pick(6, 20)}; N* at ε = 0.1, k = 64 and 1024",
        edge=(
            Deviation(
                "1 if sharp N* does not grow with k, 0-1 loss", float(growth < 0.1), 0, "Q = 1"
            ),
        ),
        corrected=(without.deviation, plain.deviation, both.deviation),
        correction="For H not to have the factor 1/k one needs both, and that is what is shown. "
        "That nothing else is tractable is not: with sharp constants the guarantee for the 0-1 "
        f"loss does not grow with k at fixed Q (exponent {growth:.2g} from k = 64 to 1024).",
    )
