"""Section 3.3: score families, averaged SGD, its rate and the learning complexity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from consistruct._validation import to_dense
from consistruct.calibration import calibration_function
from consistruct.learning.models.features.feature_maps import LinearFeatures, ScoreMap
from consistruct.learning.models.solvers.paper_sgd import PaperSGD
from consistruct.losses import Block, Hamming, Loss, ZeroOne
from consistruct.protocols import FloatArray
from consistruct.structures import Chain
from consistruct.surrogates import QuadraticSurrogate
from paper.model import Effort, Evidence, claim
from paper.numerics import Worst

CONFIDENCE = 2.0  # standard errors: one-sided 97.7 %


@dataclass(frozen=True, eq=False)
class Problem:
    """q(x) = Vφ(x) with φ(x) in a simplex and stochastic columns of V: well specified, R = 1."""

    loss: Loss
    F: FloatArray  # (k, r)
    V: FloatArray  # (k, d)
    inputs: FloatArray  # (n, d) equally likely feature vectors

    @cached_property
    def optimum(self) -> FloatArray:
        """W* = −(FᵀF)⁺FᵀLV, (r, d)."""
        return -np.linalg.pinv(self.F) @ self.loss.matrix() @ self.V

    @cached_property
    def distributions(self) -> FloatArray:
        """(n, k)."""
        return self.inputs @ self.V.T

    @property
    def D(self) -> float:  # noqa: N802 - the paper's symbol
        """‖W*‖, the smallest radius that Theorem 5 admits."""
        return float(np.linalg.norm(self.optimum))

    @cached_property
    def M(self) -> float:  # noqa: N802 - the paper's symbol
        """Bounds the stochastic gradient on the ball: Appendix F with D = ‖W*‖ and R = 1."""
        k = len(self.F)
        top = float(np.linalg.norm(self.F, 2))
        column = float(np.linalg.norm(self.F.T @ self.loss.matrix(), axis=0).max())
        return (top**2 * self.D + column) / k

    def excess(self, W: FloatArray) -> FloatArray:
        """Excess surrogate risk of each of several W, (runs, r, d) -> (runs,)."""
        off = np.einsum("kr,mrd,nd->mnk", self.F, W - self.optimum, self.inputs)
        return np.sum(off**2, axis=(1, 2)) / (2 * len(self.F) * len(self.inputs))

    def constant_excess(self, f: FloatArray) -> FloatArray:
        """Excess surrogate risk of score vectors that do not look at x, (runs, k) -> (runs,)."""
        best = self.inputs @ (self.F @ self.optimum).T
        off = f[:, None] - best
        return np.sum(off**2, axis=(1, 2)) / (2 * len(self.F) * len(self.inputs))

    def task_excess(self, W: FloatArray) -> FloatArray:
        """Excess task risk of each of several W, (runs,)."""
        scores = np.einsum("kr,mrd,nd->mnk", self.F, W, self.inputs)
        expected = self.distributions @ self.loss.matrix().T  # (n, k)
        rows = np.arange(len(self.inputs))
        chosen = expected[rows, scores.argmax(axis=2)]
        return np.mean(chosen - expected.min(axis=1), axis=1)

    def run(
        self, n_steps: int, runs: int, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """The algorithm of eq. (9): averages of W^(0..N−1), and of F·W^(n)·φ(x^(n)) as printed."""
        k, r, d = *self.F.shape, self.V.shape[1]
        L = self.loss.matrix()
        step = 2 * self.D / (self.M * math.sqrt(n_steps))
        W = np.zeros((runs, r, d))
        average, printed = np.zeros_like(W), np.zeros((runs, k))
        gram, cross = self.F.T @ self.F / k, self.F.T @ L / k
        cumulative = self.distributions.cumsum(axis=1)
        for n in range(n_steps):
            average += (W - average) / (n + 1)
            x = rng.integers(len(self.inputs), size=runs)
            y = (rng.random((runs, 1)) > cumulative[x]).sum(axis=1).clip(max=k - 1)
            phi = self.inputs[x]  # (runs, d)
            theta = np.einsum("mrd,md->mr", W, phi)
            slope = theta @ gram + cross.T[y]
            W = W - step * slope[:, :, None] * phi[:, None]
            norm = np.linalg.norm(W, axis=(1, 2))
            W = W * np.minimum(1.0, self.D / np.maximum(norm, 1e-300))[:, None, None]
            printed += (np.einsum("mrd,md->mr", W, phi) @ self.F.T - printed) / (n + 1)
        return average, printed


def problems(rng: np.random.Generator) -> list[Problem]:
    """Small well-specified problems: 0-1, block and Hamming with the paper's matrices F."""
    found = []
    for loss, F in (
        (ZeroOne(2), np.eye(2)),
        (Block((2, 2)), np.repeat(np.eye(2), 2, axis=0)),
        (Hamming(2), np.array([[0.5, 0, 0], [0.5, 0, 1], [0.5, 1, 0], [0.5, 1, 1]])),
    ):
        k = len(F)
        V = rng.dirichlet(np.full(k, 0.5), 3).T
        inputs = np.vstack([np.eye(3), rng.dirichlet(np.ones(3), 5)])
        found.append(Problem(loss, F, V, inputs))
    return found


