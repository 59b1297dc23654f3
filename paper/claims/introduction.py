"""Abstract and Section 1, and what Sections 3.3 to 5 and Appendix B read into the theorems."""

from __future__ import annotations

import math

import numpy as np

from consistruct.calibration import calibration_function, compare_surrogates, lower_bound
from consistruct.guarantees import plan_table, sample_complexity
from consistruct.losses import Block, CostMatrix, Hamming, Loss, Mixed, Ordinal, ZeroOne
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Blocks, Full
from paper.claims.optimization import CONFIDENCE, problems
from paper.model import Deviation, Effort, Entry, Evidence, claim
from paper.numerics import Worst, block_matrix, certified, hamming_matrix, relative


@claim(
    "bounds-for-any-loss",
    "Section 1",
    "remark",
    "The analysis of the quadratic surrogate includes general lower and upper bounds on the "
    "calibration function for any task loss.",
    "H against ε²/4k and ε²/2k: random losses that are no pseudometric, scores that do not express "
    "the loss, scores smaller than free ones",
    expected="false",
)
def any_loss(effort: Effort) -> Evidence:
    rng, eps = effort.rng, 0.4
    above = Worst("H/(ε²/2k), any loss and scores", 1 + 1e-8)
    below = Worst("(ε²/4k)/H, scores that express the loss", 1 + 1e-8)
    inside = Worst("H/(ε²/2k), pseudometrics and free scores", 1 + 1e-8)
    fixed = CostMatrix(
        [[0, 0], [1, 1]], rows="pred"
    )  # label 0 is better by one, whatever the true label
    above.add(certified(fixed, Full(fixed), eps)[0] / (eps**2 / 4), repr(fixed))
    hamming = Hamming(5)
    above.add(calibration_function(hamming)(eps) / (eps**2 / 64), f"{hamming!r}, own scores")
    for _ in range(effort.pick(4, 30)):
        k = int(rng.integers(2, 6))
        loss: Loss = CostMatrix(rng.random((k, k)), rows="pred")
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
    expected="imprecise",
)
def tight(effort: Effort) -> Evidence:
    equal = Worst("relative deviation of H from Theorem 7, own scores", 1e-9)
    for loss in (ZeroOne(2), ZeroOne(7), Block((3, 3)), Block((2, 2, 2)), Hamming(1), Hamming(6)):
        for eps in (0.1, 0.7, 1.0):
            bound = lower_bound(loss, eps=eps).value
            equal.add(relative(calibration_function(loss)(eps), bound), f"{loss!r}, ε = {eps}")
    fixed = CostMatrix([[0, 0], [1, 1]], rows="pred")
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
    expected="imprecise",
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


@claim(
    "exponentially-small",
    "Section 3.3",
    "remark",
    "If the surrogate is of order 1 and H has a factor 1/k, this is strong evidence that "
    "stochastic optimization will be difficult and learning slow.",
    "the 0-1 loss: values of the surrogate, growth of N* with k by the paper's constants and by "
    "sharp ones, and draws n = S/H that the noise of the surrogate allows",
    expected="imprecise",
)
def exponentially_small(effort: Effort) -> Evidence:
    eps = 0.1
    rows = [row for row in plan_table(eps=eps, sizes=(64, 1024)) if row.family == "zero-one"]

    def growth(column: str) -> float:
        logs = [getattr(row.result, column).log_iterations for row in rows]
        return (logs[1] - logs[0]) / math.log(16)

    order = Worst("|Φ(0, y) − ½| for k ≥ 4", 0.125)
    draws = Worst("relative deviation of S/H from 2(1 − 1/k)/ε²", 1e-9)
    for k in (4, 100, 10**6):
        order.add(abs((1 - 1 / k) / 2 - 0.5), f"k = {k}")
        (curve,) = compare_surrogates(ZeroOne(k), ("quadratic",), [eps]).curves
        found = curve.draws[0]
        assert found is not None
        draws.add(relative(found[1], 2 * (1 - 1 / k) / eps**2), f"k = {k}")
    slow = Deviation(
        "1 − exponent of N* in k, 0-1 loss, paper's constants", 1 - growth("paper"), 0.0
    )
    sharp = growth("sharp")
    return Evidence(
        (order.deviation, slow),
        "0-1 loss, ε = 0.1, k from 4 to 10⁶; N* from k = 64 to 1024 at Q = R = 1",
        edge=(Deviation("1 if sharp N* does not grow with k", float(sharp < 0.1), 0, "0-1 loss"),),
        corrected=(draws.deviation,),
        correction="Evidence by the paper's constants only. A surrogate of order 1 may have noise "
        "of order 1/k: for the 0-1 loss the two factors 1/k cancel, acting on the frequencies of "
        "n = S/H(ε) = 2(1 − 1/k)/ε² draws is accurate to H(ε) at any k, and the sharp N* grows "
        f"with exponent {sharp:.2g}.",
    )


