"""Section 5: ranking losses, SVMs, ramp and probit losses, other calibration functions."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
from scipy.stats import norm

from consistruct.audit.model import Deviation, Effort, Entry, Evidence, claim
from consistruct.audit.numerics import (
    MARGIN_LOSSES,
    Worst,
    hamming_matrix,
    laws,
    mixed_matrix,
    relative,
)
from consistruct.calibration import calibration_function
from consistruct.calibration.lp import minimise
from consistruct.losses import (
    Abstain,
    ExpectedRankUtility,
    Hamming,
    MeanAveragePrecision,
    Ordinal,
    PairwiseDisagreement,
    PrecisionAt,
    ZeroOne,
)
from consistruct.protocols import FloatArray

HISTORY = Entry(
    "literature",
    "Sections 1 and 5",
    "related work",
    "What other papers study: consistency for binary and multi-class problems, ranking, "
    "multi-label classification, confusion-matrix losses, bipartite ranking, multi-class SVMs "
    "(Fisher against universal consistency), convex calibration dimension as a notion.",
    "—",
    "not checked",
    reason="reports of what other papers contain, not statements that a computation could decide",
)


@claim(
    "calibration-dimension",
    "Section 5",
    "related work",
    "For the Hamming loss on T bits the convex calibration dimension is at most T; here the scores "
    "have rank T + 1.",
    "rank of the loss, and of the loss with its columns centred: constants do not change "
    "decisions, so T scores suffice",
)
def calibration_dimension(effort: Effort) -> Evidence:
    rank = Worst("|rank L − (T + 1)| + |rank of centred L − T|", 0)
    wrong = Worst("decisions that change when columns are centred", 0)
    for T in effort.pick((1, 2, 4), (1, 2, 4, 7)):
        L = hamming_matrix(T)
        centred = L - L.mean(axis=0)
        ranks = [int(np.linalg.matrix_rank(one)) for one in (L, centred)]
        rank.add(abs(ranks[0] - T - 1) + abs(ranks[1] - T), f"T = {T}")
        rank.add(abs(Hamming(T).score_space.rank - T - 1), f"T = {T}, library")
        q = laws(effort.rng, 2**T, 40)
        best = q @ L.T
        chosen = best[np.arange(40), (q @ centred.T).argmin(axis=1)]
        wrong.add(float(np.sum(chosen > best.min(axis=1) + 1e-12)), f"T = {T}")
    return Evidence((rank.deviation, wrong.deviation), f"T up to {effort.pick(4, 7)}")


@claim(
    "ranking-low-rank",
    "Section 5",
    "related work",
    "Precision@q, expected rank utility, mean average precision and pairwise disagreement are "
    "of low rank.",
    "loss matrices by enumeration over all n! rankings and all relevance vectors: ranks against "
    "n, n, n(n+1)/2 and n(n−1)/2 (+1 for a constant)",
)
def ranking_low_rank(effort: Effort) -> Evidence:
    worst = Worst("rank − bound", 0)
    for n in effort.pick((3, 4), (3, 4, 5)):
        for loss, bound in (
            (PrecisionAt(n, 2), n),
            (ExpectedRankUtility(n), n),
            (MeanAveragePrecision(n), n * (n + 1) // 2),
            (PairwiseDisagreement(n), n * (n - 1) // 2),
        ):
            rank = int(np.linalg.matrix_rank(loss.matrix()))
            worst.add(float(rank - bound - 1), f"{loss!r}: rank {rank} of {math.factorial(n)} rows")
    return Evidence((worst.deviation,), f"n up to {effort.pick(4, 5)} items")


@claim(
    "ranking-conjecture",
    "Section 5",
    "related work",
    "Conjecture: the approach is compatible with these losses.",
    "own scores of the four losses: certified consistency level 0, H > 0, decoders exact",
)
def ranking_conjecture(effort: Effort) -> Evidence:
    broken = Worst("losses with a positive level, H = 0, or a decoder that is not exact", 0)
    losses = [PrecisionAt(3, 1), ExpectedRankUtility(3), PairwiseDisagreement(3)]
    losses += [MeanAveragePrecision(3)]
    for loss in losses:
        H = calibration_function(loss)
        inexact = not loss.score_space.decoder().exact
        failed = H.consistency_level > 1e-9 or not H(0.5 * H.max_eps) > 0 or inexact
        broken.add(float(failed), repr(loss))
    return Evidence((broken.deviation,), "3 items")


# --- multi-class and structured SVM ---


def hinge_risk(
    q: FloatArray, rows: FloatArray | None = None, rhs: FloatArray | None = None
) -> float:
    """min over f of the conditional Crammer–Singer risk, s.t. rows·f ≤ rhs: a linear program."""
    k = len(q)
    # variables f, t with t_y ≥ f_c + [c ≠ y] − f_y
    program, limits = [], []
    for y in range(k):
        for c in range(k):
            row = np.zeros(2 * k)
            row[c] += 1
            row[y] -= 1
            row[k + y] = -1
            program.append(row)
            limits.append(-float(c != y))
    if rows is not None and rhs is not None:
        for row, limit in zip(rows, rhs, strict=True):
            program.append(np.concatenate([row, np.zeros(k)]))
            limits.append(float(limit))
    bounds = [(0.0, 0.0)] + [(None, None)] * (2 * k - 1)  # scores are free up to a constant
    answer = minimise(
        np.concatenate([np.zeros(k), q]),
        A_ub=np.array(program),
        b_ub=np.array(limits),
        bounds=bounds,
    )
    return answer.value


def grid_laws(n: int) -> FloatArray:
    """Distributions on three labels with denominators n."""
    return np.array([(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]) / n


def top(j: int, k: int = 3) -> tuple[FloatArray, FloatArray]:
    """f_c − f_j ≤ 0 for all c."""
    rows = np.delete(np.eye(k), j, axis=0) - np.eye(k)[j]
    return rows, np.zeros(k - 1)


@claim(
    "crammer-singer",
    "Section 5",
    "related work",
    "The Crammer–Singer SVM is not consistent for the 0-1 loss unless there is a majority class "
    "with probability at least ½.",
    "linear programs on a grid of distributions over three labels: least excess of the surrogate "
    "among scores that put a wrong label on top; the library's H = 0 up to ε = ½",
    expected="holds with correction",
)
def crammer_singer(effort: Effort) -> Evidence:
    above = Worst("distributions with a class above ½ where a wrong label costs nothing", 0)
    below = Worst("distributions without a class of ½ where no wrong label is free", 0)
    at = Worst("distributions with a class of exactly ½ where a wrong label costs nothing", 0)
    for q in grid_laws(effort.pick(8, 16)):
        best = hinge_risk(q)
        wrong = [j for j in range(3) if q[j] < q.max() - 1e-9]
        if not wrong:
            continue
        least = min(hinge_risk(q, *top(j)) - best for j in wrong)
        case = f"q = {np.round(q, 3).tolist()}"
        if q.max() > 0.5 + 1e-9:
            above.add(float(least < 1e-7), case)
        elif q.max() < 0.5 - 1e-9:
            below.add(float(least > 1e-7), case)
        elif len(wrong) == 2:  # one best label
            at.add(float(least < 1e-7), f"{case}, excess task risk {q.max() - q[wrong].max():.3g}")
    H = calibration_function(ZeroOne(3), surrogate="hinge")
    level = Deviation("|library's level − ½|", abs(H.consistency_level - 0.5), 1e-7)
    return Evidence(
        (above.deviation, below.deviation, level),
        f"distributions on 3 labels with denominator {effort.pick(8, 16)}",
        edge=(at.deviation,),
        corrected=(above.deviation, below.deviation),
        correction="With probability above ½. At exactly ½, e.g. "
        f"{at.case}, f = 0 is optimal too and may predict any label.",
    )


@claim(
    "crammer-singer-ordinal",
    "Section 5",
    "related work",
    "The Crammer–Singer SVM is consistent for the abstain and ordinal losses with 3 classes.",
    "linear programs on a grid of distributions: least excess of the surrogate among scores "
    "decoded to a wrong prediction, with argmax (the paper's predictor) and with a threshold on "
    "the margin",
    expected="holds with correction",
)
def crammer_singer_ordinal(effort: Effort) -> Evidence:
    abstain, ordinal = Abstain(3, 0.5).matrix(), Ordinal(3).matrix()
    threshold = Worst(
        "distributions where a wrong prediction is free, threshold ½ on the margin", 0
    )
    plain = Worst("distributions where a wrong prediction is free, argmax, ordinal loss", 0)
    for q in grid_laws(effort.pick(8, 16)):
        best = hinge_risk(q)
        # clear winner c: f_c ≥ f_d + ½ for all d; unclear: f_c on top, f_c ≤ f_d + ½ for one d
        winner = [hinge_risk(q, top(c)[0], top(c)[1] - 0.5) - best for c in range(3)]
        unclear = min(
            hinge_risk(
                q, np.vstack([top(c)[0], np.eye(3)[c] - np.eye(3)[d]]), np.array([0, 0, 0.5])
            )
            - best
            for c, d in permutations(range(3), 2)
        )
        case = f"q = {np.round(q, 3).tolist()}"
        for L, costs in (
            (abstain, [*winner, unclear]),
            (ordinal, [winner[0], min(winner[1], unclear), winner[2]]),  # unclear: the middle
        ):
            expected = L @ q
            for c, cost in enumerate(costs):
                if expected[c] > expected.min() + 1e-9:
                    threshold.add(float(cost < 1e-7), f"{case}, prediction {c}")
        expected = ordinal @ q
        for c in range(3):
            if expected[c] > expected.min() + 1e-9:
                free = hinge_risk(q, *top(c)) - best < 1e-7
                plain.add(
                    float(free), f"{case}, predicts {c}, excess {expected[c] - expected.min():.3g}"
                )
    return Evidence(
        (threshold.deviation,),
        f"distributions on 3 labels with denominator {effort.pick(8, 16)}; abstaining costs ½",
        edge=(plain.deviation,),
        corrected=(threshold.deviation,),
        correction="With a decoder that looks at the margin: below a threshold abstain, or "
        "predict the middle class. With the argmax of eq. (1) it is not consistent for the "
        f"ordinal loss: {plain.case}.",
    )


@claim(
    "ramp-and-probit",
    "Sections 1 and 5",
    "related work",
    "The structured ramp and probit losses are consistent but not convex.",
    "ramp: excess ≥ excess task risk at random scores; probit: excess ≥ ε/k, by quadrature of the "
    "probability of each label; midpoints above chords refute convexity",
)
def ramp_and_probit(effort: Effort) -> Evidence:
    rng = effort.rng
    ramp = Worst("excess task risk − excess ramp risk", 1e-9)
    probit = Worst("excess task risk/k − excess probit risk", 1e-7)
    reached = Worst("ramp risk at f = 2e_c − expected loss of c", 1e-12)
    bend = {"ramp": 0.0, "probit": 0.0}
    for L in (1 - np.eye(3), mixed_matrix((2, 2), 0.4), Ordinal(4).matrix()):
        k, size = len(L), float(L.max())
        for q in laws(rng, k, effort.pick(30, 300)):
            expected = L @ q
            f, g = rng.normal(scale=2.0, size=(2, k))
            task = expected[f.argmax()] - expected.min()
            ramp.add(float(task - (_ramp(f, L) @ q - expected.min())))
            probit.add(float(task / k - (_chances(f) @ expected - expected.min())))
            for c in range(k):
                reached.add(abs(float(_ramp(2 * size * np.eye(k)[c], L) @ q - expected[c])))
            middle = (f + g) / 2
            for name, (at_f, at_g, at_middle) in {
                "ramp": [_ramp(v, L) @ q for v in (f, g, middle)],
                "probit": [_chances(v) @ expected for v in (f, g, middle)],
            }.items():
                bend[name] = max(bend[name], float(at_middle - (at_f + at_g) / 2))
    convex = Deviation(
        "losses with no midpoint above a chord", sum(v < 1e-3 for v in bend.values()), 0
    )
    return Evidence(
        (ramp.deviation, probit.deviation, reached.deviation, convex),
        "0-1 (3), mixed (2×2), ordinal (4); random scores and distributions",
    )


def _ramp(f: FloatArray, L: FloatArray) -> FloatArray:
    """max_ŷ(f_ŷ + L(ŷ, y)) − max_ŷ f_ŷ for every y."""
    return (f[:, None] + L).max(axis=0) - f.max()


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)


def _chances(f: FloatArray) -> FloatArray:
    """P(label c wins f + Gaussian noise): ∫ Π_{d≠c} Φ(z + f_c − f_d) dΦ(z)."""
    gaps = f[:, None] - f[None]
    inside = norm.cdf(NODES[:, None, None] + gaps[None])
    k = len(f)
    inside[:, np.arange(k), np.arange(k)] = 1.0
    chance = (WEIGHTS[:, None] * inside.prod(axis=2)).sum(axis=0) / math.sqrt(2 * math.pi)
    return np.asarray(chance / chance.sum())


# --- other calibration functions ---


@claim(
    "binary-calibration-functions",
    "Section 5",
    "related work",
    "The calibration functions of binary surrogates differ in shape but have roughly similar "
    "constants.",
    "hinge ε, squared and truncated ε², exponential 1 − √(1−ε²), logistic ½[(1+ε)log(1+ε) + "
    "(1−ε)log(1−ε)], by minimisation over the margin; all between ε²/2 and ε",
)
def binary_functions(effort: Effort) -> Evidence:
    m = np.linspace(-12, 12, effort.pick(24001, 240001))
    shape = Worst("|computed − closed form|", 1e-5)
    range_ = Worst("values outside [ε²/2, ε]", 1e-5)
    for eps in (0.1, 0.5, 0.9):
        entropy = (1 + eps) * math.log(1 + eps) + (1 - eps) * math.log(1 - eps)
        for name, expected in (
            ("hinge", eps),
            ("squared", eps**2),
            ("truncated", eps**2),
            ("exponential", 1 - math.sqrt(1 - eps**2)),
            ("logistic", entropy / 2),
        ):
            values = MARGIN_LOSSES[name]
            risk = (1 + eps) / 2 * values(m) + (1 - eps) / 2 * values(-m)
            found = float(risk[m <= 1e-9].min() - risk.min())
            shape.add(abs(found - expected), f"{name}, ε = {eps}")
            range_.add(max(eps**2 / 2 - found, found - eps), f"{name}, ε = {eps}")
    return Evidence((shape.deviation, range_.deviation), "five surrogates, ε = 0.1, 0.5, 0.9")


@claim(
    "ordinal-normalised",
    "Section 5",
    "related work",
    "Calibration functions for ordinal regression have at best a factor 1/k once the surrogate is "
    "divided by the number of classes.",
    "all-threshold surrogate with the squared, exponential and logistic loss, absolute error: a "
    "distribution on two adjacent classes moves one threshold only, so H ≤ (binary function)/(k−1)",
)
def ordinal_normalised(effort: Effort) -> Evidence:
    worst = Worst("|excess·(k−1) − binary function| at that distribution", 1e-4)
    m = np.linspace(-8, 8, effort.pick(8001, 80001))
    eps = 0.5
    for k in (3, 6, 20):
        L = Ordinal(k).matrix()
        q = np.zeros(k)
        q[k // 2], q[k // 2 + 1] = (1 + eps) / 2, (1 - eps) / 2
        below = np.cumsum(q)[:-1]  # P(y ≤ t) at each threshold
        task = L @ q
        for name, binary in (("squared", eps**2), ("exponential", 1 - math.sqrt(1 - eps**2))):
            values, excess = MARGIN_LOSSES[name], 0.0
            for t, p in enumerate(below):
                risk = p * values(m) + (1 - p) * values(-m)
                wrong = m <= 1e-9 if t == k // 2 else np.ones(len(m), dtype=bool)
                excess += float(risk[wrong].min() - risk.min()) / (k - 1)
            worst.add(abs(excess * (k - 1) - binary), f"{name}, k = {k}")
        worst.add(abs(float(task[k // 2 + 1] - task[k // 2]) - eps), f"excess task risk, k = {k}")
    return Evidence((worst.deviation,), "k = 3, 6, 20; ε = 0.5")


@claim(
    "sum-to-zero-svm",
    "Section 5",
    "related work",
    "Surrogates Σ_c L(c, y)a(f_c) with Σ_c f_c = 0 have a factor 1/k in their calibration "
    "function if divided by k.",
    "a(f) = (1 + f)₊ and the 0-1 loss: H ≥ ε before the division at random scores and "
    "distributions, attained at f = 0 with a distribution that is uniform but for one label, so H "
    "= ε/k after it for ε "
    "≤ 1/(k−1)",
)
def sum_to_zero(effort: Effort) -> Evidence:
    rng = effort.rng
    below = Worst("excess task risk − excess surrogate risk", 1e-9)
    attained = Worst("relative deviation of the excess at f = 0 from ε", 1e-9)
    for k in (3, 5, 10):
        for q in laws(rng, k, effort.pick(60, 600)):
            f = rng.normal(size=k) * rng.choice([0.1, 1.0, 3.0])
            f -= f.mean()
            expected = 1 - q
            # the infimum k·min ℓ is attained at f = k e_best − 1
            excess = float(expected @ np.maximum(1 + f, 0)) - k * float(expected.min())
            below.add(float(expected[f.argmax()] - expected.min()) - excess, f"k = {k}")
        eps = 0.9 / (k - 1)
        q = np.full(k, (1 + eps) / k)
        q[0] -= eps
        excess = float((1 - q).sum()) - k * float(1 - q.max())
        attained.add(relative(excess, eps), f"k = {k}")
    return Evidence((below.deviation, attained.deviation), "k = 3, 5, 10")