@claim(
    "sequence-model",
    "Section 3.3",
    "remark",
    "The sequence model with unary and pairwise scores has r = Ts + (T−1)s² columns in 2T−1 "
    "groups, each row with exactly one 1 in each group.",
    "the matrix built by enumeration and the library's, rank by exact counting and by singular "
    "values",
)
def sequence_model(effort: Effort) -> Evidence:
    width = Worst("columns − (Ts + (T−1)s²)", 0)
    groups = Worst("groups in which a row does not sum to one", 0)
    span = Worst("library's rank − 1 − T(s−1) − (T−1)(s−1)²", 0)
    for T, s in effort.pick([(2, 2), (3, 2), (3, 3)], [(2, 2), (3, 2), (3, 3), (4, 3), (5, 2)]):
        labels = np.array(list(product(range(s), repeat=T)))
        parts = [np.eye(s)[labels[:, t]] for t in range(T)]
        parts += [np.eye(s * s)[labels[:, t] * s + labels[:, t + 1]] for t in range(T - 1)]
        F = np.hstack(parts)
        width.add(abs(F.shape[1] - (T * s + (T - 1) * s * s)), f"T = {T}, s = {s}")
        sums = np.stack([part.sum(axis=1) for part in parts])
        groups.add(float(np.sum(sums != 1)) + abs(len(parts) - (2 * T - 1)))
        rank = int(np.linalg.matrix_rank(F))
        expected = 1 + T * (s - 1) + (T - 1) * (s - 1) ** 2
        span.add(abs(rank - expected) + abs(Chain(T, s).rank - expected), f"T = {T}, s = {s}")
    return Evidence((width.deviation, groups.deviation, span.deviation), "T up to 5, s up to 3")


@claim(
    "joint-kernel",
    "Section 3.3, footnote 2",
    "remark",
    "If rank F = r, the setting is that of a joint kernel K(x, x′)⟨F_c, F_c′⟩ of product form.",
    "norm of f = FWφ in the joint RKHS (from its Gram matrix) against ‖W‖_HS; for deficient F too",
)
def joint_kernel(effort: Effort) -> Evidence:
    rng = effort.rng
    equal = Worst("| ‖f‖_joint − ‖W‖_HS | where rank F = r", 1e-8)
    deficient = Worst("| ‖f‖_joint − least ‖W‖_HS | where rank F < r", 1e-8)
    for _ in range(effort.pick(10, 60)):
        k, d = 5, 3
        inputs = rng.normal(size=(6, d))
        for F, seen in (
            (rng.normal(size=(k, 3)), equal),
            (rng.normal(size=(k, 2)) @ rng.normal(size=(2, 4)), deficient),
        ):
            W = rng.normal(size=(F.shape[1], d))
            f = (inputs @ W.T @ F.T).ravel()  # (x, c)
            joint = np.kron(inputs @ inputs.T, F @ F.T)
            norm = math.sqrt(f @ np.linalg.pinv(joint, rcond=1e-10, hermitian=True) @ f)
            least = np.linalg.pinv(F) @ F @ W
            seen.add(abs(norm - float(np.linalg.norm(least))))
    return Evidence((equal.deviation, deficient.deviation), "5 labels, 3 features, random F")