@claim(
    "not-guaranteed",
    "Section 4, after Theorem 8",
    "remark",
    "Without constraints on the scores efficient learning is not guaranteed in the worst case, as "
    "H scales with 1/k: the number of steps that Theorem 6 requires grows at least like k².",
    "N* of Theorem 6 by the paper's constants for Hamming and 0-1 with free scores, doubling T; a "
    "statement about the guarantee, not about what can be learned",
)
def not_guaranteed(effort: Effort) -> Evidence:
    least = Worst("2 − exponent of N* in k, free scores", 0.0)
    for name, losses in (
        ("Hamming", (Hamming(4), Hamming(8))),
        ("0-1", (ZeroOne(16), ZeroOne(256))),
    ):
        logs = [
            sample_complexity(loss, Full(loss), eps=0.25).paper.log_iterations for loss in losses
        ]
        least.add(2 - (logs[1] - logs[0]) / math.log(16), name)
    return Evidence((least.deviation,), "k = 16 and 256, ε = 0.25, Q = R = 1")


@claim(
    "sample-complexity",
    "Section 3.3, before Theorem 6",
    "remark",
    "As every step takes one new example, Theorem 6 also bounds the number of samples, compared to "
    "the best prediction rule where the scores have zero approximation error; in expectation.",
    "simulation with one fresh example a step: after N* + 1 of them the mean excess over the best "
    "rule of all; the best rule within the scores is the best of all on these problems",
)
def sample_reading(effort: Effort) -> Evidence:
    rng, eps, runs = effort.rng, effort.pick(0.95, 0.8), effort.pick(20, 60)
    worst = Worst("(mean excess over the best rule + 2 standard errors)/ε", 1.0)
    best = Worst("approximation error of the scores", 0.0)
    for problem in problems(rng)[: effort.pick(1, 3)]:
        H = calibration_function(problem.loss)
        best.add(H.approximation_error, repr(problem.loss))
        n = math.floor((2 * problem.D * problem.M / float(H.envelope()(eps))) ** 2) + 1
        task = problem.task_excess(problem.run(n, runs, rng)[0])
        top = task.mean() + CONFIDENCE * task.std(ddof=1) / math.sqrt(runs)
        worst.add(float(top / eps), f"{problem.loss!r}, {n} examples")
    return Evidence((worst.deviation, best.deviation), f"ε = {eps}, {runs} runs")


@claim(
    "different-behavior",
    "Section 5",
    "related work",
    "Combined with stochastic optimization, the surrogate here and that of one-hot output "
    "embeddings lead to different behavior.",
    "SGD on both from the same examples: with the paper's F and one step size, and with an "
    "orthonormal basis and steps in the right proportion",
    expected="imprecise",
)
def different(effort: Effort) -> Evidence:
    rng = effort.rng
    apart = Worst("1 if the scores are the same, paper's F for Hamming, equal steps", 0.0)
    same = Worst("largest difference of scores, orthonormal basis", 1e-9)
    for T in (2, 3):
        L = hamming_matrix(T)
        labels = np.array([[int(bit) for bit in f"{c:0{T}b}"] for c in range(2**T)])
        F = np.column_stack([np.full(2**T, 0.5), labels.astype(float)])
        x, y = rng.normal(size=(200, 3)), rng.integers(2**T, size=200)
        ours, theirs = _two_descents(F, L, x, y, 0.05, 0.05)
        apart.add(float(np.abs(ours - theirs).max() < 1e-3), f"T = {T}")
    for L in (hamming_matrix(2), hamming_matrix(3), block_matrix((2, 3))):
        k = len(L)
        U, values, _ = np.linalg.svd(L)
        F = U[:, values > 1e-9] * math.sqrt(k)  # FᵀF/k = I
        x, y = rng.normal(size=(200, 3)), rng.integers(k, size=200)
        ours, theirs = _two_descents(F, L, x, y, 0.05, 0.05)
        same.add(float(np.abs(ours - theirs).max()), f"{k} labels")
    return Evidence(
        (apart.deviation,),
        "Hamming and block losses of up to 8 labels, 200 examples, no projection",
        edge=(
            Deviation(
                "1 if the scores are the same, orthonormal basis",
                float(same.value < 1e-9),
                0,
            ),
        ),
        corrected=(apart.deviation, same.deviation),
        correction="In the number of functions to be kept (rank L against k) and in the steps and "
        "constants that the theory gives each. Not in the iterates as such: in a basis of the span "
        "of L with FᵀF/k = I the same step gives the same scores from the same examples (largest "
        f"difference {same.value:.1e} after 200 steps).",
    )


