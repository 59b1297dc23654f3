"""The data behind the figures: the paper's two and what it leaves out."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from consistruct.calibration import LabelOrderWarning, calibration_function
from consistruct.guarantees.families import low_rank_truncations
from consistruct.guarantees.figure import Figure
from consistruct.guarantees.simulation.figures import measure_hardness, measure_learning
from consistruct.losses import Hamming, Mixed, Ordinal, Tree
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.scores import Blocks

__all__ = ["FIGURES", "figure_data"]

# The paper states neither T nor the number and size of the blocks; η = 0.4 is its own.
HAMMING_PARTS = 6
MIXED = Mixed((25,) * 4, 0.4)
UNCONSTRAINED_PARTS = (5, 10, 30, 100, 300, 1000)
TRUNCATED: tuple[tuple[str, Loss], ...] = (
    ("ordinal, 8 classes", Ordinal(8)),
    ("ordinal root, 8 classes", Ordinal(8, 0.5)),
    ("mixed, 4 blocks of 2, η = 0.4", Mixed((2,) * 4, 0.4)),
    ("tree, 8 leaves", Tree((-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6))),
)


def figure_data(name: str) -> Figure:
    """One figure by its name; `FIGURES` lists them.

    Examples
    --------
    >>> figure = figure_data("figure_1b")
    >>> list(figure.columns)
    ['eps', 'full scores', 'block scores']
    """
    if name not in FIGURES:
        raise ValueError(f"unknown figure {name!r}; the figures are {', '.join(FIGURES)}")
    return FIGURES[name]()


def _figure_1a() -> Figure:
    loss = Hamming(HAMMING_PARTS)
    eps = np.linspace(0.0, 1.0, 601)
    return Figure(
        "figure_1a",
        f"Hamming loss, T = {HAMMING_PARTS}",
        "ε, excess task risk (loss)",
        "H(ε), excess surrogate risk (loss²)",
        {
            "eps": eps,
            "full scores": np.asarray(calibration_function(loss, "full")(eps)),
            "own scores": np.asarray(calibration_function(loss)(eps)),
        },
    )


def _figure_1b() -> Figure:
    blocks = MIXED.partition.block_sizes
    eps = np.linspace(0.0, 1.0, 501)
    return Figure(
        "figure_1b",
        f"Mixed loss, η = {MIXED.eta:g}, {len(blocks)} blocks of {blocks[0]}",
        "ε, excess task risk (loss)",
        "H(ε), excess surrogate risk (loss²)",
        {
            "eps": eps,
            "full scores": np.asarray(calibration_function(MIXED, "full")(eps)),
            "block scores": np.asarray(calibration_function(MIXED, Blocks(blocks))(eps)),
        },
    )


def _hamming_unconstrained() -> Figure:
    """4k·H(ε)/ε²: between 1 (Theorem 7) and 2 (Theorem 8) at every length."""
    eps = np.linspace(0.0, 1.0, 401)[1:]
    columns: dict[str, FloatArray] = {"eps": eps}
    for T in UNCONSTRAINED_PARTS:
        log_H = np.asarray(calibration_function(Hamming(T), "full").log(eps))
        columns[f"T = {T}"] = np.exp(log_H + T * np.log(2) + np.log(4) - 2 * np.log(eps))
    return Figure(
        "hamming_unconstrained",
        "Hamming loss with full scores, 2^T labels",
        "ε, excess task risk (loss)",
        "4k·H(ε)/ε², no unit",
        columns,
    )


def _level_against_rank() -> Figure:
    """Consistency level over the largest loss, for the leading singular vectors of the loss.

    Only ranks at which singular values differ: within equal ones the vectors are arbitrary.
    """
    ranks = np.arange(2, max(loss.score_space.rank for _, loss in TRUNCATED) + 1)
    columns: dict[str, FloatArray] = {"rank": ranks.astype(np.float64)}
    for name, loss in TRUNCATED:
        levels = np.full(len(ranks), np.nan)
        levels[loss.score_space.rank - 2] = calibration_function(loss).consistency_level
        for family in low_rank_truncations(loss, limit=None):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LabelOrderWarning)  # labels merge at low rank
                curve = calibration_function(loss, family.scores)
            levels[family.scores.rank - 2] = curve.consistency_level / loss.max_value
        columns[name] = levels
    return Figure(
        "level_against_rank",
        "Leading singular vectors of the loss as scores",
        "rank of the scores, constant included",
        "consistency level / largest loss, no unit",
        columns,
        marks=True,
    )


FIGURES: dict[str, Callable[[], Figure]] = {
    "figure_1a": _figure_1a,
    "figure_1b": _figure_1b,
    "hamming_unconstrained": _hamming_unconstrained,
    "level_against_rank": _level_against_rank,
    "learning_curves": measure_learning,
    "who_is_hard": measure_hardness,
}
