"""Who is hard to learn, and what tells: k_eff, or the norm of the optimum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from consistruct._validation import check_number
from consistruct.losses import Block, Hamming, Loss, Mixed, ZeroOne
from consistruct.protocols import FloatArray
from consistruct.structures import Full, Structure
from paper.learning_curves import Variant, learning_curve
from paper.problems import synthetic_problem

ANCHORS = (3, 8, 24)
NOISES = (0.2, 0.5, 0.8)
STEPS = (10, 18, 32, 56, 100, 178, 316, 562, 1000, 1778, 3162)
# (family, loss, scores): 4 to 2^20 labels; the 0-1 and mixed losses stay where k scores are dense
PROBLEMS: tuple[tuple[str, Loss, Structure | None], ...] = (
    *(("0-1", ZeroOne(k), None) for k in (4, 16, 64, 256)),
    *(("block", Block((2**20 // b,) * b), None) for b in (4, 16, 64)),
    *(("Hamming", Hamming(T), None) for T in (2, 5, 10, 20)),
    *(("Hamming, full scores", Hamming(T), Full(Hamming(T))) for T in (2, 4, 6)),
    *(("mixed", Mixed((5,) * b, 0.4), None) for b in (2, 8, 20)),
)


@dataclass(frozen=True)
class HardnessRow:
    """One problem and the number of examples that it took."""

    family: str
    loss: Loss
    n_anchors: int
    noise: float
    effective_classes: float
    optimum_norm: float
    q_bound: float
    reached: float  # NaN if not within the largest N

    @property
    def calibrated_norm(self) -> float:
        """‖W*‖·√k_eff: the norm in units in which H(ε) = ε²/4, whatever the loss."""
        return self.optimum_norm * math.sqrt(self.effective_classes)


@dataclass(frozen=True)
class HardnessFit:
    """Least squares of log N on logarithms of what may explain it."""

    explained_by: tuple[str, ...]
    exponents: tuple[float, ...]
    standard_errors: tuple[float, ...]
    r_squared: float


@dataclass(frozen=True)
class HardnessStudy:
    """Examples to reach an excess task risk of ε, over losses, sizes and numbers of anchors."""

    eps: float
    variant: Variant
    rows: tuple[HardnessRow, ...]
    fits: tuple[HardnessFit, ...]

    def fit(self, *explained_by: str) -> HardnessFit:
        """Return the fit with these explanations."""
        for fit in self.fits:
            if fit.explained_by == explained_by:
                return fit
        known = "; ".join(", ".join(fit.explained_by) for fit in self.fits)
        raise ValueError(f"there is no fit on {', '.join(explained_by)}; the fits are {known}")


def hardness_study(
    *,
    eps: float = 0.02,
    anchors: Sequence[int] = ANCHORS,
    noises: Sequence[float] = NOISES,
    variant: Variant = "known optimum",
    repeats: int = 6,
    random_state: int = 0,
) -> HardnessStudy:
    """Measure N(ε) on many problems and regress its logarithm on what may explain it.

    The worst case is N* ∝ (D·M/H)² with H = ε²/4k_eff and D = ‖W*‖. k_eff varies with the loss and
    its size, ‖W*‖ at a fixed k_eff with the number of anchors (how many distributions are to be
    learned, it grows as the root of that) and with the noise (a weaker signal has a smaller norm).

    Parameters
    ----------
    eps : float
        Excess task risk to reach.
    anchors, noises : sequences
        Numbers of anchor distributions and shares of noise, all combinations with each loss.
    variant : str
        As in `learning_curve`.
    repeats, random_state : int
        As in `learning_curve`.

    Examples
    --------
    >>> study = hardness_study(anchors=(3, 24), noises=(0.5,), repeats=4)
    >>> study.fit("k_eff").r_squared < 0.1 < 0.5 < study.fit("‖W*‖·√k_eff").r_squared
    True
    """
    eps = check_number(eps, "eps", low=0.0, high=1.0, open_low=True)
    rows = []
    for noise, n_anchors, (family, loss, scores) in product(noises, anchors, PROBLEMS):
        problem = synthetic_problem(
            loss, scores, n_anchors=n_anchors, noise=noise, random_state=random_state
        )
        curve = learning_curve(
            problem, STEPS, variant=variant, repeats=repeats, random_state=random_state
        )
        rows.append(
            HardnessRow(
                family,
                loss,
                n_anchors,
                noise,
                curve.effective_classes,
                curve.optimum_norm,
                problem.q_bound,
                curve.reached(eps),
            )
        )
    return HardnessStudy(eps, variant, tuple(rows), _fits(rows))


def _fits(rows: Sequence[HardnessRow]) -> tuple[HardnessFit, ...]:
    seen = [row for row in rows if math.isfinite(row.reached)]
    if len(seen) < 4:
        raise ValueError(
            f"only {len(seen)} problems reached eps within {STEPS[-1]} examples; choose a larger "
            "eps"
        )
    log_n = np.log([row.reached for row in seen])
    columns = {
        "k_eff": np.log([row.effective_classes for row in seen]),
        "‖W*‖": np.log([row.optimum_norm for row in seen]),
        "‖W*‖·√k_eff": np.log([row.calibrated_norm for row in seen]),
        "anchors": np.log([row.n_anchors for row in seen]),
        "signal": np.log([1.0 - row.noise for row in seen]),
    }
    choices = [
        names
        for names in (
            ("k_eff",),
            ("‖W*‖·√k_eff",),
            ("anchors",),
            ("k_eff", "‖W*‖"),
            ("k_eff", "signal"),
            ("‖W*‖·√k_eff", "signal"),
            ("anchors", "signal"),
            ("k_eff", "anchors", "signal"),
        )
        if all(np.ptp(columns[name]) > 0 for name in names)  # what did not vary explains nothing
    ]
    return tuple(_fit(names, [columns[name] for name in names], log_n) for names in choices)


def _fit(names: tuple[str, ...], columns: list[FloatArray], log_n: FloatArray) -> HardnessFit:
    design = np.column_stack([np.ones(len(log_n)), *columns])
    inverse = np.linalg.inv(design.T @ design)
    solution = inverse @ design.T @ log_n
    residual = log_n - design @ solution
    spread = float(residual @ residual) / (len(log_n) - len(solution))
    errors = np.sqrt(spread * np.diag(inverse))
    return HardnessFit(
        names,
        tuple(solution[1:].tolist()),
        tuple(errors[1:].tolist()),
        1.0 - float(residual @ residual) / float(((log_n - log_n.mean()) ** 2).sum()),
    )