def _two_descents(
    F: FloatArray,  # (k, r)
    L: FloatArray,  # (k, k)
    x: FloatArray,  # (n, d)
    y: IntArray,  # (n,)
    step: float,
    step_one_hot: float,
) -> tuple[FloatArray, FloatArray]:
    """Scores F·W and −L·G after one pass from zero, (k, d) each."""
    k, d = len(L), x.shape[1]
    W, G = np.zeros((F.shape[1], d)), np.zeros((k, d))
    for phi, label in zip(x, y.tolist(), strict=True):
        W -= step * np.outer(F.T @ (F @ W @ phi + L[:, label]) / k, phi)
        G -= step_one_hot * np.outer(G @ phi - np.eye(k)[label], phi)
    return F @ W, -L @ G


UNIVERSAL = Entry(
    "universal-kernels",
    "Section 3.3, after Assumption 4",
    "assumption",
    "Assumption 4 can be relaxed if the kernel is universal, with a more complicated analysis.",
    "—",
    "not checked",
    reason="a statement of what can be proved, with a reference (Orabona, 2014); no finite "
    "computation decides it",
)


@claim(
    "excess-is-continuous",
    "Appendix B, proof of the second lemma; Appendix C, proof of the theorem",
    "proof step",
    "By Lemma 27 of Zhang (2004) the excess of the conditional surrogate risk, and its infimum "
    "over scores that predict a label, is continuous in the distribution.",
    "an infimum over scores is one of functions linear in q, so concave and upper semi-continuous, "
    "and a concave function that is finite on a polytope is lower semi-continuous there: what is "
    "used holds for every surrogate bounded below; the value on faces of the simplex against "
    "nearby distributions for four surrogates",
)
def continuous(effort: Effort) -> Evidence:
    rng = effort.rng
    jump = Worst("|min_f φ(f, q′) − min_f φ(f, q)|/√‖q′ − q‖, q on a face", 4.0)
    L = hamming_matrix(2)
    top = float(L.max())

    def entropy(p: FloatArray) -> float:
        p = p[p > 0]
        return float(-(p * np.log(p)).sum())

    least = {  # closed forms: MATH of the surrogates in Appendix C and of the log loss
        "quadratic": lambda q: -0.5 * float(((L @ q) ** 2).mean()),
        "logistic": lambda q: float(
            np.mean([entropy(np.array([p, 1 - p])) for p in np.clip(L @ q / top, 0, 1)])
        ),
        "exponential": lambda q: float(
            np.mean(2 * np.sqrt(np.clip(L @ q / top * (1 - L @ q / top), 0, None)))
        ),
        "log": entropy,
    }
    for _ in range(effort.pick(20, 200)):
        support = rng.random(4) < 0.5
        support[int(rng.integers(4))] = True
        q = np.where(support, rng.random(4), 0.0)
        q /= q.sum()
        other = rng.dirichlet(np.ones(4))
        for t in (1e-2, 1e-4, 1e-8):
            near = (1 - t) * q + t * other
            distance = float(np.linalg.norm(near - q))
            if distance == 0:
                continue
            for name, value in least.items():
                jump.add(abs(value(near) - value(q)) / math.sqrt(distance), f"{name}, t = {t:g}")
    return Evidence((jump.deviation,), "four labels, random faces, distances down to 1e-8")