@claim(
    "sgd-step",
    "Section 3.3, eq. (9)",
    "formula",
    "The stochastic gradient of the surrogate with respect to W is Fᵀ∇Φ φ(x)ᵀ; the step is "
    "followed by the projection on the ball of radius D.",
    "central differences of W ↦ Φ(FWφ(x), y); the projection against its variational inequality",
    covers=("eq:rkhsSgdStep",),
)
def sgd_step(effort: Effort) -> Evidence:
    rng = effort.rng
    slope = Worst("gradient − central difference", 1e-7)
    projected = Worst("⟨W − ΠW, Z − ΠW⟩ over Z in the ball", 1e-9)
    for problem in problems(rng):
        F, L = problem.F, problem.loss.matrix()
        k, r = F.shape
        for _ in range(effort.pick(5, 50)):
            W, phi, y = rng.normal(size=(r, 3)), rng.normal(size=3), int(rng.integers(k))
            gradient = np.outer(F.T @ ((F @ W @ phi + L[:, y]) / k), phi)
            direction = rng.normal(size=(r, 3))
            h = 1e-5
            ends = [
                float(np.sum((F @ (W + sign * h * direction) @ phi + L[:, y]) ** 2)) / (2 * k)
                for sign in (1, -1)
            ]
            central = (ends[0] - ends[1]) / (2 * h)
            slope.add(abs(float(np.sum(gradient * direction)) - central))
            ball = W * min(1.0, 1.0 / float(np.linalg.norm(W)))
            Z = rng.normal(size=(r, 3))
            Z /= max(1.0, float(np.linalg.norm(Z)))
            projected.add(float(np.sum((W - ball) * (Z - ball))))
    return Evidence((slope.deviation, projected.deviation), "three small problems, radius 1")


@claim(
    "well-specified",
    "Section 3.3, Assumption 4; Appendix F",
    "assumption",
    "If each conditional probability q_c(x) is in the RKHS, the best score function is F·W*·φ(x) "
    "with W* in the RKHS: Assumption 4 holds.",
    "F·W*·φ(x) against the minimizer of the conditional surrogate risk at every input",
    covers=("th:well_specification",),
)
def well_specified(effort: Effort) -> Evidence:
    worst = Worst("|F·W*·φ(x) + P_F·L·q(x)|", 1e-10)
    for problem in problems(effort.rng):
        F = problem.F
        best = -problem.distributions @ problem.loss.matrix().T @ (F @ np.linalg.pinv(F)).T
        worst.add(float(np.abs(problem.inputs @ (F @ problem.optimum).T - best).max()))
    return Evidence((worst.deviation,), "0-1, block, Hamming; 8 inputs")


@claim(
    "theorem-rate",
    "Section 3.3, Theorem 5, eq. (10)",
    "theorem",
    "Projected averaged SGD with step 2D/(M√N) has expected excess surrogate risk at most 2DM/√N.",
    "simulation of the algorithm with the smallest admissible D = ‖W*‖, average over the points "
    "where gradients are taken, and of the library's solver: mean excess + 2 standard errors over "
    "the bound",
    covers=("th:rkhsSgdConvergence", "eq:rkhsSgdRate"),
)
def rate(effort: Effort) -> Evidence:
    rng = effort.rng
    worst = Worst("(mean excess + 2 standard errors)/(2DM/√N)", 1.0)
    runs = effort.pick(40, 200)
    for problem in problems(rng):
        for n_steps in effort.pick((1, 16, 256), (1, 4, 16, 64, 256, 1024, 4096)):
            excess = problem.excess(problem.run(n_steps, runs, rng)[0])
            top = excess.mean() + CONFIDENCE * excess.std(ddof=1) / math.sqrt(runs)
            bound = 2 * problem.D * problem.M / math.sqrt(n_steps)
            worst.add(float(top / bound), f"{problem.loss!r}, N = {n_steps}")
    library = Worst("the same for the library's solver, with its own D and M", 1.0)
    moved = Worst("its mean excess over that of W = 0", 1.0)
    for problem in problems(rng):
        for n_steps in effort.pick((64,), (64, 512)):
            excess, bound, start = _library(problem, n_steps, effort.pick(10, 40), rng)
            top = excess.mean() + CONFIDENCE * excess.std(ddof=1) / math.sqrt(len(excess))
            library.add(float(top / bound), f"{problem.loss!r}, N = {n_steps}")
            moved.add(float(excess.mean() / start), f"{problem.loss!r}, N = {n_steps}")
    return Evidence(
        (worst.deviation, library.deviation, moved.deviation),
        f"N up to {effort.pick(256, 4096)}, {runs} runs each",
    )


def _library(
    problem: Problem, n_steps: int, runs: int, rng: np.random.Generator
) -> tuple[FloatArray, float, float]:
    """Excess of `PaperSGD` on fresh examples, its bound, and the excess of W = 0."""
    loss, inputs = problem.loss, problem.inputs
    every, gram = loss.true_labels.enumerate(), loss.score_space.gram()
    # θ*(x) = −E[u_y | x] = W*ᵀφ(x), on the range of Ḡ
    optimum = gram.solve(gram.apply(-problem.V.T @ to_dense(loss.target(every))))  # (d, width)
    best = inputs @ optimum
    score_map = ScoreMap(LinearFeatures(inputs.shape[1]), fit_intercept=False)
    solver = PaperSGD(radius=float(np.linalg.norm(optimum)))
    excess = np.empty(runs)
    bound = math.inf
    for run in range(runs):
        x = rng.integers(len(inputs), size=n_steps)
        y = [rng.choice(len(every), p=problem.distributions[row]) for row in x]
        found = solver.solve(QuadraticSurrogate(loss), score_map, inputs[x], every[y], rng=rng)
        gap = score_map.apply(found.weights, inputs) - best
        excess[run] = 0.5 * np.mean(np.sum(gap * gram.apply(gap), axis=1))
        bound = 2 * float(found.path["radius"] * found.path["gradient_bound"])
    start = 0.5 * float(np.mean(np.sum(best * gram.apply(best), axis=1)))
    return excess, bound / math.sqrt(n_steps), start


@claim(
    "averaged-iterate",
    "Section 3.3, eq. (10)",
    "formula",
    "The averaged iterate is f̄ = (1/N) Σ_{n=1..N} F·W^(n)·φ(x^(n))ᵀ.",
    "simulation: excess of the printed average (a vector that no longer depends on x) over the "
    "bound of Theorem 5, against that of F·W̄·φ(x)",
    expected="misprint",
    covers=("eq:rkhsSgdRate",),
)
def averaged_iterate(effort: Effort) -> Evidence:
    rng = effort.rng
    # two inputs with opposite certain labels: no constant score vector is good for both
    problem = Problem(ZeroOne(2), np.eye(2), np.eye(2), np.eye(2))
    n_steps, runs = effort.pick(2000, 6000), 40
    average, printed = problem.run(n_steps, runs, rng)
    bound = 2 * problem.D * problem.M / math.sqrt(n_steps)
    wrong, right = problem.constant_excess(printed), problem.excess(average)
    case = f"two inputs with opposite labels, N = {n_steps}, bound {bound:.3g}"
    stated = Worst("(mean excess − 2 standard errors) of the printed average/(2DM/√N)", 1.0)
    stated.add(float(wrong.mean() - CONFIDENCE * wrong.std() / math.sqrt(runs)) / bound, case)
    mended = Worst("(mean excess + 2 standard errors) of F·W̄·φ(x)/(2DM/√N)", 1.0)
    mended.add(float(right.mean() + CONFIDENCE * right.std() / math.sqrt(runs)) / bound, case)
    return Evidence(
        (stated.deviation,),
        case,
        corrected=(mended.deviation,),
        correction="f̄(x) = F·W̄·φ(x) with W̄ = (1/N) Σ_{n=0..N−1} W^(n), the points where "
        f"gradients are taken: excess {right.mean():.3g} against {wrong.mean():.3g} of the "
        "printed vector, whose excess cannot fall below 1/8.",
        right_at="Theorem 6, which takes the same f̄ from the functions x ↦ F·W·φ(x)",
    )


@claim(
    "theorem-complexity",
    "Section 3.3, Theorem 6, eq. (11); Appendix A",
    "theorem",
    "After N > N* = 4D²M²/Ȟ(ε)² steps the expected excess task risk is below ε.",
    "simulation just above N*: mean excess task risk + 2 standard errors over ε, and the chain "
    "Ȟ(E task) ≤ E Ȟ(task) ≤ E surrogate of the proof",
    covers=(
        "th:calibrationSGD:kernels",
        "eq:theoremSgd:2",
        "th:rep:calibrationSGD:kernels",
        "th:rep:calibrationSGD:kernels#1",
    ),
)
def complexity(effort: Effort) -> Evidence:
    rng = effort.rng
    worst = Worst("(mean excess task risk + 2 standard errors)/ε", 1.0)
    chain = Worst("Ȟ(E task) − E surrogate", 1e-12)
    runs = effort.pick(20, 100)
    for problem in problems(rng)[: effort.pick(2, 3)]:
        envelope = calibration_function(problem.loss).envelope()
        eps = effort.pick(0.9, 0.7)
        n_steps = math.floor((2 * problem.D * problem.M / float(envelope(eps))) ** 2) + 1
        average, _ = problem.run(n_steps, runs, rng)
        task, surrogate = problem.task_excess(average), problem.excess(average)
        top = task.mean() + CONFIDENCE * task.std(ddof=1) / math.sqrt(runs)
        worst.add(float(top / eps), f"{problem.loss!r}, N = {n_steps}")
        early = problem.run(8, runs, rng)[0]  # far from converged: the chain must hold there too
        for W in (average, early):
            task, surrogate = problem.task_excess(W), problem.excess(W)
            chain.add(float(envelope(float(task.mean()))) - float(surrogate.mean()))
    return Evidence((worst.deviation, chain.deviation), f"ε = {effort.pick(0.9, 0.7)}, {runs} runs")
